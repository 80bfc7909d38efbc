"""Check circuits by interchange interventions, and test hypotheses about trained models."""

from locum.experiments.circuits.circuit_checking import alignment, check_circuit
from locum.experiments.circuits.hypothesis import HypothesisReport, check_hypothesis

__all__ = ["HypothesisReport", "alignment", "check_circuit", "check_hypothesis"]
