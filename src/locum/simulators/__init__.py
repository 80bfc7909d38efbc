"""U, the universal simulator: ⟨T, X⟩ in, T(X) out; and the T's it simulates.

Read ``formula/head.py`` and ``formula/layer.py`` first: they contain the formula of U. ``modules/`` has
the T's, each with its direct computation. ``conversion.py`` makes T's from layers
of PyTorch and from arrays. ``order.py`` has the sizes that U is built from, ``layout.py`` the positions
of the entries in the sequence, and ``universal.py`` the simulator.

>>> import numpy as np
>>> T = Attention(A=np.eye(2), V=[[1.0], [2.0]])
>>> U = UniversalSimulator(3, 2, 1)
>>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
>>> float(np.abs(U(T, X) - T(X)).max()) < 1e-15
True
"""

from locum.errors import missing_name
from locum.simulators.attention_order import AttentionOrder
from locum.simulators.conversion import from_arrays, from_torch
from locum.simulators.layer_simulator import ExplainedStep, Explanation
from locum.simulators.modules.attention import Attention, MultiHeadAttention
from locum.simulators.modules.attention_kinds import LinearAttention, Linformer, Performer, Sumformer
from locum.simulators.modules.encoder_layers import DecoderLayer, Encoder
from locum.simulators.modules.factored import FactoredAttention
from locum.simulators.modules.module import Module
from locum.simulators.order import Order
from locum.simulators.stack import Stack
from locum.simulators.token_layout import Block, Layout
from locum.simulators.universal import UniversalSimulator

__all__ = [
    "Attention",
    "AttentionOrder",
    "Block",
    "DecoderLayer",
    "Encoder",
    "ExplainedStep",
    "Explanation",
    "FactoredAttention",
    "Layout",
    "LinearAttention",
    "Linformer",
    "Module",
    "MultiHeadAttention",
    "Order",
    "Performer",
    "Stack",
    "Sumformer",
    "UniversalSimulator",
    "from_arrays",
    "from_torch",
]


def __getattr__(name: str) -> object:
    raise missing_name(__name__, name)
