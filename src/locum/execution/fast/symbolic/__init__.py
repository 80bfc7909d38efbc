"""Evaluate s-ops at a symbolic position: the keys of a head, solved for all queries at once."""
