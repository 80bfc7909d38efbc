"""The paper's Figure 2: softmax attention by average-hard attention, step by step, with its errors."""

from __future__ import annotations

from locum.paper.figure2 import PRINTED, figure2

for base, said in ((2.718, "the figure's own"), (None, "e itself"), (2.73, "the listing's")):
    demonstration = figure2(base=base)
    errors = ", ".join(
        f"{PRINTED[name].name} {demonstration[name].error:.6e}" for name in ("softmax", "output")
    )
    digits = "every printed digit" if demonstration.reproduced else "not every printed digit"
    print(f"base {base or 'e'} ({said}): {digits} comes out; errors {errors}")
    assert demonstration.reproduced == (base != 2.73)

exact = figure2()
print("\nU:", exact.simulator.architecture)
print(exact.explanation)
