"""What is worked out of a trace for the screen, in threads, so that keys keep answering: asked for, and there a moment
later.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from morimon.trace.model import TraceError

Value = TypeVar("Value")
KEPT = 24


class Parts:
    """Values by key; `get` answers at once, with None while a value is being worked out, and for good where memory or the
    trace does not suffice: then `failed` is told, once, in a sentence. Any other error is a fault of morimon's own: the
    next `get` raises it, and nothing is tried again.
    """

    def __init__(self, ready: Callable[[], object], failed: Callable[[str], object]) -> None:
        self._ready, self._failed = ready, failed
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value | None:
        """The value of this key; `make` runs in a thread if there is none yet."""
        if key in self._values:
            self._values.move_to_end(key)
            value: Value = self._values[key]
            return value
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.get_running_loop().create_task(self._work(key, make))
            task.add_done_callback(self._end)
        elif task.done():
            task.result()
        return None

    def close(self) -> None:
        """Drop everything."""
        for task in self._tasks.values():
            task.cancel()
        self._values.clear()

    async def _work(self, key: Hashable, make: Callable[[], object]) -> None:
        value: object = None
        try:
            value = await asyncio.to_thread(make)
        except MemoryError:
            self._failed(
                "There is not enough memory to work this out of the trace; free some, and open it again."
            )
        except TraceError as error:
            self._failed(str(error))
        del self._tasks[key]
        self._values[key] = value
        while len(self._values) > KEPT:
            self._values.popitem(last=False)
        self._ready()

    def _end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._ready()
