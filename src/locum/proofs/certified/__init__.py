"""Enclosures: dense execution on balls, and bounds on what floating point loses."""
