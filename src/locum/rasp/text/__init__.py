"""Parse RASP text with a grammar, and run it statement by statement in a session."""
