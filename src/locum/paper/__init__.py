"""The paper: one list of its items (``items.py``), its errata, listings and figures.

Each item names our function, the paper's claim, its proofs, errata and listings; everything else refers
to an item by its key.
"""
