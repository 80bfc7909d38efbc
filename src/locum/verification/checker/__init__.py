"""Certificates verified with arithmetic of its own."""
