"""Represent the paper: its items (``items.py``), errata, listings and figures.

An item connects functions of Locum with the paper's claim, proofs, errata and listings. Other tables
refer to an item by its key.
"""
