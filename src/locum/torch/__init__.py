"""Run PyTorch models as RASP programs with ``torch.compile(model, backend="locum")``."""

from locum.simulators.conversion import from_torch
from locum.torch.simulation import simulate
from locum.torch.step_recorder import Recorder, record
from locum.torch.translation import UnsupportedOperationError
from locum.torch.usage_report import Report, report

__all__ = [
    "Recorder",
    "Report",
    "UnsupportedOperationError",
    "from_torch",
    "record",
    "report",
    "simulate",
]
