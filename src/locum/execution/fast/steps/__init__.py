"""Emit the steps of a plan from symbolic positions: views, products and sums of arrays."""
