# %% [markdown]
# # RASP in Python: from a program to weights
#
# In this notebook, you write a RASP program, draw its attention patterns, count its layers and heads, and compile the program to the weights
# of a transformer. The notebook requires only the core of Locum: `pip install .` in a clone of the repository.

# %% [markdown]
# ## S-ops
#
# An s-op (sequence operator) computes one value at each position of the input. Call an s-op on an input to run it.

# %%
import locum
from locum import aggregate, indices, select, selector_width, tokens

print(tokens("hello"))
print(indices("hello"))
print((indices % 2 == 0)("hello"))

# %% [markdown]
# ## Attention
#
# `select(keys, queries, predicate)` compares each key with each query and returns a selector, which is an attention pattern.
# `aggregate(selector, values)` computes the mean of the values at the selected keys, as an attention head does.
#
# To sort the input, count the tokens that precede each token in sorted order. This number is the rank of the token. Then move each token to
# the position given by its rank.

# %%
smaller = select(tokens, tokens, "<")
same_before = select(tokens, tokens, "==") & select(indices, indices, "<")
rank = selector_width(smaller | same_before).named("rank")
ordered = aggregate(select(rank, indices, "=="), tokens)

print(rank("hello"))
print(ordered("hello"))

# %% [markdown]
# `draw` returns a figure of the heads of a program, in which rows are queries and columns are keys. In this example, each position attends to
# the previous position:

# %%
previous = select(indices, indices - 1, "==").named("previous")
aggregate(previous, tokens, "_").draw("hello", name="out")

# %% [markdown]
# ## Layers and heads
#
# The numbers of layers and heads depend only on the program, and not on the input. `heads` lists the number of heads in each
# layer.

# %%
print(ordered.architecture)

# %% [markdown]
# ## Weights
#
# `locum.compile` returns a transformer for all inputs of up to `length` tokens. The default is hard attention. With `attention="softmax"`, the
# transformer can also be exported to TransformerLens.

# %%
model = locum.compile(ordered, length=5, vocabulary="ehlo", attention="softmax")
print(model("hello"))
print(model.architecture)
print(f"certified error: {model.error_bound:.0e}")

# %% [markdown]
# A network can have more layers than its program. In this example, an additional feed-forward computes the square of the rank, which is part
# of the attention scores of the last head.
#
# The network returns the output of the program for all inputs of up to four tokens:

# %%
import itertools

words = [list(word) for n in range(1, 5) for word in itertools.product("ehlo", repeat=n)]
print(sum(model(word) == ordered(word) for word in words), "of", len(words), "inputs agree")

# %% [markdown]
# `model.circuit` contains a node for each part of the network. The label of a head is its selector, and the label of hidden units is the
# s-op that they compute:

# %%
for node in model.circuit.nodes:
    if node.kind in ("head", "units"):
        print(node.id, "|", node.label)

# %% [markdown]
# The notebook [From a program to an ablation](ablation.ipynb) ablates a compiled network. [The language](../language.md) is the reference of
# RASP text.
