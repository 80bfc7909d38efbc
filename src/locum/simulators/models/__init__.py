"""Trained layers and models as T's.

``torch_layers.py`` reads torch's own layers, ``folders.py`` folders, ``checkpoint.py`` those of the
BERT family, ``forms.py`` plain arrays; ``model.py`` is a whole encoder made of such layers,
``direct.py`` its own forward pass, to compare with; ``running.py`` is ``locum.simulate``. ``families/``
reads whole models of the transformers library, and writes text by them.
"""

from locum.simulators.models.checkpoint import Checkpoint, read_checkpoint
from locum.simulators.models.families.generating import generate
from locum.simulators.models.forms import FORMS, attention_of, from_arrays
from locum.simulators.models.model import EncoderModel
from locum.simulators.models.results import ModelRun
from locum.simulators.models.running import simulate
from locum.simulators.models.torch_layers import from_torch

__all__ = [
    "FORMS",
    "Checkpoint",
    "EncoderModel",
    "ModelRun",
    "attention_of",
    "from_arrays",
    "from_torch",
    "generate",
    "read_checkpoint",
    "simulate",
]
