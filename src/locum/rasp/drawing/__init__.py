"""Draw a program on an input: its heads as grids, its values flowing through."""
