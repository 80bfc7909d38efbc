"""Prove claims for all inputs, by running dense execution on symbols in every case."""
