"""The meaning of RASP: every rule of ``rasp.lark`` with the function that evaluates it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from locum.language.rasp import application, attention, literals, operators, statements
from locum.language.rasp.machine import Rule

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **statements.RULES,
        **literals.RULES,
        **operators.RULES,
        **attention.RULES,
        **application.RULES,
    }
)
