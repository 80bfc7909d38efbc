"""The one hierarchy of errors that Locum raises on purpose.

Every message is one paragraph: what was wrong, where, what was found, and what would be right.
The command line prints the message and nothing else; anything that is *not* an
:class:`LocumError` is a bug of ours and keeps its traceback.

>>> import locum
>>> try:
...     locum.select(locum.tokens, locum.tokens, "=<")
... except locum.LocumError as error:
...     print(error)
select does not know the predicate '=<': it must be one of ==, !=, <, <=, >, >=
"""

from __future__ import annotations

import sys


class LocumError(ValueError):
    """Anything a user can put right: the base of all the errors below.

    >>> import locum
    >>> try:
    ...     locum.compile(locum.tokens, length=0, vocabulary="ab")
    ... except LocumError as error:
    ...     print(type(error).__name__)
    CompileError
    """


class GraphError(LocumError):
    """A graph that the table of operations does not allow, or that cannot be read back.

    >>> import locum
    >>> locum.aggregate(locum.tokens, locum.tokens)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    locum.errors.GraphError: ...
    """


class InputError(LocumError):
    """An input sequence that no program can run on: empty, ragged, or not made of atoms.

    >>> import locum
    >>> try:
    ...     locum.indices([])
    ... except InputError as error:
    ...     print(error)
    expected at least one token, got an empty input
    """


class ExecutionError(LocumError):
    """A program that has no value on this input, as RASP sees it.

    ``where`` prints the s-op or selector concerned, ``position`` is the position in the input
    (for a selector: the query), or None where the error concerns the whole sequence. ``kind`` is the
    rule that was broken: "mixture", "average", "not real", "too large", "undefined" or "refused", or
    the name of Python's error (ZeroDivisionError, TypeError, …).

    >>> import locum
    >>> try:
    ...     (1 / locum.indices)("ab")
    ... except ExecutionError as error:
    ...     print(error.kind, error.position)
    ZeroDivisionError 0
    """

    def __init__(self, problem: str, where: str, position: int | None = None, kind: str = "") -> None:
        self.problem = problem
        self.kind = kind
        self.where = where
        self.position = position
        place = "" if position is None else f" at position {position}"
        super().__init__(f"{problem}{place}" + (f", in {where}" if where else ""))


class LimitError(LocumError):
    """A program that asks more of the machine than its :class:`~locum.budget.Budget` allows.

    ``kind`` is "too much" (work, memory, members) or "too deep" (calls in calls, lists in lists).
    """

    def __init__(self, problem: str, kind: str = "too much") -> None:
        self.kind = kind
        super().__init__(problem)


class CompileError(LocumError):
    """A program that cannot become weights as asked: the reason, and the s-op or selector it is in.

    ``instead`` is what else can be had. ``bound`` is the error bound that can be met, where a tolerance
    cannot.

    >>> import locum
    >>> try:
    ...     locum.compile(locum.indices, length=4)
    ... except CompileError as error:
    ...     print(error)
    expected the tokens: try vocabulary=… to list them, or numeric=True for real numbers
    """

    def __init__(
        self, problem: str, where: str = "", instead: str = "", *, bound: float | None = None
    ) -> None:
        self.problem = problem
        self.where = where
        self.bound = bound
        place = f", in {where}" if where else ""
        lead = "; or try" if "try " in problem else "; try"
        super().__init__(f"{problem}{place}" + (f"{lead} {instead}" if instead else ""))


_SIMULATE = "locum.torch.simulate(model, ...)"
_COMPILE = 'torch.compile(model, backend="locum")'
_GENERATE = 'model.compile(backend="locum", fullgraph=True) and model.generate(...)'
_MOVED = {
    "languages": ("classify", "equivalent"),
    "networks.compiler": ("values_of",),
    "proofs": ("certify", "prove"),
    "rasp": (
        *("Architecture", "architecture", "bfloat16", "float16", "float32", "float64"),
        *("from_tracr", "stable_hash", "to_rasp"),
    ),
    "simulators": (
        *("DecoderLayer", "FactoredAttention", "LinearAttention", "Linformer", "MultiHeadAttention"),
        *("Order", "Performer", "Stack", "Sumformer"),
    ),
    "torch": ("from_torch",),
}
#: Names of ``locum`` that were removed or moved, each with its replacement.
REPLACEMENTS = {
    **{name: f"locum.{package}.{name}" for package, names in _MOVED.items() for name in names},
    "EncoderModel": f"transformers.AutoModel.from_pretrained(folder) and {_SIMULATE}",
    "LanguageModel": _GENERATE,
    "ModelRun": _SIMULATE,
    "dumps": "locum.save_program(program, path)",
    "generate": _GENERATE,
    "loads": "locum.load_program(path)",
    "record": "locum.torch.record(...), or UniversalSimulator.explain(T, X)",
    "register_attention": _COMPILE,
    "simulate": f"{_SIMULATE}, or UniversalSimulator.of(T, n)(T, X)",
    "stand_in": _COMPILE,
}


def missing_name(package: str, name: str) -> AttributeError | ImportError:
    """Return the error for a name that a package does not have; for a removed name, with a hint.

    Python replaces an AttributeError by another message in ``from package import name``. The error is
    therefore an ImportError in that statement.
    """
    if name not in REPLACEMENTS or package not in ("locum", "locum.simulators"):
        return AttributeError(f"module {package!r} has no attribute {name!r}")
    message = f"{package}.{name} is not available any more; try {REPLACEMENTS[name]}"
    is_import = sys._getframe(2).f_code.co_name == "_handle_fromlist"
    return ImportError(message, name=name) if is_import else AttributeError(message)
