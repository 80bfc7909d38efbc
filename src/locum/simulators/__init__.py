"""Simulate attention with the universal simulator U, which maps ⟨T, X⟩ to T(X).

T is an attention or transformer layer, and X is its input. To understand the code, first read
``formula/head.py`` and ``formula/layer.py``, which contain the formula of U. ``modules/`` defines the
layers T, each with a direct computation. ``conversion.py`` converts PyTorch layers and arrays to such a
T. ``order.py`` defines the sizes that determine U, ``token_layout.py`` defines the positions of matrix
entries in the sequence, and ``universal.py`` defines the simulator.

>>> import numpy as np
>>> T = Attention(A=np.eye(2), V=[[1.0], [2.0]])
>>> U = UniversalSimulator(3, 2, 1)
>>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
>>> float(np.abs(U(T, X) - T(X)).max()) < 1e-15
True
"""

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
