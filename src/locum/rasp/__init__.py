"""RASP: s-ops as Python objects (``python``), programs as text (:class:`Session`), drawings."""

from locum.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__)
del attach
