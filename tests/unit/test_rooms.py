"""What each room really imports, seen from a bare interpreter: the static contracts cannot see deferred imports."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from graphlib import TopologicalSorter

import grimp
import pytest

import morimon

HEAVY = {"textual", "rich", "torch", "numpy", "psutil", "watchdog", "matplotlib", "click", "msgspec"}

ALLOWED = {
    "probe": set(),
    "keeper": set(),
    "model": {"msgspec"},
    "runs": {"msgspec"},
    "logs": {"msgspec"},
    "ep": {"msgspec", "numpy"},
    "trace": {"msgspec", "numpy"},
    "store": {"msgspec"},
    "draw": {"msgspec"},
    "hub": {"msgspec", "psutil"},
    "feeds": {"msgspec", "numpy", "watchdog"},
    "views": {"msgspec", "numpy"},
    "report": {"msgspec", "numpy", "psutil", "watchdog"},
    "tui": {"msgspec", "numpy", "rich", "textual", "watchdog"},
    "bench": {"msgspec", "numpy", "torch"},
    "cli": {"click", "msgspec", "numpy", "psutil", "watchdog"},
    "cli.main": {"click"},
}

IMPORT_ALL = """
import importlib, json, pkgutil, sys
room = importlib.import_module("morimon." + sys.argv[1])
for module in pkgutil.walk_packages(getattr(room, "__path__", []), room.__name__ + "."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def test_every_room_is_looked_at() -> None:
    rooms = {module.name for module in pkgutil.iter_modules(morimon.__path__)}
    assert rooms == {"__main__"} | ALLOWED.keys() - {"cli.main"}


@pytest.mark.parametrize("room", ALLOWED)
def test_room_imports_only_what_it_may(room: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, room], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    loaded = set(json.loads(done.stdout)) & HEAVY
    assert loaded <= ALLOWED[room], f"morimon.{room} imports {sorted(loaded - ALLOWED[room])}"


def test_no_module_imports_itself_by_a_detour() -> None:
    graph = grimp.build_graph("morimon")
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    order = list(TopologicalSorter(imports).static_order())
    assert order.index("morimon.model.events") < order.index("morimon.tui.shell")
