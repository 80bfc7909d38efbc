"""U, the universal simulator: ⟨T, X⟩ in, T(X) out; and the T's it simulates.

Read ``heads.py`` and ``formulas.py`` first: they are U, as its formula. ``attention.py``,
``encoder.py``, ``decoder.py`` and ``kinds.py`` have the T's, each with its direct computation;
``factored.py`` and ``adapters/`` have those of trained models; ``layout.py`` says which token is which
entry; ``universal.py`` puts them together.

>>> import numpy as np
>>> T = Attention(A=np.eye(2), V=[[1.0], [2.0]])
>>> U = UniversalSimulator(3, 2, 1)
>>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
>>> float(np.abs(U(T, X) - T(X)).max()) < 1e-15
True
"""

from understudy.simulators.adapters import (
    EncoderModel,
    ModelRun,
    from_arrays,
    from_torch,
    simulate,
)
from understudy.simulators.attention import Attention, MultiHeadAttention
from understudy.simulators.decoder import DecoderLayer
from understudy.simulators.encoder import Encoder
from understudy.simulators.explain import Explanation, Step
from understudy.simulators.factored import FactoredAttention
from understudy.simulators.generation import LanguageModel
from understudy.simulators.kinds import LinearAttention, Linformer, Performer, Sumformer
from understudy.simulators.layout import Block, Layout
from understudy.simulators.module import Module
from understudy.simulators.order import AttentionOrder, Order
from understudy.simulators.stack import Stack
from understudy.simulators.universal import UniversalSimulator

__all__ = [
    "Attention",
    "AttentionOrder",
    "Block",
    "DecoderLayer",
    "Encoder",
    "EncoderModel",
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
    "Step",
    "Sumformer",
    "UniversalSimulator",
    "from_arrays",
    "from_torch",
    "simulate",
]
