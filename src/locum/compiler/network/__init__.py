"""Heads and feed-forwards without numbers: when everything happens, and what reads what."""

from locum.compiler.network.lowering import lower
from locum.compiler.network.schedule import schedule

__all__ = ["lower", "schedule"]
