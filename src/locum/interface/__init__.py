"""Implement the user interfaces: command line, playground, and drawings and pages of results."""
