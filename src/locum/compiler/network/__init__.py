"""Heads and feed-forwards without numbers: when everything happens, and what reads what."""

from locum.compiler.network.lowering import lower
from locum.compiler.network.schedule import schedule
from locum.compiler.network.slots import lay_out

__all__ = ["lay_out", "lower", "schedule"]
