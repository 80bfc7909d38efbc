"""Compiled networks in words, on the terminal and as a page."""
