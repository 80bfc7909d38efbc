"""Locum: a universal simulator of attention, and the RASP it is written in.

>>> import locum
>>> locum.selector_width(locum.select(locum.tokens, locum.tokens, "=="))("hello")
[1, 1, 2, 2, 1]
"""

import importlib
from typing import TYPE_CHECKING, Any

from locum.analysis import Architecture, architecture
from locum.errors import (
    CompileError,
    ExecutionError,
    GraphError,
    InputError,
    LocumError,
)
from locum.language.handles import Selector, SOp
from locum.language.python import (
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
    from locum.compiler import compile  # noqa: A004
    from locum.simulators import (
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
    from locum.transformer import CompiledTransformer, load
    from locum.verification.certified.certify import certify
    from locum.verification.prover.prove import prove

__version__ = "0.1.0"

#: Names that are imported when they are first used: U needs NumPy, and ``import locum`` does not.
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
    "locum.simulators",
)
_LATER |= dict.fromkeys(("CompiledTransformer", "load"), "locum.transformer")
_LATER |= {"compile": "locum.compiler"}
_LATER |= dict.fromkeys(("certify", "prove"), "locum.verification")


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'locum' has no attribute {name!r}")
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
    "LocumError",
    "MultiHeadAttention",
    "Performer",
    "SOp",
    "Selector",
    "Stack",
    "Sumformer",
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
