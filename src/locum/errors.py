"""Define the errors that Locum raises for invalid input and unsupported requests.

Most messages state what was expected and what was found, and many suggest what to try. The command line
prints the message without a traceback. Other exceptions usually indicate a bug in Locum, except for
missing names, missing packages and interrupts.

>>> import locum
>>> try:
...     locum.select(locum.tokens, locum.tokens, "=<")
... except locum.LocumError as error:
...     print(error)
select: predicate: expected one of ==, !=, <, <=, >, >=, got '=<'
"""

from __future__ import annotations


class LocumError(ValueError):
    """Base class of Locum's errors for invalid input and unsupported requests.

    >>> import locum
    >>> try:
    ...     locum.compile(locum.tokens, length=0, vocabulary="ab")
    ... except LocumError as error:
    ...     print(type(error).__name__)
    CompileError
    """


class GraphError(LocumError):
    """Raised for invalid operands or an invalid program graph, for example in a file.

    >>> import locum
    >>> locum.aggregate(locum.tokens, locum.tokens)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    locum.errors.GraphError: ...
    """


class InputError(LocumError):
    """Raised for invalid input, for example a sequence on which no program can run, an unreadable file,
    or an invalid setting.

    For example, a sequence is invalid if it is empty or contains None.

    >>> import locum
    >>> try:
    ...     locum.indices([])
    ... except InputError as error:
    ...     print(error)
    expected at least one token, got an empty input
    """


class ExecutionError(LocumError):
    """Raised if a program cannot be run on an input, for example because its result is undefined.

    ``where`` is the text of the s-op or selector in which the error occurs, or empty if there is none.
    ``position`` is the position in the input, or None if the error does not concern a single position.
    For a selector, this is the position of the query. ``kind`` is the violated rule, such as "mixture",
    "average", "not real", "too large" or "refused", or the name of a Python error, such as
    "ZeroDivisionError".

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
        found, separator, advice = problem.partition("; try ")
        super().__init__(found + place + (f", in {where}" if where else "") + separator + advice)


class LimitError(LocumError):
    """Raised for a program that exceeds a limit of its :class:`~locum.budget.Budget`, and for other
    computations that would be too large.

    ``kind`` is "too deep" for calls, lists or loaded files that are nested too deeply. For other
    limits, such as steps and bytes, ``kind`` is "too much".
    """

    def __init__(self, problem: str, kind: str = "too much") -> None:
        self.kind = kind
        super().__init__(problem)


class CompileError(LocumError):
    """Raised for a program that cannot be compiled to weights with the given options.

    The message states the reason and, if known, the s-op or selector in which the problem occurs.
    ``instead`` suggests an alternative, or is empty. ``bound`` is the error bound of a network that
    does not meet the requested tolerance, or None.

    >>> import locum
    >>> try:
    ...     locum.compile(locum.indices, length=4, vocabulary=[])
    ... except CompileError as error:
    ...     print(error)
    vocabulary: expected one token or more, got none
    """

    def __init__(
        self, problem: str, where: str = "", instead: str = "", *, bound: float | None = None
    ) -> None:
        self.problem = problem
        self.where = where
        self.instead = instead
        self.bound = bound
        place = f", in {where}" if where else ""
        found, _, advice = problem.partition("; try ")
        suggestions = [text for text in (advice, instead) if text]
        tried = f"; try {'; or try '.join(suggestions)}" if suggestions else ""
        super().__init__(f"{found}{place}{tried}")

    def at(self, where: str, instead: str = "") -> CompileError:
        """Return a copy of the error with another location ``where`` and, if given, another suggestion
        ``instead``.
        """
        return CompileError(self.problem, where, instead or self.instead, bound=self.bound)
