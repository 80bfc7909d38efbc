"""What a case of a proof decides: comparisons, and what depends on them.

Operations follow the definitions in ``graph/operations.py`` over the real numbers. A number that
depends on an open boolean is a *choice*: a variable of its own, one for each operation and operands, of
which nothing is used but bounds that hold of it alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from locum.verification.checker.knowledge import ANY, Knowledge, Signs
from locum.verification.checker.quotients import Quotient
from locum.verification.checker.values import (
    UNKNOWN,
    Missing,
    Open,
    Scalar,
    is_boolean,
    is_number,
    is_rational,
    without_value,
)

#: What a comparison that is not of two numbers costs, in products of terms.
COMPARISON = 500

HOLDS: dict[str, Signs] = {
    "equal": frozenset((0,)),
    "not_equal": frozenset((-1, 1)),
    "less": frozenset((-1,)),
    "less_equal": frozenset((-1, 0)),
    "greater": frozenset((1,)),
    "greater_equal": frozenset((0, 1)),
}


class Decisions:
    """Comparisons, booleans, choices and lookups in one case."""

    def __init__(self, knowledge: Knowledge, integer: bool) -> None:
        self.knowledge = knowledge
        self.numbers = knowledge.numbers
        #: Whether entries stand for integers.
        self.integer = integer
        self.identity = self.numbers.identity
        self._comparisons: dict[tuple[int, int, str], bool | Open] = {}

    # Forms of values ------------------------------------------------------------------------------

    def identity_of(self, value: Scalar) -> int:
        """Return the number of a value."""
        if isinstance(value, Quotient):
            return self.identity(("quotient", value.key))
        if isinstance(value, Open):
            return value.number
        if value is UNKNOWN or isinstance(value, Missing):
            return self.numbers.once()
        return self.identity((type(value) is bool, value))

    def quotient(self, value: Scalar) -> Quotient:
        """Return a number as a quotient."""
        return value if isinstance(value, Quotient) else self.numbers.number(value)

    def plain(self, value: Quotient) -> Scalar:
        """Return a quotient without variables as a rational number."""
        rational = value.rational
        return value if rational is None else rational

    def numeric(self, value: Scalar) -> Scalar:
        """Return a boolean as the number 0 or 1."""
        if isinstance(value, Open):
            return self.if_else(value, 1, 0)
        return int(value) if isinstance(value, bool) else value

    def choice(self, key: Hashable, candidates: Sequence[Scalar] = (), mean: bool = False) -> Quotient:
        """Return a number that depends on what is open.

        Within the candidates, if these are rational.
        """
        if candidates and all(map(is_rational, candidates)):
            integer = not mean and all(type(value) is int for value in candidates)
            return self.numbers.choice(key, min(candidates), max(candidates), integer)
        return self.numbers.choice(key)

    # Booleans -------------------------------------------------------------------------------------

    def truth(self, value: Scalar) -> Scalar:
        """Return whether a value is not 0."""
        if isinstance(value, (bool, Open, Missing)) or value is UNKNOWN:
            return value
        return self.compare("not_equal", value, 0)

    def negation(self, value: Scalar) -> Scalar:
        """Return not ``value``."""
        if isinstance(value, bool):
            return not value
        if isinstance(value, Open):
            return Open(self.identity(("not", value.number)))
        return value

    def all_of(self, values: Sequence[Scalar]) -> Scalar:
        """Return whether all booleans hold: False if one does not, whatever the others are."""
        missing = next((value for value in values if isinstance(value, Missing)), None)
        if missing is not None:
            return missing
        if any(value is False for value in values):
            return False
        if any(value is UNKNOWN for value in values):
            return UNKNOWN
        numbers = sorted({value.number for value in values if isinstance(value, Open)})
        if not numbers:
            return True
        return Open(numbers[0] if len(numbers) == 1 else self.identity(("and", *numbers)))

    def compare(self, name: str, a: Scalar, b: Scalar) -> Scalar:
        """Compare by the sign of the difference."""
        trouble = without_value((a, b))
        if trouble is not None:
            return trouble
        a, b = self.numeric(a), self.numeric(b)
        if is_rational(a) and is_rational(b):
            return (a > b) - (a < b) in HOLDS[name]
        key = (self.identity_of(a), self.identity_of(b), name)
        if key not in self._comparisons:
            self.numbers.spend(COMPARISON)
            difference = self.numbers.subtract(self.quotient(a), self.quotient(b))
            self._comparisons[key] = self.signed(difference, HOLDS[name])
        return self._comparisons[key]

    def signed(self, value: Quotient, holds: Signs) -> bool | Open:
        """Return whether the sign of a quotient is one of these."""
        signs = self.knowledge.sign(value)
        if signs <= holds:
            return True
        if not signs & holds:
            return False
        odd = tuple(number for number, power in value.factors if power % 2)
        content = value.top.content
        if content < 0:
            holds = frozenset(-sign for sign in holds)
        polynomial = value.top.without(content)
        if len(holds) == 2:
            return Open(self.identity(("not", self._sign_of(polynomial, odd, ANY - holds).number)))
        return self._sign_of(polynomial, odd, holds)

    def _sign_of(self, polynomial: Hashable, odd: tuple[int, ...], holds: Signs) -> Open:
        return Open(self.identity(("sign", polynomial, odd, holds)))

    def if_else(self, condition: Scalar, then: Scalar, otherwise: Scalar) -> Scalar:
        """Return ``then`` where the condition holds; both are computed, so both must have a value."""
        answer = self.truth(condition)
        missing = next((v for v in (answer, then, otherwise) if isinstance(v, Missing)), None)
        if missing is not None:
            return missing
        if isinstance(answer, bool):
            return then if answer else otherwise
        if answer is UNKNOWN:
            return UNKNOWN
        mine, other = self.identity_of(then), self.identity_of(otherwise)
        if mine == other:
            return then
        key = ("if", answer.number, mine, other)
        if is_boolean(then) and is_boolean(otherwise):
            return Open(self.identity(key))
        if is_number(then) and is_number(otherwise):
            return self.choice(key, [then, otherwise])
        return UNKNOWN

    def member(self, value: Scalar, *, values: Sequence[Scalar]) -> Scalar:
        """Return whether a value is one of these."""
        differs = [self.compare("not_equal", value, other) for other in values]
        return self.negation(self.all_of([without_value((value,)) or True, *differs]))

    def lookup(self, value: Scalar, *, table: Sequence[tuple[Scalar, Scalar]]) -> Scalar:
        """Return what a table has for a value; UNKNOWN where it may have nothing."""
        trouble = without_value((value,))
        if trouble is not None:
            return trouble
        value = self.numeric(value)
        candidates: list[tuple[Scalar, Scalar]] = []
        certain = False
        for key, entry in table:
            answer = self.compare("equal", value, key)
            if answer is True and not candidates:
                return entry
            if answer is not False:
                candidates.append((key, entry))
            if answer is True:
                certain = True
                break
        if not candidates:
            return Missing("the lookup table has no entry for a value")
        if not certain and not self._covered(value, [key for key, _ in candidates]):
            return UNKNOWN
        entries = [entry for _, entry in candidates]
        identity = ("lookup", self.identity_of(value), tuple(table))
        if all(map(is_boolean, entries)):
            return Open(self.identity(identity))
        return self.choice(identity, entries) if all(map(is_number, entries)) else UNKNOWN

    def _covered(self, value: Scalar, keys: Sequence[Scalar]) -> bool:
        """Return whether an integer between bounds is certainly one of the keys."""
        variable = self.numbers.behind(value) if isinstance(value, Quotient) else None
        if variable is None or not variable.integer or variable.low is None or variable.high is None:
            return False
        if variable.high - variable.low > len(keys):
            return False
        return all(n in keys for n in range(int(variable.low), int(variable.high) + 1))
