"""Define claims about programs, with conditions on the inputs and reference formulas."""
