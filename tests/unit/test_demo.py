"""The recording that is shipped: whole, with all its output, and of nobody's machine."""

from __future__ import annotations

from click.testing import CliRunner

from morimon.cli.replay import DEMO, command
from morimon.feeds.log_text import LogText
from morimon.feeds.record import RecordReader
from morimon.store.store import Store


def test_the_demo_is_a_whole_run_with_a_late_rank() -> None:
    store = Store()
    reader = RecordReader(DEMO / "events.jsonl")
    while events := reader.read():
        for event in events:
            store.apply(event)
    reader.close()
    run = store.snapshot()
    assert run.state == "finished"
    assert run.drops == ()
    assert len(run.ranks) == 8
    assert run.straggler is not None
    assert run.straggler.rank == 2
    assert run.cwd == "/home/user"
    text = LogText(DEMO)
    for ref in run.logs:
        assert len(text.lines(ref)) == ref.lines


def test_the_command_shows_it_without_a_name_and_wants_one_run_only() -> None:
    shown = CliRunner().invoke(command, ["--demo"])
    assert shown.exit_code == 0
    assert "rank 2" in shown.output
    for arguments in ([], ["--demo", "x"]):
        assert CliRunner().invoke(command, arguments).exit_code == 2
