"""Relate the executed programs to the Coq theorems in ``proofs/``, most of which hold for all shapes.

``coq_text`` writes a program as a term of ``proofs/Rasp.v``. ``ties`` writes equations between the
constructions at given shapes and the Coq definitions. ``python -m locum.proofs.coq proofs``
(``make coq``) checks the theorems and the equations with Coq.
"""
