"""Verify programs: proofs for all inputs, counterexamples and certified error bounds.

- :func:`prove` searches for a proof of a claim and returns a :class:`Proof`, a :class:`Refutation` or
  an :class:`Unproven`. A claim is given by name and shape, or is built by :func:`about`.
- :func:`certify` encloses the result of U on given numbers and bounds its rounding error.
"""

from locum.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__)
del attach
