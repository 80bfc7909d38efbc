"""Tabulate and draw the results of docs/learning.md (``src/locum/experiments/learning`` trains)."""
