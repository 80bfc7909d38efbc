"""Write and read ``config.json`` according to the type annotations of dataclasses.

The file is not trusted. The types of the fields and their consistency are checked, including the
instructions and tables of symbolic feed-forwards. Most messages of :class:`InputError` contain the
location in the file. No memory is allocated according to a size in the file, and no content of the file
is executed.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import or_
from types import NoneType
from typing import Any, NoReturn, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np

from locum.errors import GraphError, InputError
from locum.files import parse_json
from locum.graph import OPERATIONS, Atom, is_atom
from locum.graph.atoms import identity
from locum.graph.serialize import decode_attribute, encode_attribute
from locum.networks.transformer.config import Config
from locum.networks.transformer.folder.shapes import FeedForwardShape, Shape
from locum.networks.transformer.functions import INSTRUCTIONS, Functions, Instruction
from locum.networks.transformer.input_conditions import check_conditions
from locum.settings import Setting, settings_of, show

#: A number that is finite as a float.
Number: TypeAlias = bool | int | float

#: Maximum of each size in the file, so that products of a few sizes can be computed cheaply.
_LARGEST = 2**40


def refuse(where: str, expected: str, value: Any) -> NoReturn:
    """Raise ``InputError`` with a location in the file, the expected value and the actual value."""
    raise InputError(f"{where}: expected {expected}, got {show(value)}")


# Writing -----------------------------------------------------------------------------------------


def to_data(value: Any) -> Any:
    """Convert ``value`` to JSON-compatible data; fields with default values are omitted.

    Values that JSON does not support, such as infinities, are written as in graph files.
    """
    if dataclasses.is_dataclass(value):
        return {
            field.name: to_data(part)
            for field in dataclasses.fields(value)
            if not _is_default(field, part := getattr(value, field.name))
        }
    if isinstance(value, Mapping):
        return {str(name): to_data(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_data(part) for part in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return to_data(value.tolist())
    return None if value is None else encode_attribute(value)


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    factory = field.default_factory
    default = field.default if factory is dataclasses.MISSING else factory()
    return type(value) is type(default) and bool(value == default)


# Reading -----------------------------------------------------------------------------------------


def from_data(kind: Any, value: Any, where: str) -> Any:
    """Return the object of type ``kind`` from which :func:`to_data` created ``value``.

    In mappings, tuples become lists. ``InputError`` is raised for data that do not match ``kind``.
    ``where`` is the location of the data in the file.
    """
    if kind == Atom:
        return _attribute(value, where, "a boolean, a number or a string")
    if kind == Number:
        return _number(value, where)
    if kind in _READERS:
        return _READERS[kind](value, where)
    if dataclasses.is_dataclass(kind):
        return _record(kind, value, where)
    parts = get_args(kind)
    if NoneType in parts:
        others = [part for part in parts if part is not NoneType]
        return None if value is None else from_data(functools.reduce(or_, others), value, where)
    if get_origin(kind) is tuple:
        return _tuple(parts, value, where)
    if isinstance(value, dict):  # a mapping with arbitrary values
        return {name: _open(part) for name, part in value.items()}
    refuse(where, "an object", value)


def _record(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        refuse(where, "an object", value)
    hints, required = _fields(kind)
    prefix = f"{where}." if where else ""
    for name in value:
        if name not in hints:
            raise InputError(f"{where + ': ' if where else ''}unknown field {name[:60]!r}")
    for name in required:
        if name not in value:
            raise InputError(f"{prefix}{name} is missing")
    values = {name: from_data(hints[name], part, prefix + name) for name, part in value.items()}
    for name, declared in settings_of(kind).items():
        declared.read(values[name], prefix + name)
    return kind(**values)


@functools.cache
def _fields(kind: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the type annotations of a dataclass, and the names of its fields without a default."""
    missing = (dataclasses.MISSING, dataclasses.MISSING)
    own = dataclasses.fields(kind)
    return get_type_hints(kind), [f.name for f in own if (f.default, f.default_factory) == missing]


def _tuple(parts: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        refuse(where, "a list", value)
    kinds = [parts[0]] * len(value) if parts[-1] is Ellipsis else list(parts)
    if len(kinds) != len(value):
        refuse(where, f"a list of {len(kinds)}", value)
    pairs = enumerate(zip(kinds, value, strict=True))
    return tuple(from_data(kind, part, f"{where}[{place}]") for place, (kind, part) in pairs)


def _open(value: Any) -> Any:
    """Reverse :func:`to_data` for data of arbitrary structure; tuples become lists."""
    if isinstance(value, list):
        return [_open(part) for part in value]
    if isinstance(value, dict):
        try:
            return decode_attribute(value)
        except GraphError:
            return {name: _open(part) for name, part in value.items()}
    return value


def _attribute(value: Any, where: str, expected: str) -> Any:
    try:
        atom = decode_attribute(value)
    except GraphError:
        refuse(where, expected, value)
    return atom if is_atom(atom) else refuse(where, expected, value)


def _number(value: Any, where: str) -> Number:
    number: Atom = _attribute(value, where, "a finite number")
    try:
        if not isinstance(number, str) and math.isfinite(number):
            return number
    except OverflowError:  # an integer beyond the range of floats
        pass
    refuse(where, "a finite number", value)


def _float(value: Any, where: str) -> float:
    number = _attribute(value, where, "a number")
    return number if type(number) is float else refuse(where, "a floating-point number", value)


def _text(value: Any, where: str) -> str:
    return value if isinstance(value, str) else refuse(where, "a string", value)


_READERS: Mapping[Any, Callable[[Any, str], Any]] = {
    bool: Setting("true or false").read,
    str: _text,
    int: Setting("an integer", least=0, most=_LARGEST).read,
    float: _float,
}


FORMAT = "locum.transformer"
VERSION = 1


@dataclass
class _Value:
    value: Number


@dataclass
class _Values:
    values: tuple[Number, ...]


@dataclass
class _Table:
    keys: tuple[tuple[Number, ...], ...]
    values: tuple[Number | None, ...]


@dataclass
class _Nothing:
    pass


#: Attributes of the instructions that have attributes.
_ATTRIBUTES: dict[str, Any] = {"constant": _Value, "member": _Values, "table": _Table}


def describe(config: Config, shape: Shape) -> str:
    """Return the text of config.json for a configuration and the shape of its weights."""
    data = {"format": FORMAT, "version": VERSION} | to_data(config) | to_data(shape)
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def understand(content: bytes) -> tuple[Config, Shape]:
    """Return the configuration and the shape in a config.json written by :func:`describe`."""
    try:
        data = parse_json(content.decode("utf-8"))
        if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
            raise InputError(f'format: expected "{FORMAT}"')
        version = data.pop("version", None)
        if version != VERSION or type(version) is not int:
            refuse("version", str(VERSION), version)
        sizes = {field.name for field in dataclasses.fields(Shape)}
        config = from_data(Config, {k: v for k, v in data.items() if k not in sizes}, "")
        shape = from_data(Shape, {k: v for k, v in data.items() if k in sizes}, "")
        shape = _with_instructions(shape)
    except UnicodeDecodeError:
        raise InputError("not JSON (it is not UTF-8 text)") from None
    except RecursionError:  # parsing allows deeper nesting than conversion
        raise InputError("the JSON is nested too deeply") from None
    agree(config, shape)
    return config, shape


# Instructions ------------------------------------------------------------------------------------


def _with_instructions(shape: Shape) -> Shape:
    """Return ``shape`` with the attributes of all instructions converted to their types."""
    layers = []
    for number, layer in enumerate(shape.layers):
        feed = layer.feed_forward
        if feed is not None and feed.functions is not None:
            where = f"layers[{number}].feed_forward.functions"
            feed = dataclasses.replace(feed, functions=_functions(feed.functions, where))
        layers.append(dataclasses.replace(layer, feed_forward=feed))
    return dataclasses.replace(shape, layers=tuple(layers))


def _functions(functions: Functions, where: str) -> Functions:
    arguments, instructions = functions.arguments, []
    if functions.instructions and not arguments:
        raise InputError(f"{where}.arguments: expected at least 1, since there are instructions")
    for place, instruction in enumerate(functions.instructions):
        own = f"{where}.instructions[{place}]"
        instructions.append(_instruction(instruction, own))
        _check_sources(instruction.inputs, arguments + place, f"{own}.inputs")
    _check_sources(functions.outputs, arguments + len(instructions), f"{where}.outputs")
    return Functions(arguments, tuple(instructions), functions.outputs)


def _check_sources(sources: Sequence[int], known: int, where: str) -> None:
    for source in sources:
        if source >= known:
            refuse(where, f"the number of an earlier result, below {known}", source)


def _instruction(instruction: Instruction, where: str) -> Instruction:
    op = instruction.op
    if op not in INSTRUCTIONS:
        refuse(f"{where}.op", "an instruction", op)
    data = to_data(instruction.attributes)  # as in the file
    attributes = from_data(_ATTRIBUTES.get(op, _Nothing), data, f"{where}.attributes")
    if isinstance(attributes, _Table):
        _check_table(attributes, f"{where}.attributes")
    arity = len(attributes.keys) if isinstance(attributes, _Table) else len(OPERATIONS[op].takes)
    if len(instruction.inputs) != arity:
        refuse(f"{where}.inputs", f"{arity} numbers for {op}", list(instruction.inputs))
    return dataclasses.replace(instruction, attributes=vars(attributes))


def _check_table(table: _Table, where: str) -> None:
    if not table.keys or not all(table.keys):
        raise InputError(f"{where}.keys: expected at least one list, and no list that is empty")
    for keys in table.keys:
        if any(not a < b for a, b in itertools.pairwise(keys)):
            raise InputError(f"{where}.keys: expected ascending order, each key once")
    combinations = math.prod(map(len, table.keys))
    if len(table.values) != combinations:
        refuse(
            f"{where}.values",
            f"a list of {combinations}, one value per combination",
            list(table.values),
        )


# Consistency --------------------------------------------------------------------------


def agree(config: Config, shape: Shape) -> None:
    """Raise ``InputError`` if a configuration contradicts itself or the shape of its weights."""
    shortest, longest = config.lengths
    if not 1 <= shortest <= longest:
        raise InputError(f"lengths: expected 1 ≤ shortest ≤ longest, got {shortest} and {longest}")
    if longest + config.sink > shape.n_ctx:
        raise InputError(f"inputs of {longest} tokens do not fit into n_ctx = {shape.n_ctx}")
    _check_tokens(config)
    check_conditions(config.inputs, config.vocabulary)
    for name, value, expected in (
        ("d_vocab", shape.d_vocab, 1 if config.vocabulary is None else len(config.vocabulary)),
        ("d_vocab_out", shape.d_vocab_out, 1 if config.outputs is None else len(config.outputs)),
        ("the number of slots", len(config.slots), shape.d_model),
        ("the number of layers in heads", len(config.heads), len(shape.layers)),
    ):
        if value != expected:
            raise InputError(f"{name}: expected {expected}, got {value}")
    for number, (labels, layer) in enumerate(zip(config.heads, shape.layers, strict=True)):
        count = 0 if layer.attention is None else len(layer.attention.kinds)
        if layer.attention is not None and not count:
            where = f"layers[{number}].attention.kinds"
            raise InputError(f"{where}: expected at least one head; an absent attention is null")
        if len(labels) != count:
            raise InputError(f"layer {number} has {count} heads, but labels for {len(labels)}")
        if layer.feed_forward is not None:
            _check_feed_forward(layer.feed_forward, f"layers[{number}].feed_forward")
    if config.program and config.program_hash != hash_of(config.program):
        raise InputError("program_hash: expected the hash of the program, got another hash")


def hash_of(program: str) -> str:
    """Return the SHA-256 hash of a program given as JSON."""
    return hashlib.sha256(program.encode("utf-8", "surrogatepass")).hexdigest()


def _check_tokens(config: Config) -> None:
    for name, tokens in (("vocabulary", config.vocabulary), ("outputs", config.outputs)):
        if tokens is not None and (not tokens or len({*map(identity, tokens)}) < len(tokens)):
            raise InputError(f"{name}: expected one token or more, each once")
    for place, (low, high) in enumerate(config.ranges or ()):
        if not low <= high:
            raise InputError(f"ranges[{place}]: expected low ≤ high, got {low:g} and {high:g}")
    if config.ranges is not None and (
        config.vocabulary is not None or len(config.ranges) not in (1, config.lengths[1])
    ):
        raise InputError("ranges: expected one for all tokens or one per position, of numbers")


def _check_feed_forward(feed: FeedForwardShape, where: str) -> None:
    functions = feed.functions
    if (functions is not None) != (feed.kind == "exact"):
        raise InputError(f"{where} is {feed.kind}: expected functions if and only if it is exact")
    sizes = (feed.d_in, feed.d_mlp)
    if functions is None and feed.d_in != feed.d_mlp:
        refuse(f"{where}.d_in", f"d_mlp = {feed.d_mlp}", feed.d_in)
    if functions is not None and (functions.arguments, len(functions.outputs)) != sizes:
        raise InputError(
            f"{where} has functions of {functions.arguments} arguments and {len(functions.outputs)} "
            f"outputs, but d_in = {feed.d_in} and d_mlp = {feed.d_mlp}"
        )
