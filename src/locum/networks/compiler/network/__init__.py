"""Heads and feed-forwards without numbers: when everything happens, and what reads what."""

from locum.compiler.network.lowering import lower
from locum.compiler.network.network import lay_out, schedule

__all__ = ["lay_out", "lower", "schedule"]
