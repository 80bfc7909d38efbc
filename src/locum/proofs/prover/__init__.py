"""Proofs for all inputs: dense execution on indeterminates, case by case."""
