"""Verify programs: proofs for all inputs, counterexamples, certificates and certified error bounds.

- :func:`prove` searches for a proof of a claim and returns a :class:`Proof`, a :class:`Refutation` or
  an :class:`Unproven`. A claim is given by name and shape, or is built by :func:`about`.
- :func:`check` verifies a certificate or a refutation without the code of the prover.
- :func:`certify` encloses the result of U on given numbers and bounds its rounding error.

Names are imported on first use, so that the checker does not import the prover.
"""

from locum.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__)
del attach
