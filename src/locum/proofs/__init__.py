"""Verification: proofs for all inputs, counterexamples, certificates, and certified error.

- :func:`prove` a claim (by name and shape, or by :func:`about`): :class:`Proof`, :class:`Refutation` or
  :class:`Unproven`;
- :func:`check` a certificate or a refutation without the prover's code;
- :func:`certify` the result of U on given numbers: an enclosure, and a bound on the rounding error.

Names are imported when they are first used: the checker does not load the prover.
"""

from locum.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__)
del attach
