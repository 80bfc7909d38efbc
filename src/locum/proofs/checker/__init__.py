"""Check certificates and refutations, without the evaluators and the arithmetic of the prover."""
