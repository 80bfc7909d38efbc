"""Lower s-ops at symbolic positions, and determine the keys of a head for all queries at once."""
