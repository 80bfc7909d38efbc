# %% [markdown]
# # From a program to an ablation in TransformerLens
#
# You know every head of this network before you look at it: it was compiled from a program. Here the program is the
# induction head; at the end, TransformerLens takes one part away at a time, and the plot shows how many answers break.
#
# It needs the extras torch and lens: `pip install '.[torch,lens]'` in a clone; `make tutorial` does everything from
# nothing and leaves `ablation.svg`. The cells are those of a notebook in the percent format, which Jupyter opens with
# jupytext.

# %% [markdown]
# ## The program
#
# What came after the last occurrence of my token? One head fetches the token before each position; a second looks for
# the last position whose *previous* token is mine, and fetches what stands there.

# %%
import itertools
from pathlib import Path

import locum
from locum import aggregate, best, indices, select, tokens

before = aggregate(select(indices, indices - 1, "=="), tokens, "?")
matches = select(before, tokens, "==") & select(indices, indices, "<")
induction = aggregate(best(matches, indices), tokens, "?")

print(induction("abcab"))
assert induction("abcab") == ["?", "?", "?", "b", "c"]

# %% [markdown]
# ## The weights
#
# Softmax heads and relu units: an ordinary transformer, with a certified bound on its error. With `reuse_slots=False` every
# direction of the residual stream keeps its meaning to the end.

# %%
model = locum.compile(
    induction, length=5, vocabulary="abc", attention="softmax", feed_forward="relu", reuse_slots=False
)
print(model.architecture.layers, "layers, heads", model.architecture.heads)
print("certified error below 0.01:", model.error_bound < 0.01)
assert model("abcab") == induction("abcab")

# %% [markdown]
# What each head is for is data, not a guess:

# %%
for head in model.circuit.nodes:
    if head.kind == "head":
        print(head.id, "computes", head.label)

# %% [markdown]
# ## The same network in TransformerLens

# %%
import torch

hooked = model.to_transformer_lens()
words = [list(word) for word in itertools.product("abc", repeat=4)]


def answers(hooks):
    """Run TransformerLens with hooks on all words, and read its logits as answers."""
    given = model.transformer_lens_inputs(words)
    with torch.no_grad():
        logits = hooked.run_with_hooks(given, return_type="logits", fwd_hooks=hooks)
    return model.decode(logits.numpy(), words)


right = [induction(word) for word in words]
assert answers([]) == right
print(len(words), "words, all answered as by the program")

# %% [markdown]
# ## One part less
#
# A hook sets what a head carries, or what the hidden units of a layer give, to 0 everywhere. The last row is the control:
# taking away nothing must change nothing.


# %%
def wrong(hooks):
    """Return the share of wrong answers, of those where there is something to answer."""
    pairs = [pair for found, wanted in zip(answers(hooks), right) for pair in zip(found, wanted)]
    asked = [(found, wanted) for found, wanted in pairs if wanted != "?"]
    return sum(found != wanted for found, wanted in asked) / len(asked)


def silence(head=None):
    """Make a hook that sets an activation, or one head of it, to 0."""

    def hook_function(activation, hook):
        activation[(..., head, slice(None)) if head is not None else ...] = 0.0
        return activation

    return hook_function


broken = {}
for layer, heads in enumerate(model.architecture.heads):
    for head in range(heads):
        broken[f"head {layer}.{head}"] = wrong([(f"blocks.{layer}.attn.hook_z", silence(head))])
    broken[f"units {layer}"] = wrong([(f"blocks.{layer}.mlp.hook_post", silence())])
broken["nothing"] = wrong([])
for name, share in broken.items():
    print(f"without {name}: {share:.0%} of the answers are wrong")
assert broken["nothing"] == 0 and broken["head 0.0"] > 0.9 and broken["head 1.0"] > 0.9

# %% [markdown]
# ## The plot

# %%
from locum.interface.display.charts import bar_chart

plot = bar_chart("Wrong answers of the induction program without one of its parts", broken)
Path("ablation.svg").write_text(plot, encoding="utf-8")

# %% [markdown]
# Both heads are needed; so says the circuit, too, by interventions of its own
# ([circuits](../circuits.md)): `locum.experiments.circuits.check_circuit(model)`.
