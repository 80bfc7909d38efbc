"""Tie the programs that run to the Coq theorems in ``proofs/``, which hold for all shapes.

``terms`` prints a program as a term of ``proofs/Rasp.v``; ``ties`` says which Coq definition a
construction is at a shape; ``python -m locum.proofs.coq`` (``make coq``) has Coq check both.
"""
