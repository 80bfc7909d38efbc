"""Measure times, memory, sizes and errors of Locum, and compare them with other implementations."""
