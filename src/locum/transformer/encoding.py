"""Turn inputs into the ids or numbers that a network takes, and its logits into answers."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from locum.errors import ExecutionError, InputError, LocumError
from locum.execution import run
from locum.execution.domains.floats import FloatDomain
from locum.execution.fast import types_at
from locum.execution.inputs import read
from locum.execution.types import moved_atoms, only_moves, possible_types, types_of
from locum.graph import Atom, Node, is_atom, loads, postorder
from locum.graph.atoms import LARGEST_EXACT, identity
from locum.transformer.config import Config
from locum.transformer.weights import Array

#: A batch of sequences of one length.
Rows: TypeAlias = Sequence[Sequence[Any]]

#: Inputs of one length for which finding types without a plan takes about as long as to make one.
_WORTH_A_PLAN = 8


class Encoding:
    """Read inputs and write answers as a configuration says."""

    def __init__(self, config: Config) -> None:
        self.config = config
        #: How many inputs of each length there were.
        self._asked: Counter[int] = Counter()

    def read(self, inputs: Any) -> tuple[list[list[Any]], Callable[[list[list[Any]]], Any]]:
        """Return a batch as lists of Python's own values, and what gives the answers its form."""
        batch = read(inputs, FloatDomain())
        rows = [row.tolist() if hasattr(row, "tolist") else list(row) for row in batch.sequences]
        shortest, longest = self.config.lengths
        for row in rows:
            if not shortest <= len(row) <= longest:
                count = str(longest) if shortest == longest else f"{shortest} to {longest}"
                raise InputError(f"expected {count} tokens, got {len(row)}")
        return rows, batch.answer

    def encode(self, rows: Rows) -> Any:
        """Return token ids [batch, position], or the numbers themselves where tokens are numbers."""
        if self.config.vocabulary is not None:
            return np.array([[self._id(token) for token in row] for row in rows], dtype=np.int64)
        if all(set(map(type, row)) == {float} for row in rows):  # at once, for large batches
            numbers = np.array(rows, dtype=np.float64)
            if (np.abs(numbers) <= np.finfo(self.config.dtype).max).all():
                return self._in_range(numbers)
        numbers = np.array([[self._number(token) for token in row] for row in rows], np.float64)
        return self._in_range(numbers)

    def decode(self, logits: Any, rows: Rows | None = None) -> list[list[Any]]:
        """Return the answers of logits [batch, position, d_vocab_out], a row for each token.

        ``rows`` are the inputs: they decide the Python types that the program alone leaves open, and
        where a program that is partial has no value, which is an error.
        """
        self._check_shape(logits)
        if rows is not None and self.config.partial:
            self._require_values(rows)
        if not np.isfinite(logits).all():
            raise ExecutionError(
                "a number left the range of floats", "the residual stream", kind="OverflowError"
            )
        if self.config.outputs is None:
            answers: list[list[Any]] = logits[..., 0].tolist()
            if rows is None:
                return [[self._kind(number) for number in answer] for answer in answers]
        else:
            outputs = self.config.outputs
            answers = [[outputs[i] for i in answer] for answer in logits.argmax(axis=-1).tolist()]
        if rows is None:
            return answers
        return [self._typed(answer, row) for answer, row in zip(answers, rows, strict=True)]

    def _check_shape(self, logits: Any) -> None:
        """Refuse logits that cannot be those of this network."""
        shortest, longest = self.config.lengths
        columns = 1 if self.config.outputs is None else len(self.config.outputs)
        shape: tuple[int, ...] = logits.shape
        if len(shape) != 3 or not shortest <= shape[1] <= longest or shape[2] != columns:
            raise InputError(
                f"expected logits of shape [batch, position, {columns}] with {shortest} to {longest} "
                f"positions, got {list(shape)}; try what the network gave, as it is"
            )

    def _require_values(self, rows: Rows) -> None:
        """Raise the error of dense execution where the program has no value."""
        if self._program is None:
            return
        for row in rows:
            try:
                run(self._program, list(row), executor="dense")
            except ExecutionError as error:
                if error.kind != "too large":  # then nothing is known
                    raise

    def _typed(self, answer: list[Any], row: Sequence[Any]) -> list[Any]:
        """Return the answer to an input in the types of dense execution.

        The network's numbers have no Python types: the program has. Where one key's integer or the
        mean of several is moved, it is a count of keys that tells, on this input.
        """
        if self._program is None:
            return answer
        try:
            marks = self._marks(self._program, row)
        except LocumError:  # the program itself has no value here
            return answer if self.config.outputs is not None else list(map(self._kind, answer))
        floats, bools = (np.broadcast_to(np.asarray(mark) > 0, len(row)).tolist() for mark in marks)
        return [
            value
            if isinstance(value, str)
            else (float(value) if is_float else self._truth(value) if is_bool else self._integer(value))
            for value, is_float, is_bool in zip(answer, floats, bools, strict=True)
        ]

    def _marks(self, program: Node, row: Sequence[Any]) -> tuple[Any, Any]:
        """Return where dense execution gives floats, and where bools."""
        self._asked[len(row)] += 1
        often = self._asked[len(row)] > _WORTH_A_PLAN
        try:
            return types_at(program, row, range(len(row)), plan=often)
        except LocumError:  # tokens that mix booleans with numbers, say
            values = run(program, list(row))
            return [type(value) is float for value in values], [type(value) is bool for value in values]

    def without_sink(self, logits: Any, rows: Rows) -> Any:
        """Return logits of a batch with a row for each of its tokens, and none for the sink."""
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
        """Return the numbers if the network was compiled for them."""
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
                f"expected a number from {least:g} to {most:g} at position {place}, got "
                f"{float(numbers[row, place])!r}; compile with other ranges=…"
            )
        return numbers

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

    def _integer(self, number: float) -> int | float:
        """Return the integer that a number stands for, if it cannot have been rounded.

        It is the nearest, where the certified bound leaves no other: rounding a number that is further
        off would add to its error. Such a number comes out as it is.
        """
        if abs(number) < LARGEST_EXACT:
            nearest = round(number)
            off = abs(number - nearest)
            return nearest if off == 0 or self._bound < 0.5 or off + self._bound < 1 else number
        if self._moved is None and self.config.report.get("error_bound") != 0:
            raise ExecutionError(
                f"expected integers up to 2^53 as answers, got {number:.6g}, which may be rounded",
                "the residual stream",
                kind="OverflowError",
            )
        return (self._moved or {}).get(number, round(number))

    def _truth(self, number: float) -> bool | float:
        """Return the boolean that a number stands for, or the number where the bound leaves both."""
        integer = self._integer(number)
        return integer if isinstance(integer, float) else bool(integer)

    @functools.cached_property
    def _bound(self) -> float:
        """Return how far a number may be from what it stands for; 0 where that is not known."""
        bound = self.config.report.get("error_bound")
        return float(bound) if isinstance(bound, (int, float)) and math.isfinite(bound) else 0.0

    @functools.cached_property
    def _moved(self) -> dict[float, int] | None:
        """Return the integers that come out as they are, by the number that stands for each."""
        if self._program is None or not only_moves(self._program):
            return None
        held = np.dtype(self.config.dtype).type
        atoms = moved_atoms(self._program, self.config.vocabulary or ())
        return {float(held(atom)): atom for atom in atoms if isinstance(atom, int)}

    @functools.cached_property
    def _program(self) -> Node | None:
        return loads(self.config.program) if self.config.program else None

    @functools.cached_property
    def _kind(self) -> Callable[[float], Atom]:
        """Give a number the type that the program's answers always have, if it is one."""
        if self._program is None:
            return float
        tokens = (
            frozenset({bool, int, float})
            if self.config.vocabulary is None
            else types_of(self.config.vocabulary)
        )
        types = possible_types(self._program, tokens)[self._program]
        if types == {int}:
            return self._integer
        return self._truth if types == {bool} else float

    # Tokens -------------------------------------------------------------------------------------

    @functools.cached_property
    def _ids(self) -> dict[Any, int]:
        """Return the row of W_E for each token.

        A program that reads tokens as strings tells 1, 1.0 and True apart; for any other, equal
        numbers are one token.
        """
        tokens = list(enumerate(self.config.vocabulary or ()))
        exact = {identity(token): i for i, token in tokens}
        nodes = () if self._program is None else postorder(self._program)
        if any(node.op == "tokens" and node.cast == "str" for node in nodes):
            return exact
        return {token: i for i, token in reversed(tokens)} | exact

    def _id(self, token: Any) -> int:
        place = self._ids.get(identity(token), self._ids.get(token))
        vocabulary = self.config.vocabulary or ()
        if place is None:
            known = ", ".join(map(repr, vocabulary[:8])) + (", …" if len(vocabulary) > 8 else "")
            raise InputError(f"expected tokens of the vocabulary ({known}), got {token!r}")
        for undefined, reason in self.config.undefined:
            if identity(undefined) == identity(vocabulary[place]):
                raise ExecutionError(reason, f"the token {token!r}", kind="undefined")
        return place
