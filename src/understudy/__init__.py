"""Understudy: a universal simulator of attention, and the RASP it is written in.

>>> import understudy as us
>>> us.selector_width(us.select(us.tokens, us.tokens, "=="))("hello")
[1, 1, 2, 2, 1]
"""

import importlib
from typing import TYPE_CHECKING, Any

from understudy.analysis import Architecture, architecture
from understudy.errors import (
    CompileError,
    ExecutionError,
    GraphError,
    InputError,
    UnderstudyError,
)
from understudy.language.handles import Selector, SOp
from understudy.language.python import (
    aggregate,
    best,
    constant,
    dumps,
    erf,
    exp,
    family,
    floor,
    full,
    indicator,
    indices,
    key,
    length,
    loads,
    log,
    lookup,
    maximum,
    member,
    minimum,
    query,
    select,
    selector_width,
    sqrt,
    stable_hash,
    sum_over,
    tanh,
    to_rasp,
    tokens,
    tokens_bool,
    tokens_float,
    tokens_int,
    tokens_str,
    where,
)

if TYPE_CHECKING:
    from understudy.compiler import compile  # noqa: A004
    from understudy.simulators import (
        Attention,
        DecoderLayer,
        Encoder,
        FactoredAttention,
        LanguageModel,
        LinearAttention,
        Linformer,
        MultiHeadAttention,
        Performer,
        Stack,
        Sumformer,
        UniversalSimulator,
        from_torch,
        simulate,
    )
    from understudy.transformer import CompiledTransformer, load
    from understudy.verification.certify import certify
    from understudy.verification.prove import prove

__version__ = "0.1.0"

#: Names that are imported when they are first used: U needs NumPy, and ``import understudy`` does not.
_LATER = dict.fromkeys(
    (
        "Attention",
        "DecoderLayer",
        "Encoder",
        "FactoredAttention",
        "LanguageModel",
        "LinearAttention",
        "Linformer",
        "MultiHeadAttention",
        "Performer",
        "Stack",
        "Sumformer",
        "UniversalSimulator",
        "from_torch",
        "simulate",
    ),
    "understudy.simulators",
)
_LATER |= dict.fromkeys(("CompiledTransformer", "load"), "understudy.transformer")
_LATER |= {"compile": "understudy.compiler"}
_LATER |= dict.fromkeys(("certify", "prove"), "understudy.verification")


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'understudy' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


__all__ = [
    "Architecture",
    "Attention",
    "CompileError",
    "CompiledTransformer",
    "DecoderLayer",
    "Encoder",
    "ExecutionError",
    "FactoredAttention",
    "GraphError",
    "InputError",
    "LanguageModel",
    "LinearAttention",
    "Linformer",
    "MultiHeadAttention",
    "Performer",
    "SOp",
    "Selector",
    "Stack",
    "Sumformer",
    "UnderstudyError",
    "UniversalSimulator",
    "aggregate",
    "architecture",
    "best",
    "certify",
    "compile",
    "constant",
    "dumps",
    "erf",
    "exp",
    "family",
    "floor",
    "from_torch",
    "full",
    "indicator",
    "indices",
    "key",
    "length",
    "load",
    "loads",
    "log",
    "lookup",
    "maximum",
    "member",
    "minimum",
    "prove",
    "query",
    "select",
    "selector_width",
    "simulate",
    "sqrt",
    "stable_hash",
    "sum_over",
    "tanh",
    "to_rasp",
    "tokens",
    "tokens_bool",
    "tokens_float",
    "tokens_int",
    "tokens_str",
    "where",
]
