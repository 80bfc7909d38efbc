# %% [markdown]
# # From a program to an ablation in TransformerLens
#
# In this notebook, you compile an induction head from a RASP program, so the purpose of every head is known. Then you load the network in
# TransformerLens, ablate one part at a time, and plot the share of wrong answers.
#
# The notebook requires the extras `torch` and `lens`: `pip install '.[torch,lens]'` in a clone of the repository. `make tutorial` installs
# these extras, runs the notebook and writes the plot `ablation.svg`.

# %% [markdown]
# ## The program
#
# At each position, the program returns the token after the last occurrence of the current token before the previous position, or `?` if
# there is none. The first head moves the previous token to each position. The second head attends to the last earlier position whose
# previous token equals the current token, and returns the token at this position.

# %%
import itertools

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
# `locum.compile` returns a network with softmax heads and ReLU MLPs, and a certified bound on the error of the network. With
# `reuse_slots=False`, each direction of the residual stream represents the same s-op in all layers.

# %%
model = locum.compile(
    induction, length=5, vocabulary="abc", attention="softmax", feed_forward="relu", reuse_slots=False
)
print(model.architecture.layers, "layers, heads", model.architecture.heads)
print("certified error below 0.01:", model.error_bound < 0.01)
assert model("abcab") == induction("abcab")

# %% [markdown]
# `model.circuit` contains a node for each head. The label of a head is its selector, which determines the attention pattern:

# %%
for head in model.circuit.nodes:
    if head.kind == "head":
        print(f"{head.id}: {head.label}")

# %% [markdown]
# ## The same network in TransformerLens
#
# `to_transformer_lens` exports the network to a TransformerLens model. The function `answers` runs this model with hooks and decodes
# the logits. Without hooks, the answers are equal to the outputs of the program on all words of four letters.

# %%
import torch

hooked = model.to_transformer_lens()
words = [list(word) for word in itertools.product("abc", repeat=4)]


def answers(hooks):
    """Run the TransformerLens model with hooks on all words, and decode its logits."""
    given = model.transformer_lens_inputs(words)
    with torch.no_grad():
        logits = hooked.run_with_hooks(given, return_type="logits", fwd_hooks=hooks)
    return model.decode(logits.numpy(), words)


right = [induction(word) for word in words]
assert answers([]) == right
print("TransformerLens returns the outputs of the program for all", len(words), "words")

# %% [markdown]
# ## Ablate one part at a time
#
# A hook sets the output of one head, or the hidden units of one layer, to 0 at all positions. The function `wrong` compares the answers with
# the program at the positions where the output of the program is not `?`. The last line of the output shows the network without ablation.


# %%
def wrong(hooks):
    """Return the share of wrong answers at positions where the program does not return "?"."""
    pairs = [pair for found, wanted in zip(answers(hooks), right) for pair in zip(found, wanted)]
    asked = [(found, wanted) for found, wanted in pairs if wanted != "?"]
    return sum(found != wanted for found, wanted in asked) / len(asked)


def zero(head=None):
    """Return a hook that sets an activation to 0, or only the part of one head."""

    def hook_function(activation, hook):
        activation[(..., head, slice(None)) if head is not None else ...] = 0.0
        return activation

    return hook_function


broken = {}
for layer, weights in enumerate(model.weights.layers):
    for head in range(model.architecture.heads[layer]):
        broken[f"head {layer}.{head}"] = wrong([(f"blocks.{layer}.attn.hook_z", zero(head))])
    if weights.feed_forward is not None:
        broken[f"units {layer}"] = wrong([(f"blocks.{layer}.mlp.hook_post", zero())])
broken["nothing"] = wrong([])
for name, share in broken.items():
    print(f"{name} ablated: {share:.0%} of the answers are wrong")
assert broken["nothing"] == 0 and broken["head 0.0"] > 0.9 and broken["head 1.0"] > 0.9

# %% [markdown]
# ## The plot
#
# The bars show the share of wrong answers after each ablation.

# %%
from matplotlib import pyplot

pyplot.rcParams["svg.fonttype"] = "none"

figure, axes = pyplot.subplots(figsize=(6, 2.4), layout="constrained")
axes.bar_label(axes.barh(list(broken), list(broken.values())), fmt="{:.0%}", padding=4)
axes.set(title="Share of wrong answers after ablating one part", xlim=(0, 1.15))
axes.invert_yaxis()
figure.savefig("ablation.svg")

# %% [markdown]
# Both heads are necessary: if one of them is ablated, all compared answers are wrong. The hidden units of layer 0 are also necessary, because some answers
# are wrong after the ablation of these units. `locum.experiments.circuits.check_circuit(model)` checks the whole circuit by interchange interventions
# ([circuits](../circuits.md)).
