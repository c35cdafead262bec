"""From what the user asked for to a running hub: the agent's command line, the run folder, the hub's process.

    builtin   python -m torch.distributed.run OPTIONS -m morimon.bench ARGS…
    script    python -m torch.distributed.run OPTIONS script.py ARGS…
    command   as it stands

OPTIONS are ours (`--nproc-per-node`, where the output goes, `--standalone` on one node) and the user's. With two or
more ranks torchrun writes a file for each rank and stream; one rank, and a whole command, print on the keeper's
terminal.
"""

from __future__ import annotations

import importlib.util
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from morimon.runs.folder import JobKind, Launch, RunFolder, create_run
from morimon.runs.sockets import SocketFolderError, socket_folder, socket_path

_READY_TIMEOUT_S = 30.0

_OURS = {
    "--nproc-per-node": "give the number of ranks as --nproc",
    "--log-dir": "the ranks' output goes to the run folder, where it is read",
    "--redirects": "the ranks' output goes to files of the run folder, where it is read",
    "-r": "the ranks' output goes to files of the run folder, where it is read",
    "--tee": "every line is shown anyway; with it each would come twice",
    "-t": "every line is shown anyway; with it each would come twice",
}
_RENDEZVOUS = (
    "--nnodes",
    "--node-rank",
    "--rdzv-backend",
    "--rdzv-endpoint",
    "--rdzv-id",
    "--master-addr",
    "--master-port",
    "--standalone",
)


class LaunchError(Exception):
    """The run cannot be started; the message is a sentence that says what to do."""


@dataclass(frozen=True)
class LaunchSpec:
    """A run as it was asked for.

    `argv` is what follows torchrun's options: the built-in job's arguments, a script (or `-m module`) with its own, or
    a whole command. `python` is the interpreter of a script: by default the `python` on PATH; the built-in job always
    runs in ours. `env` is the job's environment, by default this process's.
    """

    kind: JobKind
    argv: tuple[str, ...] = ()
    nproc: int | None = None
    torchrun_options: tuple[str, ...] = ()
    python: str | None = None
    cwd: Path = field(default_factory=Path.cwd)
    env: Mapping[str, str] | None = None


def infer_kind(argv: Sequence[str]) -> JobKind:
    """Whether what stands after `--` is a script for torchrun (x.py, or -m module) or a whole command."""
    return "script" if argv and (argv[0] == "-m" or argv[0].endswith(".py")) else "command"


def start(spec: LaunchSpec, runs_dir: Path) -> RunFolder:
    """Start a hub, and by it the job; returns as soon as the record has its first line.

    The hub and the job are processes of their own: they outlive the caller. Raises LaunchError.
    """
    env = os.environ if spec.env is None else spec.env
    _check(spec, env)
    folder, socket = make_folder(runs_dir)
    launch = Launch(
        kind=spec.kind,
        command=agent_command(spec, folder, env),
        cwd=str(spec.cwd.absolute()),
        socket=socket,
        nproc=None if spec.kind == "command" else spec.nproc,
        terminal=spec.kind == "command" or spec.nproc == 1,
        nodes=_option(spec.torchrun_options, "--nnodes") or "1",
    )
    if (
        spec.kind == "builtin"
    ):  # a copy.py in the user's folder must not stand for the library's (Python 3.11)
        env = {**env, "PYTHONSAFEPATH": "1"}
    begin(folder, launch, env)
    return folder


def make_folder(runs_dir: Path) -> tuple[RunFolder, str]:
    """A new run folder and the path of its socket; LaunchError where they can't be had."""
    try:
        sockets = socket_folder()
        folder = create_run(runs_dir, sockets)
    except SocketFolderError as error:
        raise LaunchError(str(error)) from None
    except OSError as error:
        raise LaunchError(_no_folder(runs_dir, error)) from None
    return folder, str(socket_path(sockets, folder.run_id))


def _no_folder(runs_dir: Path, error: OSError) -> str:
    return f"No run folder can be made in {runs_dir} ({error.strerror}); set MORIMON_RUNS_DIR to a folder of yours."


def begin(folder: RunFolder, launch: Launch, env: Mapping[str, str]) -> None:
    """Start the hub of a new folder; where that fails the folder is removed, and a LaunchError says why."""
    try:
        folder.launch_path.write_bytes(msgspec.json.encode(launch))
        start_hub(folder, env)
    except OSError as error:
        shutil.rmtree(folder.path, ignore_errors=True)
        raise LaunchError(_no_folder(folder.path.parent, error)) from None
    except LaunchError as error:
        shutil.rmtree(folder.path, ignore_errors=True)
        raise LaunchError(f"The run could not be started: {error}.") from None


def agent_command(spec: LaunchSpec, folder: RunFolder, env: Mapping[str, str]) -> tuple[str, ...]:
    """The whole command line of the process that the keeper starts."""
    if spec.kind == "command":
        return spec.argv
    builtin = spec.kind == "builtin"
    python = sys.executable if builtin else _python(spec, env)
    options = [f"--nproc-per-node={spec.nproc}", f"--log-dir={folder.output_path}"]
    if spec.nproc != 1:
        options.append("--redirects=3")
    if not any(_option(spec.torchrun_options, name) for name in _RENDEZVOUS):
        options.insert(0, "--standalone")
    job = ("-m", "morimon.bench", *spec.argv) if builtin else spec.argv
    return (python, "-m", "torch.distributed.run", *options, *spec.torchrun_options, *job)


def start_hub(folder: RunFolder, env: Mapping[str, str]) -> None:
    """Start the hub of a folder, detached; returns when it holds the lock and the record has its header.

    LaunchError, with the hub's own words, where it gave up.
    """
    log = os.open(folder.hub_log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    ready, theirs = os.pipe()
    try:
        # The job's folder may hold files that shadow a library's modules: the hub starts in its own.
        subprocess.run(  # what is started forks the hub and ends
            [sys.executable, "-m", "morimon.hub", str(folder.path), "--ready-fd", str(theirs)],
            cwd=folder.path,
            env=dict(env),
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[theirs],
            start_new_session=True,
        )
    finally:
        os.close(theirs)
        os.close(log)
    try:
        heard = select.select([ready], [], [], _READY_TIMEOUT_S)[0]
        answer = (
            os.read(ready, 4096).decode()
            if heard
            else f"the hub did not answer within {_READY_TIMEOUT_S:.0f} s"
        )
    finally:
        os.close(ready)
    if answer != "ready":
        raise LaunchError(answer or f"the hub ended at once: {_last_line(folder.hub_log_path)}")


def _check(spec: LaunchSpec, env: Mapping[str, str]) -> None:
    if not spec.cwd.is_dir():
        raise LaunchError(f"The folder {spec.cwd} to start the job in does not exist.")
    if spec.kind == "command":
        _check_command(spec, env)
        return
    if spec.nproc is None or spec.nproc < 1:
        raise LaunchError(f"A job needs at least one rank, --nproc {spec.nproc} asks for none.")
    for option in spec.torchrun_options:
        name = option.partition("=")[0].replace("_", "-")
        if name in _OURS:
            raise LaunchError(f"Leave torchrun's {name} out: {_OURS[name]}.")
    if spec.kind == "script":
        _check_script(spec)
    python = sys.executable if spec.kind == "builtin" else _python(spec, env)
    if not _has_torch(python, env):
        hint = "" if spec.kind == "builtin" else ", or name another interpreter with --python"
        raise LaunchError(
            f"torch is not installed for {python}, and torchrun is part of it: install it there "
            f"({python} -m pip install torch){hint}."
        )


def _check_command(spec: LaunchSpec, env: Mapping[str, str]) -> None:
    if not spec.argv:
        raise LaunchError("There is no command to start after --.")
    if spec.nproc is not None or spec.torchrun_options:
        raise LaunchError(
            f"A whole command ({spec.argv[0]}) decides for itself how many ranks it starts: leave --nproc and "
            "torchrun's options out, or give a .py script."
        )
    program = spec.argv[0]
    found = shutil.which(spec.cwd / program if os.sep in program else program, path=env.get("PATH"))
    if found is None:
        raise LaunchError(f"There is no program {program} to start (not found, or not executable).")


def _check_script(spec: LaunchSpec) -> None:
    if not spec.argv:
        raise LaunchError("There is no script to start after --.")
    if spec.argv[0] == "-m":
        if len(spec.argv) < 2:
            raise LaunchError("-m needs the name of a module.")
    elif {"--no-python", "--no_python", "--module", "-m"} & set(spec.torchrun_options):
        return  # what follows is a program or a module, which torchrun finds
    elif not (spec.cwd / spec.argv[0]).is_file():
        raise LaunchError(f"There is no script {spec.argv[0]} in {spec.cwd}.")


def _python(spec: LaunchSpec, env: Mapping[str, str]) -> str:
    names = [spec.python] if spec.python else ["python", "python3"]
    for name in names:
        if found := shutil.which(name, path=env.get("PATH")):
            return found
    raise LaunchError(f"There is no {names[0]} on PATH to run the script with; name one with --python.")


def _has_torch(python: str, env: Mapping[str, str]) -> bool:
    if python == sys.executable:
        return importlib.util.find_spec("torch") is not None
    look = "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"
    return (
        subprocess.run([python, "-c", look], env=dict(env), check=False, capture_output=True).returncode == 0
    )


def _last_line(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "it said nothing")


def _option(options: Sequence[str], name: str) -> str | None:
    """Value of a torchrun option, spelt with - or _ and with = or as two words; its own name where it has none."""
    for at, option in enumerate(options):
        spelt, equals, value = option.partition("=")
        if spelt.replace("_", "-") == name:
            return value if equals else next(iter(options[at + 1 : at + 2]), name)
    return None
