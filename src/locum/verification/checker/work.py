"""What a check may cost, counted: steps and bytes, so that the answer does not depend on a clock.

The product of two short terms is two *steps*, and whatever takes longer, more. Everything that a file
can make long is counted before it is done; a file that asks for more than there is, is refused.

>>> work = Work(steps=100)
>>> work.spend(60)
>>> work.spend(60)
Traceback (most recent call last):
...
locum.verification.checker.polynomials.TooLargeError: it takes more than 100 steps: try --steps N
"""

from __future__ import annotations

from locum.verification.checker.polynomials import TooLargeError

#: Steps that a check may take unless told otherwise: some seconds.
STEPS = 25_000_000
#: What any operation costs beside its terms, and what an enclosure of a function costs.
OPERATION = 35
ENCLOSURE = 50_000
#: Bytes of one polynomial at most, and bytes of all values that are kept for each step that is
#: allowed, as they are estimated: 350 MB unless told otherwise.
MAX_BYTES = 150_000_000
BYTES_PER_STEP = 14


class Work:
    """Steps that are left, and bytes that are kept."""

    def __init__(self, steps: int) -> None:
        self.steps = self._limit = steps
        self._kept: dict[int, object] = {}
        self._bytes = self._most = 0

    def spend(self, steps: int) -> None:
        """Count work about to be done, or refuse it."""
        self.steps -= steps
        if self.steps < 0:
            raise TooLargeError(f"it takes more than {self._limit:,} steps: try --steps N")

    def keep(self, value: object, size: int) -> None:
        """Count the memory of a value that stays, or refuse it; what is kept already costs nothing."""
        if id(value) not in self._kept:
            self._kept[id(value)] = value
            self._bytes += size
            self._most = max(self._most, self._bytes)
            if self._bytes > BYTES_PER_STEP * self._limit:
                raise TooLargeError(
                    f"its values take more than {BYTES_PER_STEP * self._limit:,} bytes: try --steps N"
                )

    @property
    def needed(self) -> int:
        """The least number of steps that would have been enough so far."""
        return max(self._limit - self.steps, -(-self._most // BYTES_PER_STEP))

    def forget(self) -> None:
        """Begin anew to count what is kept."""
        self._kept, self._bytes = {}, 0
