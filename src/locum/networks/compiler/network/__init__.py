"""Represent heads and feed-forwards without weights: their schedule, and the signals that they read."""

from locum.networks.compiler.network.network import Schedule, lay_out, schedule
from locum.networks.compiler.network.network_lowering import lower

__all__ = ["Schedule", "lay_out", "lower", "schedule"]
