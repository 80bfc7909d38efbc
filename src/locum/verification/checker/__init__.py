"""Certificates and refutations, verified by code that shares nothing with the prover."""
