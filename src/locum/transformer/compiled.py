"""A program as a transformer: weights, and how to feed and read them.

The weights do all the work; this object only turns tokens into rows of ``W_E`` and the outputs of
``W_U`` back into tokens or numbers.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from locum.errors import ExecutionError, InputError
from locum.graph import Node, is_atom, loads, postorder
from locum.graph.atoms import identity
from locum.transformer.architecture import TransformerArchitecture
from locum.transformer.cache import ActivationCache
from locum.transformer.config import Config
from locum.transformer.exports import lens
from locum.transformer.folder import saving
from locum.transformer.forward import Tap, forward
from locum.transformer.notebook import model_html
from locum.transformer.report import render
from locum.transformer.residual import ResidualStream
from locum.transformer.weights import Array, Weights

#: A batch of sequences of one length.
Rows: TypeAlias = Sequence[Sequence[Any]]


class CompiledTransformer:
    """A transformer that computes what a RASP program computes."""

    def __init__(self, config: Config, weights: Weights) -> None:
        self.config = config
        self.weights = weights

    def __repr__(self) -> str:
        name = f" of {self.config.name}" if self.config.name else ""
        return f"<CompiledTransformer{name}: {self.architecture}>"

    def _repr_html_(self) -> str:
        return model_html(self.config, self.weights)

    # What it is ---------------------------------------------------------------------------------

    @functools.cached_property
    def architecture(self) -> TransformerArchitecture:
        """Layers, heads, sizes and counts of parameters."""
        return TransformerArchitecture.of(self.config, self.weights)

    @property
    def slots(self) -> tuple[str, ...]:
        """What each slot of the residual stream holds."""
        return self.config.slots

    @property
    def hash(self) -> str:
        """SHA-256 over names, shapes, dtypes and numbers of the weights (not over the config)."""
        return self.weights.fingerprint()

    @property
    def program(self) -> Node:
        """The program that it was compiled from."""
        if not self.config.program:
            raise InputError("this transformer does not say which program it was compiled from")
        return loads(self.config.program)

    @property
    def error_bound(self) -> float:
        """How far it may be from the program, at most: 0 where nothing but rounding comes between."""
        bound = self.config.report.get("error_bound", 0.0)
        # A report may come from a file that says anything: of what is no number, nothing is known.
        return float(bound) if isinstance(bound, (int, float)) else math.inf

    def report(self) -> str:
        """What the compiler has to say, as text: sizes, how things were realised, bounds."""
        data = {"name": self.config.name} if self.config.name else {}
        return render(data | {"architecture": str(self.architecture)} | self.config.report)

    # What it does -------------------------------------------------------------------------------

    def __call__(self, inputs: Any) -> Any:
        """The program's answer: a list for a list (or a string), an array for an array."""
        batch, answer = self._read(inputs)
        return answer(self._run(batch))

    def run_with_cache(self, inputs: Any) -> tuple[Any, ActivationCache]:
        """The answer, and every activation under the name of its TransformerLens hook."""
        batch, answer = self._read(inputs)
        activations: dict[str, Array] = {}
        found = answer(self._run(batch, activations.__setitem__))
        return found, ActivationCache(activations, len(self.weights.layers))

    def residual(self, inputs: Any) -> ResidualStream:
        """Every slot by position and layer, for one input (not a batch)."""
        batch, _ = self._read(inputs)
        if len(batch) != 1:
            raise InputError(
                f"the residual stream is that of one input, but this is a batch of {len(batch)}"
            )
        shown: dict[str, Array] = {}
        self._run(batch, shown.__setitem__)
        moments: dict[str, Array] = {"embedding": shown["hook_embed"] + shown["hook_pos_embed"]}
        for number in range(len(self.weights.layers)):
            moments[f"layer {number}, attention"] = shown[f"blocks.{number}.hook_resid_mid"]
            moments[f"layer {number}, feed-forward"] = shown[f"blocks.{number}.hook_resid_post"]
        return ResidualStream(
            self.slots,
            tuple(moments),
            (*(["sink"] if self.config.sink else []), *(str(token) for token in batch[0])),
            np.concatenate(list(moments.values())),
        )

    def _run(self, batch: Rows, tap: Tap | None = None) -> list[list[Any]]:
        words, places = self._embeddings(batch)
        if tap is not None:
            tap("hook_embed", words)
            tap("hook_pos_embed", places)
        return self.read_off(forward(self.weights, words + places, sink=self.config.sink, tap=tap))

    def encode(self, inputs: Any) -> Any:
        """Inputs as the exported networks take them, [batch, position]: token ids, or numbers."""
        return self._encode(self._read(inputs)[0])

    def decode(self, logits: Any) -> list[list[Any]]:
        """Logits [batch, position, d_vocab_out] as answers: numbers, or tokens of greatest logit."""
        found = np.asarray(logits)
        if not np.isfinite(found).all():
            raise ExecutionError(
                "a number left the range of the floats", "the residual stream", kind="OverflowError"
            )
        if self.config.outputs is None:
            return [[float(number) for number in row] for row in found[..., 0]]
        return [[self.config.outputs[i] for i in row] for row in found.argmax(axis=-1).tolist()]

    def embed(self, batch: Rows) -> Array:
        """The residual stream before the first layer, [batch, position, slot]."""
        words, places = self._embeddings(batch)
        return words + places

    def read_off(self, stream: Array) -> list[list[Any]]:
        """The answers, from the stream behind the last layer."""
        with np.errstate(all="ignore"):
            return self.decode(stream[:, self.config.sink :] @ self.weights.W_U + self.weights.b_U)

    def _embeddings(self, batch: Rows) -> tuple[Array, Array]:
        """What tokens put into the stream, and what positions do; tokens put nothing into the sink."""
        weights, sink = self.weights, int(self.config.sink)
        encoded = self._encode(batch)
        size = encoded.shape[1] + sink
        places = np.repeat(weights.W_pos[None, :size], len(batch), axis=0)
        words = np.zeros_like(places)
        if self.config.vocabulary is None:
            with np.errstate(all="ignore"):
                words[:, sink:] = encoded.astype(places.dtype)[..., None] * weights.W_E[0]
        else:
            words[:, sink:] = weights.W_E[encoded]
        return words, places

    # What it becomes ----------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write ``config.json`` and ``model.safetensors`` into a folder, whole or not at all."""
        saving.write(self.config, self.weights, folder)

    def to_torch(self) -> Any:
        """An ``nn.Module`` with the same names, shapes and numbers."""
        with _needs("torch", "torch"):
            from locum.transformer.exports.torch_module import TorchTransformer
        return TorchTransformer(self.config, self.weights)

    def to_encoder(self) -> Any:
        """Return a module around a stock ``nn.TransformerEncoder`` (``.encoder``), in evaluation mode.

        Its norms are replaced by identities. For softmax attention with gelu or relu feed-forwards.
        """
        with _needs("torch", "torch"):
            from locum.transformer.exports.stock_encoder import StockEncoder
        return StockEncoder(self.config, self.weights)

    def transformer_lens_config(self) -> dict[str, Any]:
        """The fields of a ``HookedTransformerConfig`` for this model (``dtype`` by its name)."""
        return lens.lens_config(self.config, self.weights)

    def state_dict_for_transformer_lens(self) -> dict[str, Array]:
        """The weights in TransformerLens's uniform shapes, with one more slot, which is always 1."""
        return lens.lens_state(self.config, self.weights)

    def transformer_lens_inputs(self, inputs: Any) -> Any:
        """What TransformerLens is given: ids; for numbers, the stream (``start_at_layer=0``)."""
        rows = self._read(inputs)[0]
        return lens.lens_inputs(self.config, self._encode(rows), self.embed(rows))

    def to_transformer_lens(self) -> Any:
        """A ``HookedTransformer``; since TransformerLens 4.0, a ``TransformerBridge``."""
        with _needs("torch", "torch"):
            importlib.import_module("torch")
        with _needs("transformer_lens"):
            importlib.import_module("transformer_lens")
        return lens.to_lens(self.config, self.weights)

    def to_onnx(self, path: str | Path) -> None:
        """Write a graph of ONNX: from ``inputs``, as ``encode`` gives them, to ``logits``."""
        from locum.transformer.exports.onnx_graph import write_onnx

        with _needs("onnx", "onnx"):
            importlib.import_module("onnx")
        write_onnx(self.config, self.weights, path)

    # What comes in ------------------------------------------------------------------------------

    def _read(self, inputs: Any) -> tuple[list[list[Any]], Any]:
        from locum.execution.domains.floats import FloatDomain
        from locum.execution.inputs import read

        found = read(inputs, FloatDomain())
        # Arrays and tensors as lists of Python's own numbers.
        rows = [row.tolist() if hasattr(row, "tolist") else list(row) for row in found.sequences]
        for row in rows:
            self._check_length(len(row))
        return rows, found.answer

    def _encode(self, batch: Rows) -> Any:
        vocabulary = self.config.vocabulary
        if vocabulary is None:
            if all(set(map(type, row)) == {float} for row in batch):  # at once, for large batches
                numbers = np.array(batch, dtype=np.float64)
                if (np.abs(numbers) <= np.finfo(self.config.dtype).max).all():
                    return self._inside(numbers)
            numbers = np.array([[self._number(token) for token in row] for row in batch], np.float64)
            return self._inside(numbers)
        return np.array([[self._id(token) for token in row] for row in batch], dtype=np.int64)

    def _inside(self, numbers: Array) -> Array:
        """The numbers, if they lie where the network was made for them."""
        if self.config.ranges is None:
            return numbers
        ends = np.array(self.config.ranges)[: numbers.shape[1]]
        # A number that was rounded to the network's own type is still inside.
        rounded = ends.astype(self.config.dtype)
        low, high = np.minimum(ends, rounded)[:, 0], np.maximum(ends, rounded)[:, 1]
        outside = ~((low <= numbers) & (numbers <= high))
        if outside.any():
            row, place = np.argwhere(outside)[0]
            least, most = ends[place % len(ends)]
            raise InputError(
                f"the input has {float(numbers[row, place])!r} at position {place}, but this "
                f"transformer was compiled for numbers from {least:g} to {most:g} there (ranges=…)"
            )
        return numbers

    def _check_length(self, size: int) -> None:
        shortest, longest = self.config.lengths
        if not shortest <= size <= longest:
            wanted = (
                f"exactly {longest} tokens"
                if shortest == longest
                else f"{shortest} to {longest} tokens"
            )
            raise InputError(f"this transformer takes {wanted}, but the input has {size}")

    def _number(self, token: Any) -> float:
        if isinstance(token, str) or not is_atom(token):
            raise InputError(f"this transformer takes numbers, but the input has {token!r}")
        try:
            number = float(token)
        except OverflowError:
            number = math.inf
        largest = float(np.finfo(self.config.dtype).max)
        held = np.dtype(self.config.dtype).type
        if not abs(number) <= largest or (isinstance(token, int) and int(held(number)) != token):
            shown = repr(token) if abs(number) < 1e30 else "a number"
            raise InputError(f"the input has {shown}, which is beyond what a {self.config.dtype} holds")
        return number

    @functools.cached_property
    def _ids(self) -> dict[Any, int]:
        """The row of W_E for each token.

        1, 1.0 and True are written differently, and a program that reads how tokens are written tells
        them apart; for any other, equal numbers are one token.
        """
        tokens = list(enumerate(self.config.vocabulary or ()))
        exact = {identity(token): i for i, token in tokens}
        if any(node.op == "tokens" and node.attributes["cast"] == "str" for node in self._nodes()):
            return exact
        return {token: i for i, token in reversed(tokens)} | exact

    def _nodes(self) -> Iterator[Node]:
        return postorder(loads(self.config.program)) if self.config.program else iter(())

    def _id(self, token: Any) -> int:
        place = self._ids.get(identity(token))
        if place is None:
            place = self._ids.get(token)
        vocabulary = self.config.vocabulary or ()
        if place is None:
            known = ", ".join(map(repr, vocabulary[:8])) + (", …" if len(vocabulary) > 8 else "")
            raise InputError(f"the input has {token!r}, which is not in the vocabulary: {known}")
        for wrong, why in self.config.undefined:
            if identity(wrong) == identity(vocabulary[place]):
                raise ExecutionError(why, f"the token {token!r}", kind="undefined")
        return place


def load(folder: str | Path, *, limit: int = saving.WEIGHTS_LIMIT) -> CompiledTransformer:
    """Return the model that :meth:`CompiledTransformer.save` wrote, bit for bit, or raise InputError.

    Weights of more than ``limit`` bytes are refused before any of them is read.
    """
    return CompiledTransformer(*saving.read(folder, limit))


@contextlib.contextmanager
def _needs(package: str, extra: str = "") -> Iterator[None]:
    """Say which package an export needs where it is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != package:
            raise
        command = f"pip install 'locum[{extra}]'" if extra else f"pip install {package}"
        raise InputError(f"{package} is not installed: {command}") from None
