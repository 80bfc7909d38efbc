"""Convert inputs of a compiled transformer to token ids or numbers, and its logits to outputs."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from locum.errors import ExecutionError, InputError
from locum.execution import dense
from locum.execution.domains.floats import FloatDomain
from locum.execution.inputs import Inputs, read
from locum.execution.types import (
    UNBOUNDED,
    computed_mixtures,
    join,
    largest_token,
    moved_atoms,
    only_moves,
    possible_types,
    result_type,
    types_of,
)
from locum.graph import Node, is_atom, loads, postorder
from locum.graph.atoms import EXACT_INTEGERS, INT64_LIMIT, LARGEST_EXACT, identity
from locum.networks.transformer.config import Config
from locum.networks.transformer.input_conditions import require_accepted
from locum.networks.transformer.weights import Array

#: A batch of sequences of equal length.
Rows: TypeAlias = Sequence[Sequence[Any]]


class Encoding:
    """A converter between user inputs or outputs and network tensors, for one configuration."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def read(self, inputs: Any) -> tuple[Rows, Callable[[Any], Any]]:
        """Return inputs of equal length as a batch, and a function that formats outputs like the
        inputs.
        """
        batch = self._read(inputs)
        batch.require_rectangular()
        return self._rows(batch), batch.answer

    def read_by_length(self, inputs: Any) -> tuple[list[Rows], Callable[[list[Any]], Any]]:
        """Return one batch for each input length, and a function that restores the order of outputs."""
        batch = self._read(inputs)
        if batch.is_rectangular:
            return [self._rows(batch)], lambda results: batch.answer(results[0])
        places: dict[int, list[int]] = {}
        for place, length in enumerate(batch.lengths):
            places.setdefault(length, []).append(place)

        def answer(results: list[Any]) -> Any:
            rows = zip(chain.from_iterable(places.values()), chain.from_iterable(results), strict=True)
            ordered = dict(rows)
            return batch.answer([ordered[place] for place in range(len(ordered))])

        return [[batch.sequences[n] for n in group] for group in places.values()], answer

    def _read(self, inputs: Any) -> Inputs:
        """Return the parsed inputs; raise ``InputError`` for lengths that the network does not
        accept.
        """
        batch = read(inputs, FloatDomain())
        shortest, longest = self.config.lengths
        for length in batch.lengths:
            if not shortest <= length <= longest:
                count = str(longest) if shortest == longest else f"{shortest} to {longest}"
                raise InputError(f"expected {count} tokens, got {length}")
        return batch

    def _rows(self, batch: Inputs) -> Any:
        """Return the rows of a batch of equal length: an array if ids can be looked up in it, otherwise
        lists.
        """
        if batch.array is None:
            return batch.sequences
        rows = np.atleast_2d(batch.array) if self._has_ids(batch.array) else batch.array.tolist()
        return rows if batch.batch or isinstance(rows, np.ndarray) else [rows]

    def encode(self, rows: Rows) -> Any:
        """Return the token ids [batch, position] of a batch; without a vocabulary, its numbers."""
        if self.config.vocabulary is None:
            return self._in_range(self._numbers(rows))
        if isinstance(rows, np.ndarray):
            keys, places = self._sorted_ids
            found = np.searchsorted(keys, rows).clip(max=len(keys) - 1)
            if (keys[found] == rows).all():
                return places[found]
            rows = rows.tolist()
        if self._ids_by_value is not None:
            with contextlib.suppress(KeyError):
                ids = map(self._ids_by_value.__getitem__, chain.from_iterable(rows))
                return np.fromiter(ids, np.int64).reshape(len(rows), -1)
        return np.array([[self._id(token) for token in row] for row in rows], dtype=np.int64)

    def check_conditions(self, rows: Rows) -> None:
        """Raise ``InputError`` for an input that violates ``config.inputs``."""
        if self.config.inputs:
            lists = rows.tolist() if isinstance(rows, np.ndarray) else rows
            require_accepted(self.config.inputs, lists, self._ids_with_undefined(rows))

    def check_values(self, rows: Rows) -> None:
        """Raise the error of dense execution if a checked s-op is undefined on an input."""
        if not self._checks:
            return
        lists = rows.tolist() if isinstance(rows, np.ndarray) else rows
        for row in {tuple(map(identity, row)): row for row in lists}.values():
            dense.evaluate_all(self._checks, row, FloatDomain())

    def decode(self, logits: Any) -> Any:
        """Return the outputs for logits [batch, position, d_vocab_out] as an array.

        The array has the dtype ``object`` if it may contain strings and other values, strings that end
        with a NUL character, or very large integers. Otherwise, all values have one type.
        """
        self._check_shape(logits)
        if not np.isfinite(logits).all():
            raise ExecutionError(
                "a number exceeds the range of floats", "the residual stream", kind="OverflowError"
            )
        if self.config.outputs is not None:
            return self._outputs[logits.argmax(axis=-1)]
        numbers = logits[..., 0].astype(np.float64)
        # If the error bound allows several integers, rounding would add to the error.
        if self._kind is float or self._bound >= 0.5:
            self._require_floats(numbers)
            return numbers
        whole = self._integers(np.rint(numbers))
        return whole if self._kind is int else whole != 0

    def _check_shape(self, logits: Any) -> None:
        """Raise ``InputError`` for logits of the wrong shape."""
        shortest, longest = self.config.lengths
        columns = 1 if self.config.outputs is None else len(self.config.outputs)
        shape: tuple[int, ...] = logits.shape
        if len(shape) != 3 or not shortest <= shape[1] <= longest or shape[2] != columns:
            raise InputError(
                f"expected logits of shape [batch, position, {columns}] with {shortest} to {longest} "
                f"positions, got {list(shape)}; try the unchanged output of the network"
            )

    def without_sink(self, logits: Any, rows: Rows) -> Any:
        """Return logits with one row per token of a batch; a row for the sink is removed."""
        expected = (len(rows), len(rows[0]))
        if self.config.sink and logits.shape[:2] == (expected[0], expected[1] + 1):
            return logits[:, 1:]
        if logits.ndim != 3 or logits.shape[:2] != expected:
            raise InputError(
                f"expected logits of shape [{expected[0]}, {expected[1]}, d_vocab_out], got "
                f"{list(logits.shape)}"
            )
        return logits

    # Numbers ------------------------------------------------------------------------------------

    def _in_range(self, numbers: Array) -> Array:
        """Return ``numbers`` unchanged; raise ``InputError`` if one is outside ``config.ranges``."""
        if self.config.ranges is None:
            return numbers
        ends = np.array(self.config.ranges)[: numbers.shape[1]]
        # A number that was rounded to the network's dtype still counts as within its range.
        rounded = ends.astype(self.config.dtype)
        low, high = np.minimum(ends, rounded)[:, 0], np.maximum(ends, rounded)[:, 1]
        outside = ~((low <= numbers) & (numbers <= high))
        if outside.any():
            row, place = np.argwhere(outside)[0]
            least, most = ends[place % len(ends)]
            raise InputError(
                f"expected a number from {least:g} to {most:g} at position {place}, got "
                f"{float(numbers[row, place])!r}; compile with other ranges=…"
            )
        return numbers

    def _numbers(self, rows: Rows) -> Array:
        """Return tokens as floats.

        ``InputError`` is raised for tokens that are not finite numbers or are too large for the
        network's dtype. The error is also raised for integers that the dtype does not represent
        exactly.
        """
        types = types_of(chain.from_iterable(rows))
        if types <= {bool, int, float}:
            with contextlib.suppress(OverflowError):
                numbers, dtype = np.array(rows, dtype=np.float64), self.config.dtype
                limit = np.finfo(dtype).max if types == {float} else EXACT_INTEGERS[dtype]
                if (np.abs(numbers) < limit).all():
                    return numbers
        return np.array([[self._number(token) for token in row] for row in rows], np.float64)

    def _number(self, token: Any) -> float:
        if isinstance(token, str) or not is_atom(token):
            raise InputError(f"expected numbers as tokens, got {token!r}")
        try:
            number = float(token)
        except OverflowError:
            number = math.inf
        held = np.dtype(self.config.dtype).type
        too_large = not abs(number) <= float(np.finfo(self.config.dtype).max)
        if too_large or (isinstance(token, int) and int(held(number)) != token):
            shown = repr(token) if abs(number) < 1e30 else "a number"
            raise InputError(
                f"expected a finite number that {self.config.dtype} represents exactly, got {shown}"
            )
        return number

    def _integers(self, numbers: Array) -> NDArray[Any]:
        """Convert rounded numbers to integers; raise an error for a number that floats may have
        rounded.
        """
        large = np.abs(numbers) >= LARGEST_EXACT
        if not large.any():
            return numbers.astype(np.int64)
        if self._moved is None and self.config.report.get("error_bound") != 0:
            raise ExecutionError(
                f"expected integers below 2^53 as outputs, got {numbers[large][0]:.6g}, which may be "
                "rounded",
                "the residual stream",
                kind="OverflowError",
            )
        moved = self._moved or {}
        answers = [int(moved.get(number, number)) for number in numbers.ravel().tolist()]
        return np.array(answers, dtype=object).reshape(numbers.shape)

    def _require_floats(self, numbers: Array) -> None:
        """Raise an error for a float that may represent an integer rounded to a float."""
        rounded = [number for number, atom in (self._moved or {}).items() if number != atom]
        if self._computes_mixtures:
            rounded += numbers[abs(numbers) >= EXACT_INTEGERS[self.config.dtype]].ravel()[:1].tolist()
        if rounded and np.isin(numbers, rounded).any():
            raise ExecutionError(
                f"expected answers that floats hold, got an integer near {rounded[0]:.6g} that a float "
                'would round; try executor="dense" on the program',
                "the output",
                kind="refused",
            )

    @functools.cached_property
    def _bound(self) -> float:
        """Bound on the difference between a number and the program's output; 0 if no bound is known."""
        bound = self.config.report.get("error_bound")
        return float(bound) if isinstance(bound, (int, float)) and math.isfinite(bound) else 0.0

    @functools.cached_property
    def _moved(self) -> dict[float, int] | None:
        """Mapping from floats to the integers that they represent, for a program that only moves
        values.

        None for other programs, and if the program is unknown.
        """
        if self._program is None or not only_moves(self._program):
            return None
        held = np.dtype(self.config.dtype).type
        atoms = moved_atoms(self._program, self.config.vocabulary or ())
        return {float(held(atom)): atom for atom in atoms if isinstance(atom, int)}

    @functools.cached_property
    def _computes_mixtures(self) -> bool:
        """Whether an output may be a computed integer that a float rounds."""
        if self._program is None:
            return False
        tokens, longest = self.config.vocabulary, self.config.lengths[1]
        kinds = types_of([0.0] if tokens is None else tokens)
        largest = UNBOUNDED if tokens is None else largest_token(tokens)
        return self._program in computed_mixtures(
            possible_types(self._program, kinds), longest, largest
        )

    @functools.cached_property
    def _program(self) -> Node | None:
        return loads(self.config.program) if self.config.program else None

    @functools.cached_property
    def _checks(self) -> list[Node]:
        """S-ops that must be defined on every input.

        Models saved without such a list check the whole program if it may be undefined.
        """
        config = self.config
        programs = config.checks or ([config.program] if config.partial and config.program else [])
        return list(map(loads, programs))

    @functools.cached_property
    def _kind(self) -> type:
        """Type of the outputs, which follows from the program and the vocabulary.

        Without a program, the type follows from the possible outputs.
        """
        vocabulary, outputs = self.config.vocabulary, self.config.outputs
        if self._program is None:
            return join(types_of([0.0] if outputs is None else outputs))
        return result_type(self._program, types_of([0.0] if vocabulary is None else vocabulary))

    @functools.cached_property
    def _outputs(self) -> NDArray[Any]:
        """Possible outputs as an array.

        The array contains values of one type, or objects if strings occur with other types or end with
        a NUL character, or if integers are very large.
        """
        outputs = self.config.outputs or ()
        types = types_of(outputs)
        # NumPy removes "\0" at the end of a string.
        if types == {str} and not any(str(text).endswith("\0") for text in outputs):
            return np.array(outputs)
        one_type = [atom if isinstance(atom, str) else self._kind(atom) for atom in outputs]
        large = any(isinstance(atom, int) and abs(atom) >= INT64_LIMIT for atom in one_type)
        return np.array(one_type, dtype=object if str in types or large else None)

    # Tokens -------------------------------------------------------------------------------------

    @functools.cached_property
    def _ids(self) -> dict[Any, int]:
        """Index of the row of W_E for each token.

        A program that reads tokens as strings distinguishes 1, 1.0 and True. For other programs, a
        number that is not in the vocabulary has the row of an equal number of the vocabulary.
        """
        tokens = list(enumerate(self.config.vocabulary or ()))
        exact = {identity(token): i for i, token in tokens}
        nodes = () if self._program is None else postorder(self._program)
        if any(node.op == "tokens" and node.cast == "str" for node in nodes):
            return exact
        return {token: i for i, token in reversed(tokens)} | exact

    @functools.cached_property
    def _ids_by_value(self) -> dict[Any, int] | None:
        """Index of the row of W_E for each token for which the program is defined.

        None if tokens cannot be looked up by equality.
        """
        undefined = {identity(token) for token, _ in self.config.undefined}
        tokens = self.config.vocabulary or ()
        ids = {t: i for i, t in enumerate(tokens) if identity(t) not in undefined}
        one_type = types_of(tokens) == {str} or all(token in self._ids for token in tokens)
        return ids if one_type and len(set(tokens)) == len(tokens) else None

    @functools.cached_property
    def _sorted_ids(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Tokens of ``_ids_by_value`` in ascending order, with their rows of W_E."""
        keys = np.array(list(self._ids_by_value or ()))
        order = np.argsort(keys)
        return keys[order], np.array(list((self._ids_by_value or {}).values()))[order]

    def _has_ids(self, array: Any) -> bool:
        """Return whether the ids of an array can be looked up without conversion to lists."""
        if not isinstance(array, np.ndarray) or not self._ids_by_value:
            return False
        # Dictionaries look up strings faster than arrays do.
        is_integer = types_of(self._ids_by_value) == {int} and array.dtype.kind == "i"
        return is_integer and self._sorted_ids[0].dtype.kind == "i"

    def _ids_with_undefined(self, rows: Rows) -> Any:
        """Return the ids of a batch that may contain tokens for which the program is undefined."""
        try:
            return self.encode(rows)
        except ExecutionError:
            return np.array([[self._place(token) for token in row] for row in rows], dtype=np.int64)

    def _place(self, token: Any) -> int:
        """Return the index of the row of W_E that embeds a token of the vocabulary."""
        place = self._ids.get(identity(token), self._ids.get(token))
        vocabulary = self.config.vocabulary or ()
        if place is None:
            known = ", ".join(map(repr, vocabulary[:8])) + (", …" if len(vocabulary) > 8 else "")
            raise InputError(f"expected tokens of the vocabulary ({known}), got {token!r}")
        return place

    def _id(self, token: Any) -> int:
        place = self._place(token)
        vocabulary = self.config.vocabulary or ()
        for undefined, reason in self.config.undefined:
            if identity(undefined) == identity(vocabulary[place]):
                raise ExecutionError(reason, f"the token {token!r}", kind="undefined")
        return place
