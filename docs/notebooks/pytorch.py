# %% [markdown]
# # A PyTorch model on U
#
# In this notebook, you run a PyTorch model on U without changing the model, compare the result with eager execution, and record an attention
# pattern. The notebook requires the extra `torch`: `pip install '.[torch]'` in a clone of the repository.

# %% [markdown]
# ## Define a model
#
# The model is a causal transformer layer with random weights. [Hugging Face models on U](../huggingface.md) shows how to run a pretrained
# model.

# %%
import torch


class Attention(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Layer(torch.nn.Module):
    def __init__(self, width=16, heads=2):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = torch.nn.Sequential(
            torch.nn.LayerNorm(width),
            torch.nn.Linear(width, 4 * width),
            torch.nn.GELU(),
            torch.nn.Linear(4 * width, width),
        )

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return x + self.mlp(x)


torch.manual_seed(0)
model = Layer().eval()
x = torch.randn(1, 8, 16)
with torch.no_grad():
    expected = model(x)

# %% [markdown]
# ## Run it on U
#
# `model.compile` selects the backend. In the next call of the model, PyTorch captures the forward pass as one graph, and Locum runs this
# graph as one RASP program.

# %%
model.compile(backend="locum", fullgraph=True)
with torch.no_grad():
    y = model(x)
print("largest difference from eager execution below 1e-5:", bool((y - expected).abs().max() < 1e-5))

# %% [markdown]
# `locum.torch.report` counts the multiply-adds that ran on U.

# %%
import locum.torch

report = locum.torch.report(model)
print(f"{report.share:.0%} of {report.multiply_adds:,} multiply-adds on U")

# %% [markdown]
# ## Record the attention pattern
#
# `locum.torch.record` records the steps of the modules with the given paths. `recorded.patterns` contains the attention pattern of each
# recorded attention module, with axes [batch, head, query, key].

# %%
with torch.no_grad(), locum.torch.record("attention") as recorded:
    model(x)
pattern = recorded.patterns["attention"][0, 0]
print(tuple(recorded.patterns["attention"].shape))
print("rows sum to 1:", bool(torch.allclose(pattern.sum(-1), torch.ones(8))))

# %% [markdown]
# The plot shows the attention pattern of the first head. Each row is a query, and each column is a key.

# %%
from matplotlib import pyplot

pyplot.rcParams["svg.fonttype"] = "none"

figure, axes = pyplot.subplots(figsize=(4, 4), layout="constrained")
axes.imshow(pattern, cmap="Blues", vmin=0, vmax=1)
axes.set(title="Attention weights of head 0", xlabel="key", ylabel="query")
figure.savefig("pattern.svg")

# %% [markdown]
# ## Run the heads of U
#
# The default executor evaluates the program as matrix products. The executor `"heads"` computes attention for every head that contributes to the
# result. This executor is slow, so the example is a single linear layer.

# %%
torch._dynamo.reset()
small = torch.nn.Linear(4, 4)
literal = torch.compile(small, backend="locum", fullgraph=True, options={"executor": "heads"})
z = torch.randn(3, 4)
with torch.no_grad():
    print(bool(torch.allclose(literal(z), small(z), atol=1e-6)))
print(locum.torch.report(literal).executors)

# %% [markdown]
# [PyTorch models on U](../torch.md) also describes training, dynamic shapes and the supported operations.
