"""Emit the steps of a plan from symbolic positions, fuse them, and implement them on arrays."""
