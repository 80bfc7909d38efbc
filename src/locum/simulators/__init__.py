"""U, the universal simulator: ⟨T, X⟩ in, T(X) out; and the T's it simulates.

Read ``formula/head.py`` and ``formula/layer.py`` first: they are U, as its formula. ``modules/`` has
the T's, each with its direct computation, ``models/`` those that somebody trained; ``order.py`` is what
U is built from, ``layout.py`` says which token is which entry, ``universal.py`` puts them together.

>>> import numpy as np
>>> T = Attention(A=np.eye(2), V=[[1.0], [2.0]])
>>> U = UniversalSimulator(3, 2, 1)
>>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
>>> float(np.abs(U(T, X) - T(X)).max()) < 1e-15
True
"""

from locum.simulators.attention_order import AttentionOrder
from locum.simulators.explain import ExplainedStep, Explanation
from locum.simulators.layout import Block, Layout
from locum.simulators.models import (
    EncoderModel,
    ModelRun,
    from_arrays,
    from_torch,
    generate,
    simulate,
)
from locum.simulators.models.generation import LanguageModel
from locum.simulators.modules.attention import Attention, MultiHeadAttention
from locum.simulators.modules.decoder import DecoderLayer
from locum.simulators.modules.encoder import Encoder
from locum.simulators.modules.factored import FactoredAttention
from locum.simulators.modules.kinds import LinearAttention, Linformer, Performer, Sumformer
from locum.simulators.modules.module import Module
from locum.simulators.order import Order
from locum.simulators.stack import Stack
from locum.simulators.universal import UniversalSimulator

__all__ = [
    "Attention",
    "AttentionOrder",
    "Block",
    "DecoderLayer",
    "Encoder",
    "EncoderModel",
    "ExplainedStep",
    "Explanation",
    "FactoredAttention",
    "LanguageModel",
    "Layout",
    "LinearAttention",
    "Linformer",
    "ModelRun",
    "Module",
    "MultiHeadAttention",
    "Order",
    "Performer",
    "Stack",
    "Sumformer",
    "UniversalSimulator",
    "from_arrays",
    "from_torch",
    "generate",
    "simulate",
]
