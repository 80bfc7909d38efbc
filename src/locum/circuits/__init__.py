"""Circuits of compiled networks, checked by interchange interventions."""

from locum.circuits.alignment import alignment
from locum.circuits.checking import check_circuit

__all__ = ["alignment", "check_circuit"]
