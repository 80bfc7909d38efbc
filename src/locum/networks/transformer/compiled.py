"""Run, inspect, save and export a program that was compiled into the weights of a transformer.

The weights do all the work; this object only turns tokens into rows of ``W_E`` and the outputs of
``W_U`` back into tokens or numbers.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, overload

import numpy as np

from locum.errors import InputError
from locum.graph import Node, loads
from locum.graph.node import node_of
from locum.networks.transformer.balancing import balance, slot_exponents
from locum.networks.transformer.circuit import Circuit, CircuitNode, parts_of
from locum.networks.transformer.config import Config, render
from locum.networks.transformer.encoding import Encoding, Rows
from locum.networks.transformer.exports import lens
from locum.networks.transformer.folder import saving
from locum.networks.transformer.forward import ActivationCache, Tap, affine, forward, shown_to
from locum.networks.transformer.interventions import ForwardHook, Interventions, tap_of
from locum.networks.transformer.notebook import model_html
from locum.networks.transformer.residual import ResidualStream
from locum.networks.transformer.transformer_architecture import TransformerArchitecture
from locum.networks.transformer.weights import Array, Weights

#: Tokens of a large batch that are run at a time: their activations fit into the cache of a core, and
#: their matrix products are too small for threads of BLAS.
_TOKENS = 2**12


class CompiledTransformer(Interventions):
    """A transformer that computes what a RASP program computes.

    >>> import locum
    >>> flip = locum.select(locum.indices, locum.length - 1 - locum.indices, "==")
    >>> model = locum.compile(locum.aggregate(flip, locum.tokens), length=4, vocabulary="abc")
    >>> model("abc")
    ['c', 'b', 'a']
    >>> answer, cache = model.run_with_cache("abc")
    >>> cache["blocks.1.attn.hook_pattern"][0, 0].argmax(axis=-1).tolist()
    [2, 1, 0]
    >>> model.where(flip)[0].id
    'blocks.1.attn.head.0'
    >>> model.patch("abc", "cba", "blocks.1.attn", head=0)
    ['a', 'b', 'c']
    """

    def __init__(self, config: Config, weights: Weights) -> None:
        self.config = config
        self.weights = weights
        self._encoding = Encoding(config)

    def __repr__(self) -> str:
        name = f" of {self.config.name}" if self.config.name else ""
        return f"<CompiledTransformer{name}: {self.architecture}>"

    def _repr_html_(self) -> str:
        return model_html(self.config, self.weights)

    # What it is ---------------------------------------------------------------------------------

    @functools.cached_property
    def architecture(self) -> TransformerArchitecture:
        """Return layers, heads, sizes and counts of parameters."""
        return TransformerArchitecture.of(self.config, self.weights)

    @property
    def slots(self) -> tuple[str, ...]:
        """Return what each slot of the residual stream holds."""
        return self.config.slots

    @property
    def hash(self) -> str:
        """Return the SHA-256 of the names, shapes, dtypes and numbers of the weights."""
        return self.weights.fingerprint()

    @property
    def program(self) -> Node:
        """Return the program that it was compiled from."""
        if not self.config.program:
            raise InputError(
                "expected a configuration with the program it was compiled from, got one that does not "
                "say which program that is; try locum.compile"
            )
        return loads(self.config.program)

    @property
    def error_bound(self) -> float:
        """Return the certified bound of ``|network − program|``, with rounding; infinite if unknown."""
        bound = self.config.report.get("error_bound")
        # A report may come from a file, and say anything.
        return float(bound) if isinstance(bound, (int, float)) else math.inf

    def report(self) -> str:
        """Return the compiler's report as text: sizes, how everything was realised, bounds."""
        data = {"name": self.config.name} if self.config.name else {}
        report = {name: value for name, value in self.config.report.items() if name != "circuit"}
        if self.config.inputs:  # in words, without the automata
            options = self.config.report.get("options", {})
            report["options"] = {name: options[name] for name in options if name != "inputs"}
            report["inputs"] = [condition.text for condition in self.config.inputs]
        if self.config.partial:
            report["may have no value"] = list(self.config.partial)
        return render(data | {"architecture": str(self.architecture)} | report)

    # What it does -------------------------------------------------------------------------------

    @overload
    def __call__(self, inputs: np.ndarray[Any, Any], *, check: bool = True) -> np.ndarray[Any, Any]: ...
    @overload
    def __call__(
        self, inputs: Sequence[list[Any] | tuple[Any, ...]], *, check: bool = True
    ) -> list[list[Any]]: ...
    @overload
    def __call__(self, inputs: str | Sequence[Any], *, check: bool = True) -> list[Any]: ...
    def __call__(self, inputs: Any, *, check: bool = True) -> Any:
        """Return the program's answer: a list for a list (or a string), an array for an array.

        A list of lists is a batch, whose sequences may have different lengths. All values have one type
        (:func:`locum.execution.types.result_type`). Inputs that do not satisfy the conditions of
        ``compile(inputs=…)`` raise InputError. Where the program may have no value
        (``config.partial``), dense execution of that part of it checks the inputs first. Without
        ``check``, the network gives some answer to such inputs.
        """
        batches, answer = self._encoding.read_by_length(inputs)
        return answer([self._run(batch, check=check) for batch in batches])

    def run_with_cache(self, inputs: Any) -> tuple[Any, ActivationCache]:
        """Return the answer, and every activation under the name of its TransformerLens hook."""
        batch, answer = self._encoding.read(inputs)
        activations: dict[str, Array] = {}
        try:
            rows = self._run(batch, activations.__setitem__, patterns=True)
        except MemoryError:
            raise InputError(
                "the attention patterns do not fit into the memory; try model(inputs) or "
                "model.residual(inputs)"
            ) from None
        return answer(rows), ActivationCache(activations, len(self.weights.layers))

    def run_with_hooks(self, inputs: Any, fwd_hooks: Sequence[ForwardHook]) -> Any:
        """Return the answer with hooks: (name, function of an activation and ``hook``) pairs.

        A function that returns an array puts it in the activation's place, as in TransformerLens.
        """
        batch, answer = self._encoding.read(inputs)
        tap, check = tap_of(fwd_hooks)
        rows = self._run(batch, tap, patterns=True)
        check()
        return answer(rows)

    @property
    def circuit(self) -> Circuit:
        """Return which part of the network computes what, and what flows between the parts."""
        if "circuit" not in self.config.report:
            raise InputError(
                "expected a network with a circuit, as the compiler makes it, got one without; try "
                "locum.compile(model.program, …)"
            )
        return Circuit.read(self.config.report["circuit"])

    def where(self, sop: Any) -> tuple[CircuitNode, ...]:
        """Return the parts of the network that compute an s-op; none, where it is not there as it is.

        What is known from the token or the position alone is a column of an embedding; ``tokens`` and
        ``indices`` are all columns of theirs. A selector is the heads that attend by it. A sum of
        others is nowhere: whoever reads it reads its parts. What is not in the program is refused.
        """
        return parts_of(self.circuit, self.program, node_of(sop))

    def what(self, block: str, head: int | None = None) -> tuple[CircuitNode, ...]:
        """Return what a block, or one of its heads, computes: ``what("blocks.1.attn", head=0)``."""
        return self.circuit.at(block, head)

    def residual(self, inputs: Any) -> ResidualStream:
        """Return every slot by position and layer, for one input (not a batch)."""
        batch, _ = self._encoding.read(inputs)
        if len(batch) != 1:
            raise InputError(f"expected one input, got a batch of {len(batch)}")
        cache: dict[str, Array] = {}
        self._run(batch, cache.__setitem__)
        moments: dict[str, Array] = {"embedding": cache["hook_embed"] + cache["hook_pos_embed"]}
        for number in range(len(self.weights.layers)):
            moments[f"layer {number}, attention"] = cache[f"blocks.{number}.hook_resid_mid"]
            moments[f"layer {number}, feed-forward"] = cache[f"blocks.{number}.hook_resid_post"]
        return ResidualStream(
            self.slots,
            tuple(moments),
            (*(["sink"] if self.config.sink else []), *(str(token) for token in batch[0])),
            np.ldexp(
                np.concatenate(list(moments.values())), -slot_exponents(self.config, len(self.slots))
            ),
        )

    def _run(
        self, batch: Rows, tap: Tap | None = None, *, patterns: bool = False, check: bool = True
    ) -> Any:
        encoded = self._encoding.encode(batch)
        if check:
            self._encoding.check(batch)
        if tap is not None or encoded.size < 2 * _TOKENS:
            return self._encoding.decode(self._logits(encoded, tap, patterns))
        parts = np.array_split(encoded, encoded.size // _TOKENS)
        with ThreadPoolExecutor(min(len(parts), os.cpu_count() or 1)) as pool:
            logits = list(pool.map(lambda part: self._logits(part, None, False), parts))
        return self._encoding.decode(np.concatenate(logits))

    def _logits(self, encoded: Any, tap: Tap | None, patterns: bool) -> Array:
        words, places = self._embed(encoded)
        show = shown_to(tap)
        if tap is not None:
            words, places = show("hook_embed", words), show("hook_pos_embed", places.copy())
        how = {"sink": self.config.sink, "causal": self.config.causal}
        after = forward(self.weights, words + places, **how, tap=tap, patterns=patterns)
        with np.errstate(all="ignore"):
            return affine(after[:, self.config.sink :], self.weights.W_U, self.weights.b_U)

    def encode(self, inputs: Any) -> Any:
        """Return inputs as the exports take them, [batch, position]: token ids, or numbers."""
        return self._encoding.encode(self._encoding.read(inputs)[0])

    def decode(self, logits: Any, inputs: Any = None) -> list[list[Any]]:
        """Return the answers to the logits [batch, position, d_vocab_out] of an export.

        ``inputs`` are those that the logits belong to: inputs on which the program has no value raise
        an error. A model with a sink needs them: TransformerLens also gives logits of the sink, which
        are left out here; other exports do not.
        """
        # A tensor of an exported network keeps what gradients need, and may be on a GPU.
        logits = np.asarray(logits.detach().cpu() if hasattr(logits, "detach") else logits)
        if inputs is not None:
            rows, _ = self._encoding.read(inputs)
            self._encoding.check(rows)
            logits = self._encoding.without_sink(logits, rows)
        elif self.config.sink:
            raise InputError(
                "expected the inputs beside the logits, which may or may not have a row for the sink: "
                "try model.decode(logits, inputs)"
            )
        answers: list[list[Any]] = self._encoding.decode(logits).tolist()
        return answers

    def embed(self, batch: Rows) -> Array:
        """Return the residual stream before the first layer, [batch, position, slot]."""
        words, places = self.embeddings(batch)
        return words + places

    def embeddings(self, batch: Rows) -> tuple[Array, Array]:
        """Return what tokens, and what positions, add to the stream; no token stands at the sink."""
        words, places = self._embed(self._encoding.encode(batch))
        return words, places.copy()

    def _embed(self, encoded: Any) -> tuple[Array, Array]:
        weights, sink = self.weights, int(self.config.sink)
        shape = (len(encoded), encoded.shape[1] + sink, weights.W_pos.shape[1])
        places = np.broadcast_to(weights.W_pos[: shape[1]], shape)
        words = np.zeros(shape, places.dtype)
        if self.config.vocabulary is None:
            with np.errstate(all="ignore"):
                words[:, sink:] = encoded.astype(places.dtype)[..., None] * weights.W_E[0]
        else:
            words[:, sink:] = weights.W_E[encoded]
        return words, places

    # What it becomes ----------------------------------------------------------------------------

    def balanced(self) -> CompiledTransformer:
        """Return the same function by weights of nearly one size, for training and low precision.

        Slots, queries and keys, values and outputs, relu and gated units are rescaled against each
        other by powers of two: outputs are the same to the bit (``balancing.py``), and so is
        :attr:`error_bound`. Labels, heads and the circuit stay as they are; :meth:`residual` shows
        slots as they are labelled, activations by hooks are scaled.
        """
        return CompiledTransformer(*balance(self.config, self.weights))

    def save(self, folder: str | Path) -> None:
        """Write ``config.json`` and ``model.safetensors`` into a folder, completely or not at all."""
        saving.write(self.config, self.weights, folder)

    def to_torch(self) -> Any:
        """Return an ``nn.Module`` with the same names, shapes and numbers."""
        with _needs("torch", "torch"):
            from locum.networks.transformer.exports.torch_module import TorchTransformer
        return TorchTransformer(self.config, self.weights)

    def to_encoder(self) -> Any:
        """Return a module around a stock ``nn.TransformerEncoder`` (``.encoder``), in evaluation mode.

        Its norms are replaced by identities. For softmax attention with gelu or relu feed-forwards.
        """
        with _needs("torch", "torch"):
            from locum.networks.transformer.exports.torch_module import StockEncoder
        return StockEncoder(self.config, self.weights)

    def to_decoder(self) -> Any:
        """Return a module around a stock ``nn.TransformerDecoder`` (``.decoder``), in evaluation mode.

        For networks compiled with ``causal=True``; the cross-attention of its layers is all zeros.
        Otherwise as :meth:`to_encoder`.
        """
        with _needs("torch", "torch"):
            from locum.networks.transformer.exports.torch_module import StockDecoder
        return StockDecoder(self.config, self.weights)

    def transformer_lens_config(self) -> dict[str, Any]:
        """Return the fields of a ``HookedTransformerConfig`` for this model (``dtype`` by its name).

        Since TransformerLens 4.0, they are fields of a ``TransformerBridgeConfig``.
        """
        return lens.settings(self.config, self.weights)

    def state_dict_for_transformer_lens(self) -> dict[str, Any]:
        """Return the weights of :meth:`to_transformer_lens` as tensors by TransformerLens's names.

        The residual stream has one more slot than the model, which is always 1. Scores are
        q·k / √d_head, so ``W_Q`` and ``b_Q`` are √d_head times the model's.
        """
        with _needs("torch", "torch"):
            import torch
        arrays = lens.state(self.config, self.weights)
        return {name: torch.tensor(array) for name, array in arrays.items()}

    def transformer_lens_inputs(self, inputs: Any) -> Any:
        """Return the tensor that TransformerLens takes.

        These are token ids; for a model on numbers, the residual stream (``start_at_layer=0``).
        """
        with _needs("torch", "torch"):
            import torch
        rows = self._encoding.read(inputs)[0]
        return torch.tensor(lens.inputs(self.config, self._encoding.encode(rows), self.embed(rows)))

    def to_transformer_lens(self) -> Any:
        """Return a ``HookedTransformer``; since TransformerLens 4.0, a ``TransformerBridge``."""
        for package in ("torch", "transformer_lens"):
            with _needs(package, "lens"):
                importlib.import_module(package)
        return lens.to_lens(self.config, self.weights)

    def to_onnx(self, path: str | Path) -> None:
        """Write an ONNX graph from ``inputs``, as :meth:`encode` gives them, to ``logits``."""
        from locum.networks.transformer.exports.onnx_graph import write_onnx

        with _needs("onnx", "onnx"):
            importlib.import_module("onnx")
        write_onnx(self.config, self.weights, path)


def load(folder: str | Path, *, limit: int = saving.WEIGHTS_LIMIT) -> CompiledTransformer:
    """Return the model that :meth:`CompiledTransformer.save` wrote, bit for bit, or raise InputError.

    Weights of more than ``limit`` bytes are refused before any of them is read.

    >>> import locum, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     locum.compile(locum.indices + 1, length=4, vocabulary="ab").save(f"{folder}/model")
    ...     load(f"{folder}/model")("abba")
    [1, 2, 3, 4]
    """
    return CompiledTransformer(*saving.read(folder, limit))


def save(model: CompiledTransformer, folder: str | Path) -> None:
    """Write a model to a folder, from which :func:`load` reads it.

    >>> import locum, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(locum.compile(locum.indices + 1, length=4, vocabulary="ab"), f"{folder}/model")
    ...     load(f"{folder}/model")("ab")
    [1, 2]
    """
    if not isinstance(model, CompiledTransformer):
        raise InputError(
            f"expected a compiled transformer, got {type(model).__name__}; try "
            "locum.save_program for a program"
        )
    model.save(folder)


@contextlib.contextmanager
def _needs(package: str, extra: str) -> Iterator[None]:
    """Name the package that an export needs if it is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != package:
            raise
        raise InputError(f"{package} is not installed: pip install 'locum[{extra}]'") from None
