"""Trained layers and models as T's.

``torch_layers.py`` reads torch's own layers, ``checkpoint.py`` folders of the BERT family, ``forms.py``
plain arrays; ``model.py`` is a whole encoder made of such layers, ``direct.py`` its own forward pass,
to compare with; ``running.py`` is ``understudy.simulate``.
"""

from understudy.simulators.adapters.checkpoint import Checkpoint, read_checkpoint
from understudy.simulators.adapters.forms import FORMS, attention_of, from_arrays
from understudy.simulators.adapters.model import EncoderModel
from understudy.simulators.adapters.results import ModelRun
from understudy.simulators.adapters.running import simulate
from understudy.simulators.adapters.torch_layers import encoder_layers, from_torch

__all__ = [
    "FORMS",
    "Checkpoint",
    "EncoderModel",
    "ModelRun",
    "attention_of",
    "encoder_layers",
    "from_arrays",
    "from_torch",
    "read_checkpoint",
    "simulate",
]
