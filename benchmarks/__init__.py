"""Measure Locum: time, memory, sizes and errors, in most cases relative to another implementation."""
