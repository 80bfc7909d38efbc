"""The steps of a plan: views, products and sums of arrays, emitted from symbolic positions."""
