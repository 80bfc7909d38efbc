"""Run a described model by U: one program for all layers of a stack, one run for a whole batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from locum.errors import InputError
from locum.execution.arrays import Array, is_tensor, like
from locum.simulators.matrices import is_half, stacked_rows
from locum.simulators.models.batch import simulator_of
from locum.simulators.models.embedding_and_pooling import Pooling
from locum.simulators.models.families.description import Stack
from locum.simulators.models.families.inputs import (
    Inputs,
    read_ids,
    read_inputs,
    read_padding,
    read_pixels,
    read_types,
)
from locum.simulators.models.families.outputs import BY_U, HOST, ModelOutputs
from locum.simulators.models.families.parts import looked_up
from locum.simulators.models.families.rotary import tables
from locum.simulators.models.families.stage import Stage
from locum.simulators.models.families.table import describe
from locum.simulators.models.loading import kind_of_array
from locum.simulators.models.sentence import Sentence, read_sentence
from locum.simulators.models.tokenising import Text, read_folder_tokenizer, tokenised
from locum.simulators.modules.layer import Layer
from locum.simulators.modules.masks import KeptMask
from locum.simulators.modules.module import Numbers
from locum.simulators.order import Order
from locum.simulators.prepared import Prepared
from locum.simulators.simulator import Simulator

#: Blocks of a layer that come with each run, and not with T.
OF_A_RUN = ("cosines", "sines", "score_bias", "mask", "attention_mask", "keys", "values", "places")


class Memory(NamedTuple):
    """The last states of an encoder, those of all texts one below the other, and which rows count."""

    states: Array
    mask: Numbers | None = None


class Model:
    """A model of any family, ready to be run by U."""

    def __init__(
        self,
        model: Any,
        *,
        form: str = "factored",
        dtype: str | None = None,
        backend: str | None = None,
        layers: int | None = None,
        **unknown: Any,
    ) -> None:
        """Take ``model``: a folder, or a model object of transformers (in its own dtype and device).

        ``layers``: only so many of the first ones, and nothing behind them.
        """
        if unknown:
            raise InputError(
                f"expected form, dtype, backend or layers as options of a model, got "
                f"{', '.join(sorted(unknown))}"
            )
        self.description, self.source = describe(model, form)
        #: Whether there are fewer layers than the model has.
        self.is_cut = layers is not None and self._cut(layers)
        if self.source.folder is not None:
            self.result_kind = kind_of_array(dtype, backend)
        elif dtype is not None or backend is not None:
            raise InputError("a live model is run in its own dtype: expected neither dtype nor backend")
        else:
            self.result_kind = _kind_of(self.source.tensors)
        #: The kind of array that it is computed in: half types in float32, rounded at the end.
        self.kind = self.result_kind.float() if is_half(self.result_kind) else self.result_kind
        folder, stack = self.source.folder, self.description.stack
        #: How the folder makes one row of a text, if it says so.
        self.sentence: Sentence | None = None
        if folder is not None and stack.words is not None and (folder / "modules.json").is_file():
            self.sentence = read_sentence(folder, stack.layers[0].attention.attention_order().d)
        self._prepared: dict[Any, Prepared] = {}
        self._finished: Callable[[str], None] = lambda name: None

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer of the folder, read once, which neither pads nor cuts; None without one."""
        folder = self.source.folder
        if folder is None or not (folder / "tokenizer.json").is_file():
            return None
        tokenizer = read_folder_tokenizer(folder).tokenizer
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer

    def _cut(self, layers: int) -> bool:
        """Leave out all layers but the first ones, and all that stands behind the last one."""
        stack, every = self.description.stack, len(self.description.stack.layers)
        if self.description.encoder is not None:
            raise InputError("a model of an encoder and a decoder is run whole: leave layers out")
        if not 1 <= layers <= every:
            raise InputError(f"the model has {every} layers: expected 1 to {every}, got {layers}")
        if layers == every:
            return False
        stack.layers, stack.final = stack.layers[:layers], Stage()
        self.description.outputs = {}
        return True

    def run(
        self,
        inputs: Any,
        attention_mask: Any = None,
        *,
        executor: str | None = None,
        finished: Callable[[str], None] = lambda name: None,
    ) -> ModelOutputs:
        """Run it on texts, token ids, pixels, or a dict of them as the library's tokenizers give it.

        ``finished`` is called with the name of each layer that is done.
        """
        self._finished = finished
        description = self.description
        stack, encoder = description.stack, description.encoder
        inputs_by_name = self.tokenised(inputs)
        if attention_mask is not None:
            inputs_by_name["attention_mask"] = attention_mask
        outputs: dict[str, Any] = {}
        if encoder is None:
            states, batch = self._run_stack(stack, inputs_by_name, executor)
        else:
            before, batch = self._run_stack(encoder, inputs_by_name, executor)
            of_encoder = tuple(self._shaped(state, batch) for state in before)
            outputs["encoder_last_hidden_state"] = of_encoder[-1]
            outputs["encoder_hidden_states"] = of_encoder
            states, batch = self._run_decoder(inputs_by_name, before[-1], batch, executor)
        last = states[-1]
        n = len(last) // batch
        for name, (stage, first) in description.outputs.items():
            value = stage(last, every=n if first else 1, executor=executor)
            outputs[name] = self._rounded(value) if first else self._shaped(value, batch)
        if self.sentence is not None:
            mask = read_padding(
                inputs_by_name.get("attention_mask"), "attention_mask", np.ones((batch, n))
            )
            counts = np.ones((batch, n)) if mask is None else mask
            outputs["embeddings"] = self._rounded(self._pooled(last, counts, executor))
        hidden = tuple(self._shaped(state, batch) for state in states)
        listed = hidden if stack.ends_normed else hidden[:-1]
        outputs["hidden_states" if encoder is None else "decoder_hidden_states"] = listed
        return ModelOutputs(hidden[-1], **outputs)

    def encoded(self, texts: Sequence[Sequence[int]], executor: str | None = None) -> Memory:
        """Return the last states of the encoder on the ids of texts, which a decoder attends to."""
        encoder = self.description.encoder
        assert encoder is not None
        inputs = self.tokenised([list(ids) for ids in texts])
        states, _ = self._run_stack(encoder, inputs, executor)
        mask = inputs.get("attention_mask")
        return Memory(states[-1], None if mask is None else np.asarray(mask))

    def texts(self, texts: Sequence[str]) -> list[Text]:
        """Tokenise texts by the folder's own tokenizer, cut as the folder says."""
        folder, description = self.source.folder, self.description
        if folder is None:
            raise InputError("a live model has no tokenizer: expected a folder")
        longest = (description.encoder or description.stack).longest
        return tokenised(folder, texts, longest or 10**9, self.sentence)

    def tokenised(self, inputs: Any) -> dict[str, Any]:
        """Return the inputs by the names that the library gives them, texts as their token ids."""
        description = self.description
        longest = (description.encoder or description.stack).longest
        pad = description.pad or 0
        return read_inputs(inputs, self.source.folder, longest, pad, self.sentence or Sentence())

    @property
    def where(self) -> list[tuple[str, str]]:
        """List where it runs, and what."""
        return [("host", part) for part in HOST] + [("U", part) for part in BY_U]

    def _run_stack(
        self, stack: Stack, tokenised: Mapping[str, Any], executor: str | None
    ) -> tuple[list[Array], int]:
        """Return the states of all texts, and how many texts there are."""
        if self.description.patches is not None:
            _require(tokenised, ("pixel_values",), ())
            pixels = like(read_pixels(tokenised["pixel_values"]), self.kind)
            rows = self.description.patches(pixels)
            n = len(rows) // len(pixels)
            # The first row of an image is of another kind than the others, which are patches.
            inputs = Inputs(
                np.zeros((len(pixels), n)), types=np.tile(np.arange(n) > 0, (len(pixels), 1))
            )
            X = self.embedded(stack, inputs, executor, rows)
        else:
            optional = ["attention_mask"] + ["token_type_ids"] * (stack.types is not None)
            if self.description.encoder is not None:
                optional += ["decoder_input_ids", "decoder_attention_mask"]
            _require(tokenised, ("input_ids",), tuple(optional))
            assert stack.words is not None
            ids = read_ids(tokenised["input_ids"], "input_ids", len(stack.words), stack.longest)
            mask = read_padding(tokenised.get("attention_mask"), "attention_mask", ids)
            count = 0 if stack.types is None else len(stack.types)
            inputs = Inputs(ids, mask, read_types(tokenised.get("token_type_ids"), ids, count))
            X = self.embedded(stack, inputs, executor)
        return self.layers(stack, X, inputs, executor), len(inputs.ids)

    def _run_decoder(
        self, tokenised: Mapping[str, Any], memory: Array, batch: int, executor: str | None
    ) -> tuple[list[Array], int]:
        """Return the states of a decoder that attends to an encoder's last states."""
        stack = self.description.stack
        if "decoder_input_ids" not in tokenised:
            raise InputError("this model has a decoder: expected decoder_input_ids beside input_ids")
        assert stack.words is not None
        name = "decoder_input_ids"
        ids = read_ids(tokenised[name], name, len(stack.words), stack.longest)
        if len(ids) != batch:
            raise InputError(f"{name}: expected a row for each of {batch} texts, got {len(ids)}")
        name = "decoder_attention_mask"
        inputs = Inputs(ids, read_padding(tokenised.get(name), name, ids))
        keys = read_ids(tokenised["input_ids"], "input_ids", 10**12, None)
        keys_mask = read_padding(tokenised.get("attention_mask"), "attention_mask", keys)
        X = self.embedded(stack, inputs, executor)
        return self.layers(stack, X, inputs, executor, memory, keys_mask), batch

    def embedded(
        self, stack: Stack, inputs: Inputs, executor: str | None, rows: Array | None = None
    ) -> Array:
        """Return the rows before the first layer, those of all texts one below the other."""
        if rows is None:
            assert stack.words is not None
            rows = like(looked_up(stack.words, inputs.ids), self.kind)
        places = stack.places(inputs.ids, inputs.attended) if inputs.at is None else inputs.at
        others = {}
        if stack.positions is not None:
            others["positions"] = looked_up(stack.positions, places)
        if stack.types is not None:
            kinds = np.zeros(inputs.ids.shape) if inputs.types is None else inputs.types
            others["types"] = looked_up(stack.types, kinds)
        return stack.embedding(rows, others, executor=executor)

    def layers(
        self,
        stack: Stack,
        X: Array,
        inputs: Inputs,
        executor: str | None,
        memory: Array | None = None,
        memory_mask: Numbers | None = None,
    ) -> list[Array]:
        """Return the states after each layer, the first of them X, the last behind the last norm."""
        batch, n = inputs.ids.shape
        m = 0 if memory is None else len(memory) // batch
        positions = np.arange(n)
        others: dict[str, Any] = {}
        if stack.frequencies is not None:
            others |= tables(stack.frequencies, positions)
        if stack.relative is not None:
            others["score_bias"] = stack.relative(positions, positions).reshape(-1, n)
        if memory is not None:
            others["M"] = memory
        if memory_mask is not None:
            others["cross attention_mask"] = memory_mask
        others = self._converted(others)
        by_window: dict[int | None, tuple[KeptMask, dict[str, Array]]] = {}
        states = [X]
        for number in range(len(stack.layers)):
            window = stack.windows[number] if stack.windows else None
            if window not in by_window:
                mask, numbers = masks(stack.causal, window, inputs.mask, batch, n)
                by_window[window] = mask, self._converted(numbers)
            mask, rows = by_window[window]
            cross = None if memory_mask is None else memory_mask[0]
            ready = self.prepared(stack, number, mask, cross, n, m, batch)
            block = number if memory is None else f"decoder.{number}"
            states.append(ready(states[-1], others | rows, executor=executor, block=block))
            self._finished(f"layer {number}")
        last = stack.final(states[-1], executor=executor)
        return [*(states[:-1] if stack.ends_normed else states), last]

    def prepared(
        self, stack: Stack, number: int, mask: KeptMask, cross: KeptMask, n: int, m: int, batch: int
    ) -> Prepared:
        """Prepare one layer, with its U for n rows (and a memory of m) of so many texts; made once."""
        T = stack.layers[number].with_masks(mask, cross)
        return self.ready((id(stack), number), T, replace(T.order(n, m), batch=batch), simulator_of)

    def ready(
        self, which: Any, T: Layer, order: Order, build: Callable[[Order], Simulator]
    ) -> Prepared:
        """Prepare a layer for an order, by the simulator that ``build`` makes; made once."""
        key = (which, order, build)
        if key not in self._prepared:
            matrices = T.matrices()
            for name in OF_A_RUN:
                matrices.pop(name, None)
                matrices.pop(f"cross {name}", None)
            self._prepared[key] = Prepared(build(order), matrices, self.kind)
        return self._prepared[key]

    def _converted(self, blocks: Mapping[str, Any]) -> dict[str, Array]:
        """Return blocks that all layers read in the kind of array that is computed in, once."""
        return {name: like(block, self.kind) for name, block in blocks.items()}

    def _pooled(self, rows: Array, counts: Numbers, executor: str | None) -> Array:
        """Return one row for each text, as the folder says."""
        assert self.sentence is not None
        batch, n = counts.shape
        pooling = Pooling(n, rows.shape[1], self.sentence.pooling, self.sentence.normalised)
        ready, masks = Prepared(pooling, {}, self.kind), like(counts, self.kind)
        each = [
            ready(rows[text * n : (text + 1) * n], {"attention_mask": masks[text : text + 1]})
            for text in range(batch)
        ]
        return stacked_rows(each)

    def _rounded(self, rows: Array) -> Array:
        return rows.to(self.result_kind.dtype) if is_tensor(rows) else rows

    def _shaped(self, rows: Array, batch: int) -> Array:
        """Shape rows of all texts as [text, position, feature]."""
        return self._rounded(rows).reshape(batch, len(rows) // batch, -1)


def masks(
    causal: bool, window: int | None, padding: Numbers | None, batch: int, n: int
) -> tuple[KeptMask, dict[str, Numbers]]:
    """Return the mask of a layer (of the first text, for its kind), and the rows of masks for a run.

    A padded query that would attend to nothing attends to itself.
    """
    if not causal:
        if padding is None:
            return None, {}
        return padding[0], {"attention_mask": padding}
    if padding is None and (window is None or window >= n):
        return "causal", {}
    kept = np.tri(n, dtype=np.bool_)
    if window is not None:
        kept &= ~np.tri(n, k=-window, dtype=np.bool_)
    keys = np.ones((batch, n), dtype=np.bool_) if padding is None else padding != 0
    every = kept[None] & keys[:, None, :]
    every |= np.eye(n, dtype=np.bool_) & ~every.any(axis=2, keepdims=True)
    rows = np.asarray(every, dtype=np.float64)
    return rows[0], {"mask": rows.reshape(-1, n)}


def _kind_of(tensors: Mapping[str, Any]) -> Array:
    """Return an empty tensor of the type and device that all parameters have."""
    floating = [
        tensor
        for name, tensor in tensors.items()
        if tensor.is_floating_point() and not name.endswith("inv_freq")
    ]
    kinds = {(tensor.dtype, tensor.device) for tensor in floating}
    if len(kinds) > 1:
        listed = ", ".join(sorted(f"{dtype} on {device}" for dtype, device in kinds))
        raise InputError(f"expected all parameters in one dtype on one device, got {listed}")
    return floating[0].new_zeros(0)


def _require(inputs: Mapping[str, Any], needed: tuple[str, ...], optional: tuple[str, ...]) -> None:
    """Refuse inputs that a model does not take, and ask for those that it needs."""
    for name in needed:
        if name not in inputs:
            raise InputError(f"this model takes {', '.join(needed)}: expected {name}")
    for name in inputs:
        if name not in (*needed, *optional):
            raise InputError(f"this model does not take {name}: expected {', '.join(needed)}")
