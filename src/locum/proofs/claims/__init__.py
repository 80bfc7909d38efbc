"""What is claimed: programs, conditions and reference formulas."""
