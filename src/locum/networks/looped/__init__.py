"""Build and run the looped transformers of Giannou et al. (2023), with which the paper compares U.

A *block* of a few layers is applied repeatedly to its own output. As in the work of Giannou et al., the
loop itself is not part of the block. The code of their SUBLEQ machine is public. For transposition and
AᵀB, the authors publish only sizes. These two networks are therefore **reconstructions**.

>>> import numpy as np
>>> from locum.networks.looped import Transposition
>>> A = np.arange(9.0).reshape(3, 3)
>>> bool(np.allclose(Transposition(3)(A), A.T, rtol=0, atol=1e-12))
True
"""

from locum.networks.looped.block import LoopedBlock
from locum.networks.looped.matrix_operations import Product, Transposition
from locum.networks.looped.subleq import FACTORIAL, SubleqMachine

__all__ = ["FACTORIAL", "LoopedBlock", "Product", "SubleqMachine", "Transposition"]
