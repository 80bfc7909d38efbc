"""Enclose the results of dense execution in balls, and bound their floating-point errors."""
