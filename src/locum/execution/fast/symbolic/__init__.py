"""S-ops at a symbolic position: which keys a head means, solved for all queries at once."""
