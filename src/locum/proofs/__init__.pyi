# The public names of locum.proofs, each with its module. ``public_names.py`` imports them on first use.

from locum.proofs.certified.certify import Certified as Certified
from locum.proofs.certified.certify import certify as certify
from locum.proofs.checker.check import Refuted as Refuted
from locum.proofs.claims.claim import Claim as Claim
from locum.proofs.claims.claim import about as about
from locum.proofs.claims.formula import Formula as Formula
from locum.proofs.claims.named import FAMILIES as FAMILIES
from locum.proofs.claims.named import claim as claim
from locum.proofs.prover.prove import Proof as Proof
from locum.proofs.prover.prove import Refutation as Refutation
from locum.proofs.prover.prove import Unproven as Unproven
from locum.proofs.prover.prove import prove as prove

__all__: list[str]
