"""What one group of hidden units computes: the few shapes that all functions are brought to.

A gate is a function of one or two forms. Whatever the activation (relu, gelu, or relu in a gated unit),
a gate becomes *ridges*, c·activation(w·x + b), and in a gated feed-forward products of two forms
(``realise.py`` has the kinds side by side). Which gate an s-op is, is known before the forms that it
reads are: until then it is a :class:`Recipe`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from locum.compiler.network.forms import Form, Vector
from locum.compiler.scoring.linear import Linear


@dataclass(frozen=True, eq=False)
class Product:
    """a · b."""

    a: Form
    b: Form

    @property
    def arguments(self) -> tuple[Form, ...]:
        """What it reads."""
        return self.a, self.b


@dataclass(frozen=True, eq=False)
class Masked:
    """``value`` where ``mask`` is 1, and 0 where it is 0."""

    mask: Form
    value: Form

    @property
    def arguments(self) -> tuple[Form, ...]:
        """What it reads."""
        return self.mask, self.value


class _OfOneForm:
    """A gate that reads one form."""

    x: Form

    @property
    def arguments(self) -> tuple[Form, ...]:
        """What it reads."""
        return (self.x,)


@dataclass(frozen=True, eq=False)
class Curved(_OfOneForm):
    """A smooth function (``curves.CURVES``) of one form."""

    name: str
    x: Form
    #: Whether its error is to be small in proportion to its value (exponentials that are summed).
    relative: bool = False
    #: What the argument is known not to exceed, beyond what its parts tell.
    at_most: float = np.inf
    #: (z, log b), where this is exp(z − log b) and b a sum of exp(z) over keys, its own among them: a
    #: softmax.
    softmax: tuple[Form, Form] | None = None


@dataclass(frozen=True, eq=False)
class Bend(_OfOneForm):
    """before·x left of 0 and after·x right of it: |x|, max(x, 0)."""

    x: Form
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class Ramp(_OfOneForm):
    """0 where x ≤ 0 and 1 where x ≥ width; x is never in between."""

    x: Form
    width: float


@dataclass(frozen=True, eq=False)
class Table(_OfOneForm):
    """Where x is one of the keys (in order), the value of that key."""

    x: Form
    keys: Vector
    values: Vector
    #: Whether x was put on a grid by a :class:`Snap`, so that the sums of units are exact.
    gridded: bool = False

    @cached_property
    def gap(self) -> float:
        """How far keys of different values are apart, at least."""
        return float(np.diff(self.keys)[np.diff(self.values) != 0].min(initial=np.inf))

    @cached_property
    def steepest(self) -> float:
        """The greatest slope between neighbouring keys."""
        if len(self.keys) < 2:
            return 0.0
        return float(np.abs(np.diff(self.values) / np.diff(self.keys)).max())


@dataclass(frozen=True, eq=False)
class Snap(_OfOneForm):
    """Round x, an integer plus rounding error, to that integer; or any x to a grid.

    It is relu(x + C) − C for a large C: no more than x on paper, but floats as large as C have no room
    for the noise. So counts can be keys of hard attention, whose ties have to be exact; and a table can
    be looked up by a number on a grid without rounding.
    """

    x: Form
    #: Whether x is an integer but for noise; else it may be any number.
    whole: bool = True


Gate: TypeAlias = Product | Masked | Curved | Bend | Ramp | Table | Snap

#: C, and how far apart the floats of its size are.
SNAP = {"float64": (1.5 * 2.0**40, 2.0**-12), "float32": (1.5 * 2.0**21, 2.0**-2)}


@dataclass(frozen=True)
class Recipe:
    """A gate before its arguments are forms: how to make it of them."""

    arguments: tuple[Linear, ...]
    make: Callable[..., Gate]
    #: More forms that it is good to know of, but that are not read.
    beside: tuple[Linear, ...] = ()
    #: Whether what comes out may be off even where what goes in is not.
    approximates: bool = False
    #: Whether what comes out is exact even where what goes in is not.
    exact: bool = False
