"""Draw a program on an input: its heads as grids, and the flow of its values."""
