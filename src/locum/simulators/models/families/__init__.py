"""Whole models of the transformers library as T's: one reader per family, over one description.

A reader (``gpt.py``, ``llama.py``, …) turns a config and its tensors into a ``Description``: layers,
what stands before and after them, and the tables that go with positions. ``running.py`` runs any
description by U; ``table.py`` lists the families.
"""
