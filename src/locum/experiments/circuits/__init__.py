"""Circuits of compiled networks, checked by interchange interventions."""

from locum.experiments.circuits.circuit_checking import alignment, check_circuit

__all__ = ["alignment", "check_circuit"]
