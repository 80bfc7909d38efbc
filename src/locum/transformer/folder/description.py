"""``config.json``: a transformer without its numbers, to data and back.

Reading takes nothing on trust. Every field is checked for its type and against the others, instructions
and tables of exact feed-forwards included; whatever does not fit is an :class:`InputError` that says
where. Nothing is allocated by a size that the file claims, and nothing in it is executed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from locum.errors import GraphError, InputError
from locum.graph.serialize import decode_attribute, encode_attribute
from locum.transformer.config import Config
from locum.transformer.folder.fields import (
    atoms,
    choice,
    fields,
    flag,
    items,
    pair,
    ranges,
    text,
    whole,
)
from locum.transformer.folder.instructions import read_functions
from locum.transformer.folder.shapes import AttentionShape, FeedForwardShape, Shape
from locum.transformer.weights import FEED_FORWARDS, HARD, SOFTMAX

FORMAT = "locum.transformer"
VERSION = 1
DTYPES = ("float32", "float64")

#: Fields of the file that are not fields of Config.
_OTHERS = {"format", "version", "d_model", "n_ctx", "d_vocab", "d_vocab_out", "layers"}


def describe(config: Config, shape: Shape) -> str:
    """The text of config.json."""
    sizes = {name: getattr(shape, name) for name in ("d_model", "n_ctx", "d_vocab", "d_vocab_out")}
    layers = [
        {
            "attention": None if attention is None else dataclasses.asdict(attention),
            "feed_forward": None
            if feed is None
            else {"kind": feed.kind, "d_in": feed.d_in, "d_mlp": feed.d_mlp}
            | ({} if feed.functions is None else {"functions": feed.functions.as_json()}),
        }
        for attention, feed in shape.layers
    ]
    own = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    data = {"format": FORMAT, "version": VERSION} | own | sizes | {"layers": layers}
    return json.dumps(_plain(data), indent=1, allow_nan=False) + "\n"


def understand(data: bytes) -> tuple[Config, Shape]:
    """What :func:`describe` wrote."""
    found = _json(data)
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError(f'it lacks "format": "{FORMAT}"')
    if found.get("version") != VERSION or type(found["version"]) is not int:
        raise InputError(
            f"it is of version {found.get('version')!r}; version {VERSION} is what can be read"
        )
    names = {field.name for field in dataclasses.fields(Config)} | _OTHERS
    row = fields(found, "it", names)
    try:
        config, shape = _config(row), _shape(row)
    except RecursionError:  # JSON may be read deeper than we follow
        raise InputError("it is nested too deeply") from None
    agree(config, shape)
    return config, shape


def agree(config: Config, shape: Shape) -> None:
    """Refuse a configuration that does not fit the shape of its weights."""
    wanted = {
        "d_vocab": (shape.d_vocab, 1 if config.vocabulary is None else len(config.vocabulary)),
        "d_vocab_out": (shape.d_vocab_out, 1 if config.outputs is None else len(config.outputs)),
        "the number of slots": (len(config.slots), shape.d_model),
        "the number of layers in heads": (len(config.heads), len(shape.layers)),
    }
    for what, (is_, should) in wanted.items():
        if is_ != should:
            raise InputError(f"{what} is {is_}, but should be {should}")
    for number, (names, (attention, feed)) in enumerate(zip(config.heads, shape.layers, strict=True)):
        count = 0 if attention is None else len(attention.kinds)
        if len(names) != count:
            raise InputError(f"layer {number} has {count} heads, but names for {len(names)}")
        if feed is not None:
            _agree_feed(feed, f"the feed-forward of layer {number}")
    shortest, longest = config.lengths
    if not 1 <= shortest <= longest:
        raise InputError(f"the lengths {shortest} to {longest} are none")
    if longest + config.sink > shape.n_ctx:
        raise InputError(f"inputs of {longest} tokens do not fit into n_ctx = {shape.n_ctx}")
    if config.ranges is not None and (
        config.vocabulary is not None or len(config.ranges) not in (1, longest)
    ):
        raise InputError("ranges are of numbers: one for all tokens, or one for each position")
    if config.program and config.program_hash != _hash(config.program):
        raise InputError("the program does not have the hash that is given for it")


def _agree_feed(feed: FeedForwardShape, where: str) -> None:
    functions = feed.functions
    if (functions is not None) != (feed.kind == "exact"):
        raise InputError(f"{where} is {feed.kind}: an exact one has functions, and no other has")
    if functions is None and feed.d_in != feed.d_mlp:
        raise InputError(f"{where} has d_in = {feed.d_in}, but d_mlp = {feed.d_mlp}")
    if functions is not None and (functions.arguments, len(functions.outputs)) != (
        feed.d_in,
        feed.d_mlp,
    ):
        raise InputError(
            f"{where} has functions of {functions.arguments} numbers to {len(functions.outputs)}, "
            f"but d_in = {feed.d_in} and d_mlp = {feed.d_mlp}"
        )


def _hash(program: str) -> str:
    return hashlib.sha256(program.encode("utf-8", "surrogatepass")).hexdigest()


# Writing -----------------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    """Data that JSON can hold; floats that it lacks as the graph's files write them."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return _plain(value.tolist())
    return None if value is None else encode_attribute(value)


# Reading -----------------------------------------------------------------------------------------


def _json(data: bytes) -> Any:
    def refuse(name: str) -> NoReturn:
        raise InputError(f"it has {name}, which is no number of JSON")

    def number(digits: str) -> float:
        value = float(digits)
        return value if math.isfinite(value) else refuse(digits[:40])

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise InputError("an object in it has a name twice")
        return found

    try:
        return json.loads(
            data.decode("utf-8"), parse_constant=refuse, parse_float=number, object_pairs_hook=once
        )
    except RecursionError:
        raise InputError("it is not JSON that can be read: it is nested too deeply") from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"it is not JSON ({error})") from None


def _config(row: Mapping[str, Any]) -> Config:
    def tuple_or_none(name: str, read: Callable[[Any, str], Any]) -> Any:
        return None if row[name] is None else read(row[name], name)

    shortest, longest = items(row["lengths"], "lengths", whole, exactly=2)
    report = row["report"]
    if not isinstance(report, dict):
        raise InputError("report must be an object")
    return Config(
        vocabulary=tuple_or_none("vocabulary", atoms),
        lengths=(shortest, longest),
        sink=flag(row["sink"], "sink"),
        outputs=tuple_or_none("outputs", atoms),
        attention=choice((HARD, SOFTMAX))(row["attention"], "attention"),
        feed_forward=choice(FEED_FORWARDS)(row["feed_forward"], "feed_forward"),
        dtype=choice(DTYPES)(row["dtype"], "dtype"),
        slots=items(row["slots"], "slots", text),
        heads=items(row["heads"], "heads", lambda names, where: items(names, where, text)),
        undefined=items(row["undefined"], "undefined", pair),
        program=text(row["program"], "program"),
        program_hash=text(row["program_hash"], "program_hash"),
        name=text(row["name"], "name"),
        ranges=tuple_or_none("ranges", ranges),
        report={name: _open(part) for name, part in report.items()},
    )


def _open(value: Any) -> Any:
    """A part of the report as it was: the other way of ``_plain``."""
    if isinstance(value, list):
        return [_open(part) for part in value]
    if isinstance(value, dict):
        try:
            return decode_attribute(value)
        except GraphError:
            return {name: _open(part) for name, part in value.items()}
    return value


def _shape(row: Mapping[str, Any]) -> Shape:
    return Shape(
        **{name: whole(row[name], name) for name in ("d_model", "n_ctx", "d_vocab", "d_vocab_out")},
        layers=items(row["layers"], "layers", _layer),
    )


def _layer(value: Any, where: str) -> tuple[AttentionShape | None, FeedForwardShape | None]:
    row = fields(value, where, {"attention", "feed_forward"})
    attention, feed = row["attention"], row["feed_forward"]
    if attention is not None:
        attention = fields(attention, f"{where}.attention", {"kinds", "d_head"})
        attention = AttentionShape(
            items(attention["kinds"], f"{where}.attention.kinds", choice((HARD, SOFTMAX))),
            whole(attention["d_head"], f"{where}.attention.d_head"),
        )
        if not attention.kinds:
            raise InputError(f"{where}.attention has no heads: an absent attention is null")
    if feed is not None:
        where = f"{where}.feed_forward"
        feed = fields(feed, where, {"kind", "d_in", "d_mlp"}, {"functions"})
        functions = feed.get("functions")
        feed = FeedForwardShape(
            choice(FEED_FORWARDS)(feed["kind"], f"{where}.kind"),
            whole(feed["d_in"], f"{where}.d_in"),
            whole(feed["d_mlp"], f"{where}.d_mlp"),
            None if functions is None else read_functions(functions, f"{where}.functions"),
        )
    return attention, feed
