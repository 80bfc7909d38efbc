"""RASP text: read by a grammar, run statement by statement in a session."""
