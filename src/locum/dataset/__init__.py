"""A dataset of compiled circuits, and what reads and scores it."""
