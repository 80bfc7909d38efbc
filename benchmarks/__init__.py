"""Measurements: each a ratio to a peer, with what it was measured on."""
