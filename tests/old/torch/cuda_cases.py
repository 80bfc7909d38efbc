"""Compare the backend with eager execution on a GPU: ``python -m tests.old.torch.cuda_cases --json``.

The cases are attention with each of PyTorch's kernels, layers, and small models of transformers,
forward and backward, in several types; and calls that CUDA graphs run. The error against float64 must
be at most twice that of eager execution, or small.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

import locum.torch
from locum.torch.backend import backend

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
#: Errors that count as none, relative to the largest entry.
SMALL = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 8e-3, torch.float16: 1e-3}
Case = tuple[str, Callable[[str], dict[str, Any]]]


class Attention(nn.Module):
    """Scaled dot-product attention of three tensors."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def forward(self, q: Any, k: Any, v: Any, mask: Any = None) -> Any:
        attend = nn.functional.scaled_dot_product_attention
        return attend(q, k, v, attn_mask=mask, **self.options)


def compare(
    module: nn.Module, inputs: tuple[Any, ...], kernel: SDPBackend | None, device: str
) -> dict[str, Any]:
    """Return the errors of eager execution and of U against float64, for outputs and gradients."""

    def run(function: Any, given: tuple[Any, ...], one: nn.Module) -> list[Any]:
        leaves = [x.detach().clone().requires_grad_() if x.is_floating_point() else x for x in given]
        output = function(*leaves)
        output = output if isinstance(output, torch.Tensor) else output[0]
        wide_enough = output if output.dtype == torch.float64 else output.float()
        wide_enough.square().mean().backward()
        gradients = [x.grad for x in (*leaves, *one.parameters()) if x is not None and x.requires_grad]
        return [output.detach(), *(g for g in gradients if g is not None)]

    module = module.to(device)
    given = tuple(x.to(device) for x in inputs)
    dtype = next(x.dtype for x in given if x.is_floating_point())
    wide = copy.deepcopy(module).double().cpu()
    exact = run(
        wide, tuple(x.cpu().double() if x.is_floating_point() else x.cpu() for x in given), wide
    )
    choice = sdpa_kernel(kernel) if kernel is not None else warnings.catch_warnings()
    with choice:
        eager = run(module, given, module)
        for parameter in module.parameters():
            parameter.grad = None
        torch._dynamo.reset()
        compiled = torch.compile(module, backend=backend, fullgraph=True, dynamic=False)
        found = run(compiled, given, module)
    errors = []
    for one, two, true in zip(eager, found, exact, strict=True):
        assert (one.shape, one.dtype, one.stride()) == (two.shape, two.dtype, two.stride())
        scale = max(float(true.abs().max()), 1e-30)
        pair = [float((x.cpu().double() - true).abs().max()) / scale for x in (one, two)]
        errors.append(pair)
    holds = all(u <= max(2 * e, SMALL[dtype]) for e, u in errors)
    return {"errors": errors, "holds": holds}


def attention_cases() -> Iterator[Case]:
    """List attention with each kernel."""
    kernels = {
        "math": SDPBackend.MATH,
        "efficient": SDPBackend.EFFICIENT_ATTENTION,
        "flash": SDPBackend.FLASH_ATTENTION,
        "cudnn": SDPBackend.CUDNN_ATTENTION,
    }
    for (name, kernel), dtype, causal in itertools.product(kernels.items(), DTYPES, (False, True)):
        if dtype == torch.float32 and name in ("flash", "cudnn"):
            continue

        def work(device: str, kernel: Any = kernel, dtype: Any = dtype, causal: bool = causal) -> Any:
            torch.manual_seed(0)
            q, k, v = (torch.randn(2, 4, 24, 16).to(dtype) for _ in range(3))
            return compare(Attention(is_causal=causal), (q, k, v), kernel, device)

        yield f"attention {name} {dtype} causal={causal}", work
    for dtype in DTYPES:

        def masked(device: str, dtype: Any = dtype) -> Any:
            torch.manual_seed(0)
            q, k, v = (torch.randn(2, 4, 24, 16).to(dtype) for _ in range(3))
            mask = torch.rand(2, 1, 24, 24) > 0.3
            return compare(Attention(), (q, k, v, mask), None, device)

        yield f"attention with a mask {dtype}", masked


def model_cases() -> Iterator[Case]:
    """List layers and small models."""
    transformers = __import__("transformers")
    small = {
        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
        "vocab_size": 60, "max_position_embeddings": 32,
    }  # fmt: skip
    ids = torch.randint(0, 60, (2, 8), generator=torch.Generator().manual_seed(0))
    configs = {
        "bert": transformers.BertConfig(**small),
        "llama": transformers.LlamaConfig(**small, num_key_value_heads=2),
        "gpt2": transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=60, n_positions=32),
    }
    for (name, config), dtype in itertools.product(configs.items(), DTYPES):

        def work(device: str, config: Any = config, dtype: Any = dtype) -> Any:
            torch.manual_seed(0)
            model = transformers.AutoModel.from_config(config).eval().to(device)
            for parameter in model.parameters():
                parameter.data.normal_(std=0.2)
            inner = copy.deepcopy(model).to(dtype)
            given = ids.to(device)
            with torch.no_grad():
                exact = copy.deepcopy(model).double()(given).last_hidden_state
                eager = inner(given).last_hidden_state
                torch._dynamo.reset()
                inner.compile(backend=backend, fullgraph=True, dynamic=False)
                for _ in range(5):  # the last calls run a CUDA graph
                    found = inner(given.clone()).last_hidden_state
            scale = float(exact.abs().max())
            errors = [[float((x.double() - exact).abs().max()) / scale for x in (eager, found)]]
            share = locum.torch.report(inner).share
            return {
                "errors": errors,
                "share": share,
                "holds": share == 1 and errors[0][1] <= max(2 * errors[0][0], SMALL[dtype]),
            }

        yield f"{name} {dtype}", work

    def train(device: str) -> dict[str, Any]:
        weights = []
        direction = torch.randn(32, dtype=torch.float64).to(device)
        for compiled in (False, True):
            torch.manual_seed(0)
            model = (
                transformers.BertModel(configs["bert"], add_pooling_layer=False)
                .double()
                .to(device)
                .train()
            )
            if compiled:
                torch._dynamo.reset()
                model.compile(backend=backend, fullgraph=True, dynamic=False)
            optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
            torch.manual_seed(1)
            for _ in range(3):
                optimiser.zero_grad()
                (model(ids.to(device)).last_hidden_state * direction).sum().backward()
                optimiser.step()
            weights.append(torch.cat([p.detach().reshape(-1) for p in model.parameters()]))
        difference = float((weights[0] - weights[1]).abs().max())
        return {"errors": [[0.0, difference]], "holds": difference < 1e-9}

    yield "training with dropout, float64", train

    def generate(device: str) -> dict[str, Any]:
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(configs["llama"]).eval().to(device)
        for parameter in model.parameters():
            parameter.data.normal_(std=0.3)
        chosen: dict[str, Any] = {
            "max_new_tokens": 8,
            "do_sample": False,
            "disable_compile": True,
            "pad_token_id": 0,
        }
        chosen["cache_implementation"] = "static"
        expected = model.generate(ids.to(device), **chosen)
        torch._dynamo.reset()
        model.compile(backend=backend, fullgraph=True)
        found = model.generate(ids.to(device), **chosen)
        report = locum.torch.report(model)
        return {
            "errors": [],
            "runs": report.runs,
            "holds": torch.equal(expected, found) and report.runs > 6,
        }

    yield "generation with a static cache", generate

    def convolve(device: str) -> dict[str, Any]:
        torch.manual_seed(0)
        net = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.GELU(), nn.Conv2d(4, 2, 2)
        )
        return compare(
            net, (torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last),), None, device
        )

    yield "convolutions in channels_last", convolve


def repeated_cases() -> Iterator[Case]:
    """List calls that are repeated, so that CUDA graphs run them."""
    rounds = 8

    def call_again(device: str) -> dict[str, Any]:
        """Keep all results, change parameters in place, exchange one, and use two streams."""
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8)).to(device)
        torch._dynamo.reset()
        compiled = torch.compile(net, backend=backend, fullgraph=True, dynamic=False)
        kept = []
        other: Any = torch.cuda.Stream
        streams = [torch.cuda.current_stream(), other()]
        with torch.no_grad():
            for number in range(4 * rounds):
                x = torch.randn(5, 16, device=device)
                if number % rounds == 5:
                    next(net.parameters()).mul_(1.5)
                if number == 2 * rounds:
                    net[2].bias = nn.Parameter(torch.randn(8, device=device))
                stream = streams[number >= 3 * rounds and number % 2]
                stream.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(stream):
                    kept.append((net(x), compiled(x)))
                torch.cuda.current_stream().wait_stream(stream)
        worst = max(float((one - two).abs().max()) for one, two in kept)
        return {"errors": [[0.0, worst]], "holds": worst < 1e-5}

    yield "repeated calls of a network", call_again

    def alternate(device: str) -> dict[str, Any]:
        """Alternate between two models, whose graphs share memory."""
        torch.manual_seed(0)
        nets = [
            nn.Sequential(nn.Linear(n, 64), nn.Tanh(), nn.Linear(64, n)).to(device) for n in (8, 24)
        ]
        torch._dynamo.reset()
        compiled = [torch.compile(net, backend=backend, fullgraph=True, dynamic=False) for net in nets]
        kept = []
        with torch.no_grad():
            for _ in range(rounds):
                for net, on_u, n in zip(nets, compiled, (8, 24), strict=True):
                    x = torch.randn(3, n, device=device)
                    kept.append((net(x), on_u(x)))
        worst = max(float((one - two).abs().max()) for one, two in kept)
        return {"errors": [[0.0, worst]], "holds": worst < 1e-5}

    yield "two models in turn", alternate

    def simulate(device: str) -> dict[str, Any]:
        """Call U with other X and other T, and an X that is not finite."""
        torch.manual_seed(0)
        U, worst = locum.UniversalSimulator(12, 6, 4), 0.0
        for _ in range(3):
            a, v = torch.randn(6, 6, device=device) / 3, torch.randn(6, 4, device=device)
            T = locum.Attention(a, v)
            for _ in range(rounds):
                x = torch.randn(12, 6, device=device)
                expected = torch.softmax(x @ a @ x.mT, -1) @ (x @ v)
                worst = max(worst, float((U(T, x) - expected).abs().max()))
            x[3, 2] = float("nan")
            try:
                U(T, x)
            except locum.InputError:
                continue
            worst = float("inf")
        return {"errors": [[0.0, worst]], "holds": worst < 1e-5}

    yield "U in repeated calls", simulate


def main() -> int:
    """Run all cases."""
    parser = argparse.ArgumentParser(description="Compare the backend with eager execution on a GPU.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", action="store_true", help="print one JSON object per case")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    failed = 0
    for name, work in (*repeated_cases(), *attention_cases(), *model_cases()):
        try:
            row = work(options.device)
        except Exception as error:
            row = {"holds": False, "error": f"{type(error).__name__}: {error}"[:400]}
        failed += not row["holds"]
        print(json.dumps({"case": name, **row}) if options.json else f"{name}: {row}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
