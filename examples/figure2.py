"""Reproduce Figure 2 of the paper step by step: softmax attention by average hard attention."""

from __future__ import annotations

from locum.paper.figure2 import PRINTED, figure2

for base, said in (
    (2.718, "the base of the figure"),
    (None, "Euler's number"),
    (2.73, "the base of the listing"),
):
    demonstration = figure2(base=base)
    errors = ", ".join(
        f"{PRINTED[name].name} {demonstration[name].error:.6e}" for name in ("softmax", "output")
    )
    digits = "all printed digits agree" if demonstration.reproduced else "some printed digits differ"
    print(f"base {base or 'e'} ({said}): {digits}; errors {errors}")
    assert demonstration.reproduced == (base != 2.73)

exact = figure2()
print("\nU:", exact.simulator.architecture)
print(exact.explanation)
