"""Implement the user interfaces: command line, playground, and descriptions and pages of results."""
