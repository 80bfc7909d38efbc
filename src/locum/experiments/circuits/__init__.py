"""Circuits of compiled networks, checked by interchange interventions."""

from locum.circuits.checking import alignment, check_circuit

__all__ = ["alignment", "check_circuit"]
