"""Hypothesis: no deadlines (machines differ); CI draws the same examples every time."""

import os

from hypothesis import settings

settings.register_profile("default", deadline=None, max_examples=150)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.register_profile("fuzz", settings.get_profile("default"), max_examples=20_000)
settings.load_profile("ci" if os.environ.get("CI") else "default")
