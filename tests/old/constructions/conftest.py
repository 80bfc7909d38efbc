"""Every test of the constructions runs twice: by dense execution, and by the fast one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from locum.constructions import Matrix


@pytest.fixture(scope="module", autouse=True, params=["dense", "fast"])
def default_executor(request: pytest.FixtureRequest) -> Iterator[str]:
    """What ``Matrix.run`` uses unless told otherwise."""
    defaults = Matrix.run.__kwdefaults__
    assert defaults is not None
    before = defaults["executor"]
    defaults["executor"] = request.param
    yield request.param
    defaults["executor"] = before


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Falling back is no failure here: numbers that arrays do not hold, errors."""
    mark = pytest.mark.filterwarnings("ignore::locum.execution.fast.FallbackWarning")
    for item in items:
        if "constructions" in item.path.parts:
            item.add_marker(mark)
