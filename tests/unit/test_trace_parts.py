"""What is worked out in threads: once a value, once a failure, and faults are not hidden."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from morimon.trace.model import TraceError
from morimon.tui.trace_parts import KEPT, Parts


class Asker:
    """Asks for one value until it is told that something may be shown."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self.said: list[str] = []
        self.made = 0
        self.parts = Parts(self.arrived.set, self.said.append)

    async def ask(self, make: Callable[[], object], key: object = "key") -> object:
        def counted() -> object:
            self.made += 1
            return make()

        self.arrived.clear()
        assert self.parts.get(key, counted) is None
        assert self.parts.get(key, counted) is None, "on its way, and not begun twice"
        await asyncio.wait_for(self.arrived.wait(), 10)
        return self.parts.get(key, counted)


def raising(error: BaseException) -> Callable[[], object]:
    def make() -> object:
        raise error

    return make


async def test_a_value_is_made_once() -> None:
    asker = Asker()
    assert await asker.ask(lambda: 7) == 7
    assert asker.made == 1
    assert asker.said == []


@pytest.mark.parametrize(
    ("error", "said"), [(MemoryError(), "not enough memory"), (TraceError("x.json: torn."), "x.json: torn.")]
)
async def test_what_the_trace_or_memory_does_not_give_is_said_once(error: BaseException, said: str) -> None:
    asker = Asker()
    assert await asker.ask(raising(error)) is None
    assert asker.parts.get("key", lambda: 7) is None
    assert asker.made == 1
    (sentence,) = asker.said
    assert said in sentence


async def test_a_fault_reaches_whoever_asks_and_is_not_tried_again() -> None:
    asker = Asker()
    for _ in range(2):
        with pytest.raises(KeyError, match="no such slot"):
            await asker.ask(raising(KeyError("no such slot"))) if not asker.made else asker.parts.get(
                "key", int
            )
    assert asker.made == 1
    assert asker.said == []


async def test_the_oldest_values_make_room() -> None:
    asker = Asker()
    for key in range(KEPT + 1):
        assert await asker.ask(lambda key=key: key, key) == key  # type: ignore[misc]  # a default binds it
    assert asker.parts.get(1, lambda: -1) == 1
    assert asker.parts.get(0, lambda: -1) is None
    asker.parts.close()
