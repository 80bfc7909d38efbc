"""Models on a GPU: torch's encoders, a Llama-like prefill, U(T, X), batches, generation.

The cases of ``bench_real_model.py --device cuda``. Each row times its kinds of work one after another
in every round, waiting for the GPU before and after each: torch or the library itself ("peer"), U by
its documented calls, and the peer a second time (the control, A/A). Ratios are medians over rounds. A
case that fails prints its error in its row. Every row is printed as soon as it is measured.
"""

from __future__ import annotations

import copy
import gc
import importlib
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import nn

import locum
from locum.simulators import Attention, UniversalSimulator

Work = Callable[[], Any]
Row = dict[str, Any]
#: Layers, columns, heads, batch, rows; and smaller ones, to try the script.
ENCODERS = [(6, 384, 12, 32, 128), (12, 768, 12, 8, 512)]
SMALL_ENCODERS = [(2, 32, 2, 2, 8)]
DTYPES = ("float32", "bfloat16", "float16")


class Cases:
    """Measures one case after another on a device."""

    def __init__(self, device: str, seconds: float, small: bool) -> None:
        self.device, self.seconds, self.small = device, seconds, small

    def rows(self) -> Iterator[Row]:
        """Give the row of each case."""
        for case, work in self.cases():
            began = time.perf_counter()
            try:
                row = work()
            except Exception as error:
                row = {"error": f"{type(error).__name__}: {error}"[:500]}
            gc.collect()
            if self.device == "cuda":
                torch.cuda.empty_cache()
            yield {"case": case, **row, "seconds": round(time.perf_counter() - began, 1)}

    def cases(self) -> Iterator[tuple[str, Callable[[], Row]]]:
        """List the cases."""
        for dtype in DTYPES:
            for sizes in SMALL_ENCODERS if self.small else ENCODERS:
                layers, d, _, batch, n = sizes
                yield f"encoder {layers}×{d}, {batch}×{n}, {dtype}", partial(self.encoder, sizes, dtype)
            if dtype != "float16":
                yield f"Llama-like prefill, {dtype}", partial(self.prefill, dtype)
            if dtype == "float32":
                for order in [(64, 64, 64), *([] if self.small else [(512, 768, 768)])]:
                    for batch in (1, 32):
                        name = f"U(T, X) of {order}" + (f", batch of {batch}" if batch > 1 else "")
                        yield name, partial(self.attention, order, batch)
        yield "generation, GPT-2 of 6×128", partial(self.generation, "gpt2")
        yield "generation, Llama of 8×1024", partial(self.generation, "llama")
        for sizes in SMALL_ENCODERS if self.small else ENCODERS:
            layers, d, _, batch, n = sizes
            name = f"encoder {layers}×{d}, {batch}×{n}, float32 by tf32"
            yield name, partial(self.encoder, sizes, "float32", True)

    def encoder(self, sizes: tuple[int, int, int, int, int], dtype: str, tf32: bool = False) -> Row:
        """Measure an nn.TransformerEncoder, its stand-in, and locum.simulate of it."""
        layers, d, heads, batch, n = sizes
        torch.manual_seed(0)
        kind = {"device": self.device, "dtype": getattr(torch, dtype)}
        layer = nn.TransformerEncoderLayer(d, heads, 4 * d, 0.0, "gelu", batch_first=True)
        encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).to(**kind).eval()
        on_U, X = locum.stand_in(encoder), torch.randn(batch, n, d, **kind)
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high" if tf32 else "highest")
        # Torch's fast path on a GPU takes GELU's approximation by tanh for GELU: not the exact one.
        torch.backends.mha.set_fastpath_enabled(False)
        exact = copy.deepcopy(encoder).double()(X.double())
        torch.backends.mha.set_fastpath_enabled(True)
        try:
            return self.compared(
                {
                    "peer": lambda: encoder(X),
                    "stand_in": lambda: on_U(X),
                    "simulate": lambda: locum.simulate(encoder, X),
                },
                exact,
                sum(parameter.nbytes for parameter in encoder.parameters()) + X.nbytes,
            )
        finally:
            torch.set_float32_matmul_precision(before)

    def prefill(self, dtype: str) -> Row:
        """Measure the first pass of a decoder over its prompt."""
        transformers: Any = importlib.import_module("transformers")
        locum.register_attention()
        models = []
        for implementation in ("sdpa", "locum"):
            torch.manual_seed(0)
            model = transformers.LlamaModel(self.llama()).to(self.device, getattr(torch, dtype)).eval()
            model.set_attn_implementation(implementation)
            models.append(model)
        peer, on_U = models
        ids = torch.randint(0, 1000, (2, 16) if self.small else (4, 512), device=self.device)
        work: dict[str, Work] = {
            "peer": lambda: peer(input_ids=ids, use_cache=False).last_hidden_state,
            "attention": lambda: on_U(input_ids=ids, use_cache=False).last_hidden_state,
            "simulate": lambda: locum.simulate(peer, ids).last_hidden_state,
        }
        return self.compared(work)

    def llama(self) -> Any:
        """Return the config of a decoder of Llama's kind."""
        transformers: Any = importlib.import_module("transformers")
        sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
        heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
        if not self.small:
            sizes = {"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 8}
            heads = {"num_attention_heads": 16, "num_key_value_heads": 4}
        return transformers.LlamaConfig(
            vocab_size=1000, eos_token_id=None, bos_token_id=0, pad_token_id=0, **sizes, **heads
        )

    def attention(self, order: tuple[int, int, int], batch: int) -> Row:
        """Measure U(T, X) of the order (n, d, d_v) over the same algebra written directly."""
        n, d, d_v = order
        torch.manual_seed(0)
        X, A, V = (
            torch.randn(shape, device=self.device) * scale
            for shape, scale in (((batch, n, d), 1.0), ((d, d), 1 / d), ((d, d_v), d**-0.5))
        )
        if batch == 1:
            X = X[0]
        U, T = UniversalSimulator(n, d, d_v), Attention(A, V)
        attend = nn.functional.scaled_dot_product_attention

        def fused() -> torch.Tensor:
            q, k, v = ((y if y.ndim == 3 else y[None])[:, None] for y in (X @ A, X, X @ V))
            return attend(q, k, v, scale=1.0).reshape(*X.shape[:-1], d_v)

        work: dict[str, Work] = {
            "peer": lambda: torch.softmax(X @ A @ X.mT, -1) @ (X @ V),
            "U": lambda: U(T, X),
            "fused": fused,
        }
        return self.compared(work)

    def generation(self, kind: str) -> Row:
        """Measure milliseconds per token, over transformers with its cache."""
        transformers: Any = importlib.import_module("transformers")
        torch.manual_seed(0)
        positions = 16 if self.small else 64
        if kind == "llama":
            model = transformers.LlamaForCausalLM(self.llama())
        else:
            config = transformers.GPT2Config(
                vocab_size=5000, n_embd=128, n_layer=6, n_head=4, n_positions=positions,
                bos_token_id=0, eos_token_id=None, pad_token_id=0, tie_word_embeddings=False,
            )  # fmt: skip
            model = transformers.GPT2LMHeadModel(config)
        for name, parameter in model.named_parameters():  # no biases, which one token would win
            gains = ("ln" in name or "norm" in name) and name.endswith("weight")
            spread = 0.0 if name.endswith("bias") else 0.1
            parameter.data = gains + spread * torch.randn(parameter.shape)
        model = model.to(self.device).eval()
        new = positions - 8
        prompt = torch.randint(0, 1000, (1, 8), device=self.device)

        def theirs() -> torch.Tensor:
            written: torch.Tensor = model.generate(prompt, max_new_tokens=new, do_sample=False)
            return written[:, 8:]

        def ours() -> torch.Tensor:
            written = locum.generate(model, prompt, max_new_tokens=new)
            return torch.tensor([written.ids], device=self.device)

        row = self.compared({"peer": theirs, "generate": ours})
        row["same"], row["tokens"] = row.pop("error_generate") == 0, new
        row["peer_ms_per_token"] = row["peer_ms"] / new
        return row

    def compared(
        self,
        work: dict[str, Work],
        exact: torch.Tensor | None = None,
        inputs: int = 0,
    ) -> Row:
        """Time each kind of work beside the peer; greatest differences and memory of each.

        Differences are those from the peer, or, with ``exact``, those of all from that. ``given`` are
        the bytes of parameters and inputs, which count to the memory of each.
        """
        peer = work["peer"]
        expected = peer().double() if exact is None else exact
        row: Row = {"scale": float(expected.abs().max())}
        memory = {}
        for name, one in work.items():
            memory[name] = self.memory(one, inputs)
            if name != "peer" or exact is not None:
                row[f"error_{name}"] = float((one().double() - expected).abs().max())
        times = self.interleaved({**work, "control": peer})
        row["rounds"] = len(times["peer"])
        row["peer_ms"] = statistics.median(times["peer"]) * 1e3
        for name in times.keys() - {"peer"}:
            ratios = sorted(p / q for p, q in zip(times[name], times["peer"], strict=True))
            row[name] = statistics.median(ratios)
            row[f"{name}_quartiles"] = [ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]]
        row["memory_mb"] = memory
        return row

    def interleaved(self, work: dict[str, Work]) -> dict[str, list[float]]:
        """Return the times of each kind of work, one after the other in every round."""
        for one in work.values():
            for _ in range(3):
                one()
        times: dict[str, list[float]] = {name: [] for name in work}
        started = time.perf_counter()
        while time.perf_counter() - started < self.seconds or len(times["peer"]) < 5:
            for name, one in work.items():
                begin = self.clock()
                one()
                times[name].append(self.clock() - begin)
        return times

    def clock(self) -> float:
        """Return the time when all that was asked of the device is done."""
        if self.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def memory(self, work: Work, inputs: int) -> dict[str, float] | None:
        """Return MB of a run beyond what was there before, the same with what is given, what stays."""
        if self.device != "cuda":
            return None
        gc.collect()
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        for _ in range(3):  # plans are made, and calls recorded
            work()
        torch.cuda.synchronize()
        kept = torch.cuda.memory_allocated() - before
        torch.cuda.reset_peak_memory_stats()
        work()
        torch.cuda.synchronize()
        peak = torch.cuda.max_memory_allocated()
        return {
            "beyond": (peak - before) / 1e6,
            "in_all": (inputs + peak - before) / 1e6,
            "kept": kept / 1e6,
        }


def measured(device: str, seconds: float, small: bool, json: bool) -> list[Row]:
    """Return all rows; each is printed when it is there (beside ``--json``, to the error stream)."""
    rows = []
    with torch.no_grad():
        for row in Cases(device, seconds, small).rows():
            rows.append(row)
            print(line(row), file=sys.stderr if json else sys.stdout, flush=True)
    return rows


def line(row: Row) -> str:
    """Put a row into words."""
    if "error" in row:
        return f"{row['case']}: failed after {row['seconds']} s: {row['error']}"
    result = f"{row['case']}: {row['peer_ms']:.3f} ms"
    if "error_peer" in row:
        result += f" error {row['error_peer']:.1e}"
    for name in ("stand_in", "simulate", "attention", "U", "fused", "generate", "control"):
        if name in row:
            low, high = row[f"{name}_quartiles"]
            result += f", {name} {row[name]:.3f} ({low:.3f}–{high:.3f})"
            if f"error_{name}" in row:
                result += f" error {row[f'error_{name}']:.1e}"
    if "same" in row:
        result += f"; same text: {row['same']}"
    if any(row["memory_mb"].values()):
        each = (f"{name} {one['in_all']:.1f}" for name, one in row["memory_mb"].items())
        result += f"; MB: {', '.join(each)}"
    return result
