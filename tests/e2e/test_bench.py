"""The built-in job on real torchrun ranks over gloo."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from morimon.bench.options import parse
from morimon.ep.predict import predict, routes
from morimon.logs import Causes
from morimon.model.events import PhaseDone, Tokens
from morimon.trace.load import load
from tests.support.parsing import only
from tests.support.parsing import parse as read

pytestmark = [pytest.mark.e2e, pytest.mark.torch]

SMALL = [
    "--max-tokens",
    "32",
    "--hidden-dim",
    "64",
    "--num-experts-per-rank",
    "4",
    "--num-experts-per-token",
    "3",
]
SLOTS = {
    "dispatch_layout", "dispatch_counts", "dispatch_pack", "dispatch_rows", "dispatch_unpack",
    "experts", "combine_rows", "combine_sum",
}  # fmt: skip
SPOILED = Path(__file__).parents[1] / "support" / "spoiled_bench.py"


def torchrun(nproc: int, *what: str) -> subprocess.CompletedProcess[bytes]:
    """Run a job of `nproc` ranks to its end, standard error behind standard output."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "MORIMON"))
    }
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            str(nproc),
            *what,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        check=False,
    )


def test_what_real_ranks_print_and_trace_reads_back(tmp_path: Path) -> None:
    argv = [
        *SMALL,
        "--cmd",
        "profile",
        "--trace-dir",
        str(tmp_path),
        "--rounds",
        "4",
        "--routing",
        "skewed",
        "--seed",
        "5",
        "--dtype",
        "fp8",
    ]
    done = torchrun(4, "-m", "morimon.bench", *argv)
    assert done.returncode == 0, done.stdout.decode()
    options = parse(argv, 4)
    counts = predict(options.ep, routes(options.ep, options.routing, options.seed))
    causes = Causes()
    events = read(done.stdout, causes=causes)
    told = {(e.rank, e.recv_tokens, e.rdma_tokens_algo) for e in only(Tokens, events) if e.rdma_tokens_algo}
    assert told == {(one.rank, one.recv_tokens, one.rdma_tokens_algo) for one in counts.ranks}
    assert {(e.round, e.phase, e.rank) for e in only(PhaseDone, events)} == {
        (round_, phase, rank)
        for round_ in (-1, 1, 2, 3)
        for phase in ("dispatch", "combine")
        for rank in range(4)
    }
    assert causes.root() is None

    traces = {trace.rank: trace for trace in map(load, tmp_path.iterdir())}
    assert set(traces) == set(range(4))
    for trace in traces.values():
        spans = Counter(trace.slots[slot].name for slot in trace.spans.slot)
        assert set(spans.values()) == {5}, spans
        assert set(spans) == SLOTS


def test_a_spoiled_exchange_ends_the_job_with_its_cause() -> None:
    done = torchrun(2, str(SPOILED), *SMALL, "--warmup", "0", "--rounds", "3")
    assert done.returncode != 0
    causes = Causes()
    read(done.stdout, causes=causes)
    root = causes.root()
    assert root is not None, done.stdout.decode()
    assert root.rank == 1
    # torchrun tells the exit code of the rank that it sees end first, which may be the one that lost its peer
    assert root.exitcode in (1, None)
    assert "VerificationError: rank 1, round 1, dispatch: token " in root.cause
    assert "wrong elements" in root.cause
