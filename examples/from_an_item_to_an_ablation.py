# %% [markdown]
# # From an item of the dataset to an ablation plot
#
# An item of the dataset is a compiled network whose circuit is known. This notebook is in the percent
# format, which Jupyter opens with jupytext. It creates an item and loads it. Then it ablates one head
# at a time, and plots the fraction of answers that change.
# `locum dataset make -o FOLDER --size 100` creates more items, and
# `locum.experiments.dataset.load(FOLDER)` loads them.

# %%
import sys
import tempfile
from pathlib import Path

from locum.experiments.dataset import load, score
from locum.experiments.dataset.baseline import by_patching
from locum.experiments.dataset.making import make

folder = Path(tempfile.mkdtemp())
row = make(str(folder), "cookbook/induction", length=4, tokens=2)["row"]
item = load(folder / row["folder"])
print(item.program)

# %% [markdown]
# ## True heads
#
# A head is part of the circuit if it is the source of a necessary edge.

# %%
for head in item.truth.heads:
    targets = sorted(target for source, target in item.truth.edges if source == head)
    print(head, "writes to", ", ".join(targets))

# %% [markdown]
# ## Ablation
#
# This code prints the fraction of inputs whose answer changes if the output of a head is set to zero.

# %%
broken = {}
for head in item.truth.heads:
    _, layer, _, _, number = head.split(".")
    block = f"blocks.{layer}.attn"
    answers = [item.model.ablate(given, block, head=int(number)) for given in item.inputs]
    wrong = sum(found != right for found, right in zip(answers, item.outputs, strict=True))
    broken[head] = wrong / len(answers)
    print(f"{head:<22} {'█' * round(30 * broken[head])} {broken[head]:.2f}")

assert all((broken[head] > 0) == (head in item.truth.true_heads) for head in broken)

# %% [markdown]
# ## Plot

# %%
parts = []
for place, (head, share) in enumerate(broken.items()):
    x, high = 40 + 60 * place, 90 * share
    bar = f'x="{x}" y="{110 - high:.1f}" width="40" height="{high:.1f}"'
    parts.append(f'<rect {bar} fill="steelblue"/>')
    parts.append(f'<text x="{x}" y="124" font-size="9">head {head[7]}.{head[-1]}</text>')
size = 80 + 60 * len(broken)
target = Path(sys.argv[1]) if len(sys.argv) > 1 else folder / "ablation.svg"
drawn = f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="140">{"".join(parts)}</svg>'
target.write_text(drawn, encoding="utf-8")
print("drawn in", target.name)

# %% [markdown]
# ## Score of a circuit that activation patching finds

# %%
found = by_patching(item.model, item.truth, item.pairs[:8])
levels = score(item.truth, found)["levels"]
print({level: round(row["average_precision"], 2) for level, row in levels.items()})
