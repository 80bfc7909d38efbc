"""Check proofs and refutations without the prover's code for evaluation and arithmetic."""
