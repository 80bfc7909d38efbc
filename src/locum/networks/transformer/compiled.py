"""Run, inspect, save and export a program that was compiled into the weights of a transformer.

The model object converts inputs to token ids or numbers, and logits to outputs. The weights and the
instructions of symbolic feed-forwards compute the logits.
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
from locum.networks.transformer.circuit import CircuitNode, Found, parts_of
from locum.networks.transformer.config import Config, render
from locum.networks.transformer.encoding import Encoding, Rows
from locum.networks.transformer.exports import lens
from locum.networks.transformer.folder import saving
from locum.networks.transformer.forward import ActivationCache, Tap, forward, shown_to, unembed
from locum.networks.transformer.functions import Functions
from locum.networks.transformer.interventions import ForwardHook, Interventions, tap_of
from locum.networks.transformer.notebook import model_html
from locum.networks.transformer.path_patching import UNEMBED
from locum.networks.transformer.residual import ResidualStream
from locum.networks.transformer.transformer_architecture import TransformerArchitecture
from locum.networks.transformer.weights import Array, Weights

#: Approximate number of tokens of a large batch that a thread runs at a time. This number is small, so
#: that activations often fit into the cache of a core.
_TOKENS = 2**12


class CompiledTransformer(Interventions):
    """A transformer that computes the outputs of a RASP program, up to :attr:`error_bound`.

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

    # Properties ---------------------------------------------------------------------------------

    @functools.cached_property
    def architecture(self) -> TransformerArchitecture:
        """Numbers of layers, heads and parameters, and the widths of the network."""
        return TransformerArchitecture.of(self.config, self.weights)

    @property
    def slots(self) -> tuple[str, ...]:
        """Label of each slot of the residual stream."""
        return self.config.slots

    @property
    def hash(self) -> str:
        """SHA-256 hash of the names, shapes, dtypes and values of the weights."""
        return self.weights.fingerprint()

    @property
    def program(self) -> Node:
        """Root node of the program from which the network was compiled."""
        if not self.config.program:
            raise InputError(
                "expected a configuration with the program it was compiled from, got one "
                "without a program; try locum.compile"
            )
        return loads(self.config.program)

    @property
    def error_bound(self) -> float:
        """Certified bound on ``|network − program|``, including rounding; infinite if unknown."""
        bound = self.config.report.get("error_bound")
        return math.inf if bound is None else float(bound)

    def report(self) -> str:
        """Return the compiler's report as text: sizes, implementations of s-ops, and error bounds."""
        data = {"name": self.config.name} if self.config.name else {}
        report = {name: value for name, value in self.config.report.items() if name != "circuit"}
        if self.config.inputs:  # conditions as text, without their automata
            options = self.config.report.get("options", {})
            report["options"] = {name: options[name] for name in options if name != "inputs"}
            report["inputs"] = [condition.text for condition in self.config.inputs]
        if self.config.partial:
            report["may have no value"] = list(self.config.partial)
        return render(data | {"architecture": str(self.architecture)} | report)

    # Execution ----------------------------------------------------------------------------------

    @overload
    def __call__(self, inputs: np.ndarray[Any, Any], *, check: bool = True) -> np.ndarray[Any, Any]: ...
    @overload
    def __call__(
        self, inputs: Sequence[list[Any] | tuple[Any, ...]], *, check: bool = True
    ) -> list[list[Any]]: ...
    @overload
    def __call__(self, inputs: str | Sequence[Any], *, check: bool = True) -> list[Any]: ...
    def __call__(self, inputs: Any, *, check: bool = True) -> Any:
        """Return the program's output: an array for an array, a tensor for a tensor, otherwise a list.

        A list of lists is a batch, whose sequences may have different lengths. All values of an output
        sequence have one type (:func:`locum.execution.types.result_type`). ``InputError`` is raised for
        inputs that do not satisfy the conditions of ``compile(inputs=…)``.

        If parts of the program may be undefined (``config.partial``), dense execution of these parts
        first checks each input. With ``check=False``, neither the conditions nor these parts are
        checked, and the output for an input that fails a check may be meaningless. Tokens for which the
        program is undefined (``config.undefined``) always raise an error.
        """
        batches, answer = self._encoding.read_by_length(inputs)
        return answer([self._run(batch, check=check) for batch in batches])

    def run_with_cache(self, inputs: Any) -> tuple[Any, ActivationCache]:
        """Return the output, and a cache of activations by the names of their hooks."""
        batch, answer = self._encoding.read(inputs)
        activations: dict[str, Array] = {}
        try:
            rows = self._run(batch, activations.__setitem__, patterns=True)
        except MemoryError:
            raise InputError(
                "the attention patterns do not fit into memory; try model(inputs) or "
                "model.residual(inputs)"
            ) from None
        return answer(rows), ActivationCache(activations, len(self.weights.layers))

    def run_with_hooks(self, inputs: Any, fwd_hooks: Sequence[ForwardHook]) -> Any:
        """Return the output of a run with hooks.

        Each hook is a pair: a hook name or a predicate on names, and a function of an activation and
        ``hook``. An array returned by the function replaces the activation, as in TransformerLens.
        """
        batch, answer = self._encoding.read(inputs)
        tap, check = tap_of(fwd_hooks)
        rows = self._run(batch, tap, patterns=True)
        check()
        return answer(rows)

    def _tensors(self) -> dict[str, Array]:
        return dict(self.weights.named())

    def _functions(self, layer: int) -> Functions | None:
        feed = self.weights.layers[layer].feed_forward
        return None if feed is None else feed.functions

    def where(self, sop: Any) -> Found:
        """Return the parts of the network that represent an s-op; the attribute ``how`` classifies
        them.

        - ``computed``: these nodes compute the s-op. A function of the token alone, or of the position
          alone, is usually a column of an embedding. If ``tokens`` or ``indices`` has no separate
          column, the nodes are all columns of its embedding. For a selector, the nodes are the heads
          that attend by this selector.
        - ``combined``: the s-op was rewritten by the compiler, or is a linear combination of the
          outputs of these nodes.
        - ``merged``: the nodes compute later s-ops that bypass this s-op, for example by tables.
        - ``absent``: no node represents the s-op. For example, the output does not depend on the s-op.
          In a network of U, s-ops can also be absent because U is compiled from another program.

        ``InputError`` is raised for an s-op that is not part of the program and that no node computes.
        """
        return parts_of(self.circuit, self.program, node_of(sop))

    def what(self, block: str, head: int | None = None) -> tuple[CircuitNode, ...]:
        """Return the circuit nodes of a block or of one of its heads, such as ``what("blocks.1.attn",
        head=0)``.
        """
        return self.circuit.at(block, head)

    def residual(self, inputs: Any) -> ResidualStream:
        """Return the residual stream of one input, after the embedding and after each sublayer."""
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
            np.concatenate(list(moments.values())),
        )

    def _run(
        self, batch: Rows, tap: Tap | None = None, *, patterns: bool = False, check: bool = True
    ) -> Any:
        if check:
            self._encoding.check_conditions(batch)
        encoded = self._encoding.encode(batch)
        if check:
            self._encoding.check_values(batch)
        if tap is not None or encoded.size < 2 * _TOKENS:
            return self._encoding.decode(self._logits(encoded, tap, patterns))
        # Each part contains at least one sequence.
        parts = np.array_split(encoded, min(len(encoded), encoded.size // _TOKENS))
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
        after = show(UNEMBED, after)
        return unembed(self.weights, after[:, self.config.sink :])

    def encode(self, inputs: Any) -> Any:
        """Return inputs in the format of PyTorch models: ids or numbers, [batch, position]."""
        encoded = self._encoding.encode(self._encoding.read(inputs)[0])
        return encoded.astype(self.config.dtype) if self.config.vocabulary is None else encoded

    def decode(self, logits: Any, inputs: Any = None) -> list[list[Any]]:
        """Return the outputs for the logits [batch, position, d_vocab_out] of an exported model.

        ``inputs`` are the inputs before :meth:`encode`. An error is raised if they violate a condition
        of the model, or if a checked part of the program is undefined for them. For a model with a
        sink, ``inputs`` is required, because TransformerLens also returns logits at the sink. This
        method omits these logits.
        """
        # A tensor of an exported network may require gradients, and may be on a GPU.
        logits = np.asarray(logits.detach().cpu() if hasattr(logits, "detach") else logits)
        if inputs is not None:
            rows, _ = self._encoding.read(inputs)
            self._encoding.check_conditions(rows)
            self._encoding.check_values(rows)
            logits = self._encoding.without_sink(logits, rows)
        elif self.config.sink:
            raise InputError(
                "expected the inputs in addition to the logits, since the logits may contain a row for "
                "the sink token; try model.decode(logits, inputs)"
            )
        answers: list[list[Any]] = self._encoding.decode(logits).tolist()
        return answers

    def embed(self, batch: Rows) -> Array:
        """Return the residual stream before the first layer for a batch of inputs, [batch, position,
        slot].
        """
        words, places = self.embeddings(batch)
        return words + places

    def embeddings(self, batch: Rows) -> tuple[Array, Array]:
        """Return the token embeddings and the position embeddings of a batch, each [batch, position,
        slot].

        The token embedding of the sink is 0.
        """
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

    # Conversion ---------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write ``config.json`` and ``model.safetensors`` to a folder, completely or not at all."""
        saving.write(self.config, self.weights, folder)

    def to_torch(self) -> Any:
        """Return an ``nn.Module`` whose parameters have the same names, shapes and values as the
        weights.
        """
        with _needs("torch", "torch"):
            from locum.networks.transformer.exports.torch_module import TorchTransformer
        return TorchTransformer(self.config, self.weights)

    def transformer_lens_config(self) -> dict[str, Any]:
        """Return the fields of a ``HookedTransformerConfig`` for this model, with ``dtype`` as a
        string.

        Since TransformerLens 4.0, these are the fields of a ``TransformerBridgeConfig``.
        """
        return lens.settings(self.config, self.weights)

    def state_dict_for_transformer_lens(self) -> dict[str, Any]:
        """Return the weights of :meth:`to_transformer_lens` with the names of a ``HookedTransformer``.

        The residual stream has one extra slot, which is always 1. TransformerLens divides scores by
        √d_head, so ``W_Q`` and ``b_Q`` are multiplied by √d_head.
        """
        with _needs("torch", "torch"):
            import torch
        arrays = lens.state(self.config, self.weights)
        return {name: torch.tensor(array) for name, array in arrays.items()}

    def transformer_lens_inputs(self, inputs: Any) -> Any:
        """Return ``inputs`` as the input tensor of the TransformerLens model.

        The tensor contains token ids. For a model on numbers, the tensor is the residual stream, which
        must be passed with ``start_at_layer=0``.
        """
        with _needs("torch", "torch"):
            import torch
        rows = self._encoding.read(inputs)[0]
        encoded, stream = self._encoding.encode(rows), self.embed(rows)
        return torch.tensor(lens.inputs(self.config, encoded, stream))

    def to_transformer_lens(self) -> Any:
        """Return the model as a ``HookedTransformer`` or, since TransformerLens 4.0, a
        ``TransformerBridge``.
        """
        for package in ("torch", "transformer_lens"):
            with _needs(package, "lens"):
                importlib.import_module(package)
        return lens.to_lens(self.config, self.weights)


def load(folder: str | Path) -> CompiledTransformer:
    """Return the model in a folder written by :meth:`CompiledTransformer.save`, with bitwise equal
    weights.

    ``InputError`` is raised for a damaged folder, and for files that :meth:`CompiledTransformer.save`
    did not write. No content of the folder is executed.

    >>> import locum, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     locum.compile(locum.indices + 1, length=4, vocabulary="ab").save(f"{folder}/model")
    ...     load(f"{folder}/model")("abba")
    [1, 2, 3, 4]
    """
    return CompiledTransformer(*saving.read(folder))


def save(model: CompiledTransformer, folder: str | Path) -> None:
    """Write a compiled model to a folder, from which :func:`load` reads it.

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
    """Raise ``InputError`` with an installation command if the block fails to import ``package``."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != package:
            raise
        raise InputError(f"{package} is not installed: pip install 'locum[{extra}]'") from None
