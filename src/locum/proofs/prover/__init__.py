"""Prove claims for all inputs, by running dense execution on indeterminates in every case."""
