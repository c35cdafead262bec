"""Run folders: names, locks, sockets, listing, pruning."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import get_args

import pytest

from morimon.model.codec import encode
from morimon.model.events import RECORD_VERSION, Note, Outcome, RunEnded, RunHeader
from morimon.runs.folder import RunFolder, create_run, default_runs_dir
from morimon.runs.identity import ProcessIdentity, boot_id
from morimon.runs.listing import UnknownRunError, find_run, list_runs, prune
from morimon.runs.lock import HubLock, holder, is_held
from morimon.runs.sockets import MAX_PATH_BYTES, SocketFolderError, socket_folder, socket_path


def make_run(
    runs_dir: Path,
    run_id: str,
    *,
    age_s: float = 0.0,
    ended: bool = True,
    outcome: Outcome = "finished",
    host: str | None = None,
    boot: str = "",
) -> RunFolder:
    folder = RunFolder(runs_dir / run_id)
    folder.path.mkdir(parents=True)
    header = RunHeader(
        t_ns=0,
        version=RECORD_VERSION,
        run_id=run_id,
        host=host or socket.gethostname(),
        boot_id=boot or boot_id(),
        unix_ns=time.time_ns() - round(age_s * 1e9),
        command=("x",),
        cwd="/",
        kind="command",
    )
    last = RunEnded(t_ns=1, outcome=outcome) if ended else Note(t_ns=1, text="on it goes")
    folder.events_path.write_bytes(encode(header) + encode(last))
    return folder


class TestFolder:
    def test_new_runs_are_ours_alone_and_never_share_a_name(self, tmp_path: Path) -> None:
        made = {create_run(tmp_path / "deep" / "runs", tmp_path).run_id for _ in range(50)}
        assert len(made) == 50
        modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "deep" / "runs").iterdir()}
        assert modes == {0o700}

    def test_an_id_whose_socket_exists_is_not_taken(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ids = iter(["aaaaaa", "bbbbbb", "cccccc"])
        monkeypatch.setattr("secrets.token_hex", lambda _: next(ids))
        (tmp_path / "aaaaaa.sock").touch()
        (tmp_path / "runs" / "bbbbbb").mkdir(parents=True)
        assert create_run(tmp_path / "runs", tmp_path).run_id == "cccccc"

    def test_the_environment_names_the_runs_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MORIMON_RUNS_DIR", str(tmp_path))
        assert default_runs_dir() == tmp_path
        monkeypatch.delenv("MORIMON_RUNS_DIR")
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
        assert default_runs_dir() == tmp_path / "morimon" / "runs"

    def test_damaged_files_hold_nothing(self, tmp_path: Path) -> None:
        folder = RunFolder(tmp_path)
        assert (folder.exit(), folder.owners(), folder.launch()) == (None, None, None)
        folder.exit_path.write_text('{"returncode": "nine"}')
        assert folder.exit() is None


class TestIdentity:
    def test_a_pid_that_is_used_again_is_somebody_else(self) -> None:
        me = ProcessIdentity.of(os.getpid())
        assert me
        assert me.is_alive()
        assert not ProcessIdentity(me.pid, me.start + 1).is_alive()

    def test_a_zombie_is_dead(self) -> None:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        identity = ProcessIdentity.of(child.pid)
        assert identity
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not identity.is_alive()
        child.communicate()


class TestLock:
    def test_one_holder_who_can_be_named(self, tmp_path: Path) -> None:
        path = tmp_path / "hub.lock"
        assert not is_held(path)
        lock = HubLock.take(path)
        assert lock
        assert is_held(path)
        assert holder(path) == ProcessIdentity.of(os.getpid())
        assert HubLock.take(path) is None
        lock.release()
        assert not is_held(path)
        assert holder(path) is None

    def test_it_is_free_when_its_holder_is_killed(self, tmp_path: Path) -> None:
        path = tmp_path / "hub.lock"
        code = (
            "import sys; from pathlib import Path; from morimon.runs.lock import HubLock\n"
            "lock = HubLock.take(Path(sys.argv[1])); print('held', flush=True); input()"
        )
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert child.stdout
        assert child.stdout.readline() == b"held\n"
        assert is_held(path)
        child.kill()
        child.communicate()
        assert not is_held(path)


class TestSockets:
    def test_the_folder_is_ours_alone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
        folder = socket_folder()
        assert folder == tmp_path / "morimon"
        assert folder.stat().st_mode & 0o777 == 0o700
        assert socket_folder() == folder

    def test_without_a_runtime_folder_the_temporary_one_serves(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        assert socket_folder() == tmp_path / f"morimon-{os.getuid()}"

    def test_a_path_that_is_too_long_is_passed_over(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        deep = tmp_path / ("d" * MAX_PATH_BYTES)
        deep.mkdir()
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        folder = socket_folder()
        assert folder == tmp_path / f"morimon-{os.getuid()}"
        assert len(os.fsencode(socket_path(folder, "abcdef"))) <= MAX_PATH_BYTES

    @pytest.mark.parametrize("fault", ["mode", "link", "file", "owner"])
    def test_a_folder_that_others_may_reach_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
    ) -> None:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
        monkeypatch.setattr("morimon.runs.sockets._candidates", lambda: [tmp_path / "morimon"])
        path = tmp_path / "morimon"
        if fault == "link":
            (tmp_path / "elsewhere").mkdir(mode=0o700)
            path.symlink_to(tmp_path / "elsewhere")
        elif fault == "file":
            path.touch()
        else:
            path.mkdir(mode=0o700)
            path.chmod(0o770 if fault == "mode" else 0o700)
        if fault == "owner":
            monkeypatch.setattr("os.getuid", lambda: 54321)
        with pytest.raises(SocketFolderError, match="no safe folder"):
            socket_folder()


class TestListing:
    def test_states(self, tmp_path: Path) -> None:
        for outcome in get_args(Outcome):
            make_run(tmp_path, outcome, age_s=1, outcome=outcome)
        make_run(tmp_path, "crashed", age_s=2, ended=False)
        make_run(tmp_path, "boot", age_s=3, ended=False, boot="another")
        make_run(tmp_path, "afar", age_s=4, ended=False, host="elsewhere")
        held = make_run(tmp_path, "held", age_s=5, ended=False)
        (tmp_path / "no record").mkdir()
        lock = HubLock.take(held.lock_path)
        assert lock
        found = [(info.id, info.state) for info in list_runs(tmp_path)]
        lock.release()
        assert found == [
            *[(outcome, outcome) for outcome in reversed(get_args(Outcome))],
            ("crashed", "crashed"),
            ("boot", "crashed"),
            ("afar", "running"),
            ("held", "running"),
        ]
        assert list_runs(tmp_path / "nowhere") == []

    def test_a_keeper_alone_keeps_a_run_alive(self, tmp_path: Path) -> None:
        folder = make_run(tmp_path, "a", ended=False)
        me = ProcessIdentity.of(os.getpid())
        assert me
        folder.keeper_path.write_text(
            f'{{"keeper": {{"pid": {me.pid}, "start": {me.start}}}, "agent": {{"pid": 1, "start": 1}}}}'
        )
        assert list_runs(tmp_path)[0].state == "running"
        folder.exit_path.write_text('{"returncode": 0}')
        assert list_runs(tmp_path)[0].state == "ended"

    def test_names(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        first = make_run(tmp_path, "abc123", age_s=2)
        second = make_run(tmp_path, "abd456", age_s=1)
        assert find_run(tmp_path, "abc123") == first
        assert find_run(tmp_path, "abd") == second
        assert find_run(tmp_path / "elsewhere", str(first.path)) == first
        assert find_run(tmp_path / "elsewhere", str(first.events_path)) == first
        monkeypatch.chdir(first.path)
        assert find_run(tmp_path / "elsewhere", "events.jsonl") == first
        with pytest.raises(UnknownRunError, match="may mean abd456, abc123"):
            find_run(tmp_path, "ab")
        for unknown in ("zzz", "", "../runs", str(tmp_path)):
            with pytest.raises(UnknownRunError):
                find_run(tmp_path, unknown)


class TestPrune:
    def test_the_oldest_go_and_live_ones_stay(self, tmp_path: Path) -> None:
        for age_s, run_id in enumerate(["e", "d", "c", "b", "a"]):
            make_run(tmp_path, run_id, age_s=age_s)
        live = make_run(tmp_path, "live", age_s=99, ended=False)
        lock = HubLock.take(live.lock_path)
        assert lock
        assert [info.id for info in prune(tmp_path, keep=2)] == ["a", "b", "c"]
        assert [info.id for info in list_runs(tmp_path)] == ["e", "d", "live"]
        assert [info.id for info in prune(tmp_path)] == ["d", "e"]
        lock.release()
        assert live.path.exists()

    def test_age(self, tmp_path: Path) -> None:
        make_run(tmp_path, "young", age_s=10)
        make_run(tmp_path, "old", age_s=1000)
        assert [info.id for info in prune(tmp_path, older_than_s=100)] == ["old"]
