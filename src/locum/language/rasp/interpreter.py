"""The meaning of RASP: every rule of ``rasp.lark`` with the function that evaluates it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from locum.language.rasp.application import APPLICATION_RULES
from locum.language.rasp.attention import ATTENTION_RULES
from locum.language.rasp.literals import LITERAL_RULES
from locum.language.rasp.machine import Rule
from locum.language.rasp.operators import OPERATOR_RULES
from locum.language.rasp.statements import STATEMENT_RULES

RULES: Mapping[str, Rule] = MappingProxyType(
    STATEMENT_RULES | LITERAL_RULES | OPERATOR_RULES | ATTENTION_RULES | APPLICATION_RULES
)
