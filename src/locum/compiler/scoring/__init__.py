"""Selectors as scores q·k: linear forms, features, classes of queries and keys."""
