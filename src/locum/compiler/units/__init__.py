"""Functions as hidden units: relu, gelu and gated units that compute gates and tables."""
