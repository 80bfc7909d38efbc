"""Read the input of a program: one sequence of atoms, or a batch of sequences.

A string is a sequence of characters. A list, another iterable such as a tuple or a range, or a
one-dimensional array is a sequence of atoms. A list of lists, or a two-dimensional array, is a batch.
Lists may have different lengths. In the float domain, NumPy arrays of numbers or strings and torch
tensors are kept, and executors that need lists convert them. Other inputs, such as sets, dictionaries
and bytes, raise :class:`InputError`. Executors therefore need not check their input.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from locum.errors import InputError
from locum.execution.arrays import is_tensor as is_tensor
from locum.execution.domains import Domain, Value
from locum.graph.atoms import LARGEST_EXACT

#: Types that every domain accepts.
_ATOMS = {bool, int, float, str}


@dataclass(frozen=True)
class Inputs:
    """The sequences on which a program is run, and the form in which results are returned."""

    #: Lists of values, arrays of numbers or strings, or tensors.
    sequences: list[Any]
    batch: bool
    #: The array or tensor passed by the user, or None.
    array: Any = None
    #: The types of the values if there is a single list of Python bools, ints, floats and strings, else
    #: None.
    kinds: frozenset[type] | None = None

    @property
    def lengths(self) -> list[int]:
        """The number of tokens in each sequence."""
        return list(map(len, self.sequences))

    @property
    def is_rectangular(self) -> bool:
        """Whether all sequences have the same length."""
        return self.array is not None or len(set(self.lengths)) == 1

    def require_rectangular(self) -> None:
        """Raise :class:`InputError` if the sequences have different lengths."""
        if not self.is_rectangular:
            raise InputError(
                f"expected sequences of one length, got lengths {_some(self.lengths)}; "
                "try a batch for each length"
            )

    def answer(self, results: Any) -> Any:
        """Return results in the form of the input: lists, an array, or a tensor on the same device.

        ``results`` is a list with one result per sequence, or an array of all results.
        """
        if self.array is None:
            is_array = isinstance(results, np.ndarray)
            plain = results.tolist() if is_array else list(map(_plain_list, results))
            return plain if self.batch else plain[0]
        if isinstance(self.array, np.ndarray):
            return _array(results if self.batch else results[0])
        import torch

        tensors = [_tensor(value, self.array) for value in results]
        if not self.batch:
            return tensors[0]
        if len({tensor.dtype for tensor in tensors}) > 1:  # integers become floats among floats
            for tensor in tensors:
                if not tensor.dtype.is_floating_point:
                    _require_exact(tensor.flatten().tolist())
        return torch.stack(tensors)


def _array(values: Any) -> Any:
    """Return values as an array that represents every integer exactly (with dtype object if necessary).

    NumPy may round integers in lists that also contain floats, and in lists with integers from 2⁶³.
    """
    objects = isinstance(values, np.ndarray) and values.dtype == object
    array = np.asarray(values.tolist() if objects else values)
    if array.dtype.kind == "U" and not _is_text(values):  # numbers must not become strings
        return np.array([_plain_list(value) for value in values], dtype=object)
    if array.dtype.kind != "f" or _has_floats(values) or all(map(_has_floats, values)):
        return array
    atoms = np.array([_plain_list(value) for value in values], dtype=object)
    integers = [atom for atom in atoms.flat if type(atom) is int]
    if all(abs(atom) <= LARGEST_EXACT for atom in integers):
        return array
    is_unsigned = len(integers) == atoms.size and min(integers) >= 0 and max(integers) < 2**64
    return atoms.astype(np.uint64) if is_unsigned else atoms


def _is_text(value: Any) -> bool:
    """Return whether a value, or every value of a list or array, is a string."""
    if isinstance(value, str):
        return True
    if isinstance(value, np.ndarray):
        is_object = value.dtype.kind == "O"
        return set(map(type, value.flat)) <= {str} if is_object else bool(value.dtype.kind == "U")
    return isinstance(value, Iterable) and all(map(_is_text, value))


def _has_floats(value: Any) -> bool:
    """Return whether a value is an array of floats, in which integers are already rounded."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _plain_list(value: Any) -> Any:
    """Convert an array, a tensor or a NumPy scalar to Python objects; return other values unchanged."""
    return value.tolist() if hasattr(value, "tolist") else value


def _tensor(values: Any, like: Any) -> Any:
    """Return values as a tensor; a tensor is returned unchanged.

    Other values become a tensor on the device of ``like``, with its dtype if that is floating point.
    """
    if is_tensor(values):
        return values
    import torch

    dtype = like.dtype
    if not dtype.is_floating_point:  # torch would make float32 of Python's floats
        dtype = torch.float64 if any(isinstance(value, float) for value in values) else None
    if dtype is not None and not isinstance(values, np.ndarray):
        _require_exact(values)
    try:
        return torch.as_tensor(values, dtype=dtype, device=like.device)
    except (ValueError, TypeError, RuntimeError, OverflowError):
        raise InputError(
            "the result has strings, or integers beyond 64 bits, which a tensor cannot hold; "
            "try the tokens as a list: program(tensor.tolist())"
        ) from None


def _require_exact(values: Sequence[Any]) -> None:
    """Raise an error for integers that float64 might round among floats of a tensor."""
    if any(isinstance(value, int) and abs(value) > LARGEST_EXACT for value in values):
        raise InputError(
            "the result contains floats and integers beyond 2⁵³, which one tensor cannot hold exactly; "
            "try the tokens as a list: program(tensor.tolist())"
        )


def arrays(parts: Sequence[Any], length: int) -> list[Any]:
    """Return the parts of a sequence as arrays or tensors of numbers, or raise :class:`InputError`."""
    checked = [part if is_tensor(part) else _plain(np.asarray(part)) for part in parts]
    if not checked:
        raise InputError("expected the tokens in one array or more, got none")
    if len({is_tensor(part) for part in checked}) > 1:
        raise InputError("expected NumPy arrays or torch tensors as tokens, got both")
    for part in checked:
        if not is_tensor(part) and part.dtype.kind not in "biufO":
            raise InputError(f"expected the tokens in arrays of numbers, got {part.dtype}")
    number = sum(math.prod(part.shape) for part in checked)
    if number > length:
        raise InputError(f"expected at most {length} tokens, the length of the sequence, got {number}")
    return checked


def _plain(array: Any) -> Any:
    """Convert an object array of Python numbers to a numeric array.

    An array that contains integers beyond 64 bits remains an object array. NumPy may convert other
    integers from 2⁶³ to floats. Arrays of other types are returned unchanged.
    """
    return np.array(array.tolist()) if array.dtype == object else array


def joined(parts: Sequence[Any], length: int) -> Any:
    """Join arrays (or tensors) of any shape into one sequence, with blanks (0) up to ``length``."""
    flat = [part.reshape(-1) for part in parts]
    blanks = length - sum(len(part) for part in flat)
    if is_tensor(flat[0]):
        import torch

        return torch.cat([*flat, flat[0].new_zeros(blanks)])
    return np.concatenate([*flat, np.zeros(blanks, dtype=flat[0].dtype)])


def read(tokens: object, domain: Domain) -> Inputs:
    """Return an input as sequences of values that the domain accepts, or raise :class:`InputError`."""
    array: Any = tokens if isinstance(tokens, np.ndarray) or is_tensor(tokens) else None
    if array is not None:
        _require_plain(array)
    if array is not None and domain.name == "float" and _is_numeric(array):
        return _arrays(array)
    items = _listed(tokens)
    if not items:
        raise InputError("expected at least one token, got an empty input")
    kinds = frozenset(map(type, items))
    nested = {issubclass(kind, (list, tuple, np.ndarray)) for kind in kinds}
    if nested == {False}:
        if kinds <= _ATOMS:  # at once, which is fast for long sequences
            return Inputs([items], batch=False, array=array, kinds=kinds)
        return Inputs([_sequence(items, domain)], batch=False, array=array)
    if False in nested:
        raise InputError(
            "expected one sequence or a batch of them, got tokens and sequences in one list"
        )
    if kinds <= {list, tuple} and _ATOMS.issuperset(map(type, chain.from_iterable(items))):
        sequences = items if kinds == {list} else list(map(list, items))  # fast for large batches
    else:
        sequences = [_sequence(_listed(item), domain) for item in items]
    lengths = list(map(len, sequences))
    if 0 in lengths:
        raise InputError("expected at least one token in each sequence of the batch, got none")
    if array is not None and len(set(lengths)) > 1:
        raise InputError(
            f"expected an array of sequences of one length, got lengths {_some(lengths)}; "
            "try the sequences as lists: array.tolist()"
        )
    return Inputs(sequences, batch=True, array=array)


def _require_plain(array: Any) -> None:
    """Raise an error for masked arrays, matrices, and arrays of complex numbers or of floats with more
    than 64 bits.
    """
    if isinstance(array, (np.ma.MaskedArray, np.matrix)):
        kind = type(array).__name__
        raise InputError(f"expected a plain array of tokens, got {kind}; try numpy.asarray(…)")
    is_wide = not is_tensor(array) and array.dtype.kind == "f" and array.dtype.itemsize > 8
    if is_wide or "complex" in str(array.dtype):
        raise InputError(
            f"expected an array of bools, ints, floats of at most 64 bits or strings, got {array.dtype}"
        )


def _is_numeric(array: Any) -> bool:
    return is_tensor(array) or array.dtype.kind in "biufU"


def _arrays(array: Any) -> Inputs:
    """Return the :class:`Inputs` of a sequence or a batch that is given as an array or a tensor."""
    _require_axes(array)
    if 0 in array.shape:
        raise InputError("expected at least one token, got an empty input")
    batch = array.ndim == 2
    return Inputs(list(array) if batch else [array], batch=batch, array=array)


def _require_axes(array: Any) -> None:
    if array.ndim not in (1, 2):
        raise InputError(
            "expected an array of one axis (a sequence) or two (a batch of sequences), "
            f"got one of shape {tuple(array.shape)}"
        )


def _listed(tokens: object) -> list[Any]:
    if isinstance(tokens, np.ndarray) or is_tensor(tokens):
        _require_axes(tokens)
        array: Any = tokens
        return list(array) if array.dtype == object else array.tolist()
    if isinstance(tokens, (Mapping, set, frozenset, bytes, bytearray)) or not isinstance(
        tokens, Iterable
    ):
        raise InputError(
            f"expected a string, a list of tokens or a batch of lists as the input, got {tokens!r}"
        )
    return list(tokens)


def _sequence(items: Sequence[Any], domain: Domain) -> list[Value]:
    values = [item.item() if isinstance(item, np.generic) else item for item in items]
    for position, value in enumerate(values):
        if not domain.accepts(value):
            fractions = " (or fractions)" if domain.name == "exact" else ""
            raise InputError(
                f"expected bools, ints, floats or strings{fractions} as tokens, got {value!r} at "
                f"position {position}"
            )
    return values


def _some(lengths: Sequence[int]) -> str:
    shown = ", ".join(map(str, lengths[:6]))
    return shown + (", …" if len(lengths) > 6 else "")
