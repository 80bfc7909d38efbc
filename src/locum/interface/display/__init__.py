"""Describe networks in words, and write HTML pages about the paper."""
