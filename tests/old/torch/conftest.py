"""The fixtures of tests of PyTorch."""

from tests.torch.conftest import fresh_dynamo

__all__ = ["fresh_dynamo"]
