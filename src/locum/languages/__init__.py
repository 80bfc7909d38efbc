"""Parse, run and compare languages of transformers: C-RASP, B-RASP, LTL, RASP-L and regular languages.

:func:`classify` determines which attention models recognise a regular language. :func:`equivalent`
compares two languages.
"""

from locum.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__)
del attach
