"""A place for real jobs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.jobs import Bench, bench


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with bench(monkeypatch.setenv) as made:
        yield made
