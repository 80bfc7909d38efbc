"""Heads and feed-forwards without numbers: when everything happens, and what reads what."""

from locum.networks.compiler.network.network import lay_out, schedule
from locum.networks.compiler.network.network_lowering import lower

__all__ = ["lay_out", "lower", "schedule"]
