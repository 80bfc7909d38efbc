"""Looped transformers (Giannou et al. 2023) as weights that run: the systems the paper compares U with.

A *block* of a few layers is applied again and again to its own output; the loop stands outside the
block, as in their paper. Their SUBLEQ machine is public code; of the rest only sizes are published, so
transposition, AᵀB, Newton's iteration and FLEQ are **reconstructions** of about the stated size.

>>> import numpy as np
>>> from locum.networks.looped import Transposition
>>> A = np.arange(9.0).reshape(3, 3)
>>> bool(np.allclose(Transposition(3)(A), A.T, rtol=0, atol=1e-12))
True
"""

from locum.networks.looped.block import LoopedBlock
from locum.networks.looped.fleq import FleqMachine, Instruction
from locum.networks.looped.matrix_operations import Product, Transposition, inversion_program, invert
from locum.networks.looped.subleq import SubleqMachine

__all__ = [
    "FleqMachine",
    "Instruction",
    "LoopedBlock",
    "Product",
    "SubleqMachine",
    "Transposition",
    "inversion_program",
    "invert",
]
