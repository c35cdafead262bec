"""DeepEP's printed lines, of all their times."""

from __future__ import annotations

import pytest

from morimon.model.config import JobConfig
from morimon.model.events import Configured, PhaseDone, Progress
from tests.support.parsing import lines_of, only, parse, root_of

Row = tuple[int, str, float, float | None, float | None]


def rows(text: str) -> list[Row]:
    return [
        (e.rank, e.phase, e.latency_us, e.xgmi_gbps, e.rdma_algo_gbps) for e in only(PhaseDone, parse(text))
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "[tuning] Best dispatch (FP8): SMs 24, NVL chunk 20, RDMA chunk 28: 107 + 980 us, 61.5 GB/s (RDMA), 200.1 GB/s (NVL)",
            (0, "dispatch", 1087, 200.1, 61.5),
        ),
        (
            "[tuning] Best combine: SMs 24, NVL chunk 1, RDMA chunk 12, 90.12 + 1500.00 us, 78.0 GB/s (RDMA), 250 GB/s (NVL)",
            (0, "combine", 1590.12, 250, 78),
        ),
        (
            "[tuning] Best dispatch (BF16): SMs 24, NVL chunk 16, 153.01 GB/s (NVL), t: 510.00 us",
            (0, "dispatch", 510, 153.01, None),
        ),
        (
            "[tuning] Best combine: SMs 24, NVL chunk 1: 332.57 GB/s (NVL), t: 453.49 us",
            (0, "combine", 453.49, 332.57, None),
        ),
        (
            "   * EP:   3/16 | dispatch: 61 GB/s (SO), 200 GB/s (SU), 1064.000 us, 400593024 bytes | copy: 4791 GB/s, 187.879 us",
            (3, "dispatch", 1064, 200, 61),
        ),
        (
            "   @ EP:   3/16 | combine: 61 GB/s (SO), 201 GB/s (SU), 1065.000 us, 400593024 bytes | reduce: 4791 GB/s, 187.879 us",
            (3, "combine", 1065, 201, 61),
        ),
    ],
)  # fmt: skip
def test_figures(line: str, expected: Row) -> None:
    assert rows(line) == [expected]


def test_low_latency_tells_both_phases() -> None:
    line = (
        "[rank 5] Dispatch bandwidth: 98.00 GB/s, avg_t=77.00 us | "
        "Combine bandwidth: 99.00 GB/s, avg_t=78.00 us\n"
    )
    assert rows(line) == [(5, "dispatch", 77, 98, None), (5, "combine", 78, 99, None)]
    assert [e.round for e in only(PhaseDone, parse(line * 2))] == [0, 0, 1, 1]
    assert lines_of(parse(line)) == [(5, "info", 1)]


def test_expanded_and_cached_dispatches_are_no_dispatches() -> None:
    line = "   {} EP:   3/16 | dispatch: 61 GB/s (SO), 200 GB/s (SU), 1064.000 us, 4 bytes\n"
    events = parse("".join(map(line.format, "-#+")))
    assert rows("".join(map(line.format, "-#+"))) == []
    assert lines_of(events) == [(3, "info", 3)]


@pytest.mark.parametrize(
    "line",
    [
        "[tuning] SMs 24, NVL chunk 4, RDMA chunk 4: 11.40 GB/s (RDMA), 37.23 GB/s (NVL) ",
        "[tuning] SMs 24, NVL chunk 4, RDMA chunk 4, transmit: 2435.00 us, notify: 308.75 us, BW: 49.48 GB/s (RDMA)",
        "[tuning] SMs 24, NVL chunk 4, RDMA chunk 4: 105 + 1234 us, 25.68 GB/s (RDMA), 83.83 GB/s (NVL) ",
        "[tuning] SMs 24, NVL chunk default: 153.20 GB/s (NVL), 512.34 us",
    ],
)
def test_sweeps_are_progress(line: str) -> None:
    told = only(Progress, parse(f"{line}\n{line}\n"))
    assert [(e.done, e.total) for e in told] == [(1, None), (2, None)]
    assert told[0].label.startswith("tuning SMs 24, NVL chunk ")


def test_configuration() -> None:
    legacy = "[config] num_tokens=4096, hidden=7168, num_topk_groups=2, num_topk=8\n"
    elastic = "Config:\n > Ranks: 2 x 8\n > Experts: 6/256\n > Tokens: 4089 (max: 4096), hidden: 7168\n"
    (told,) = only(Configured, parse(legacy))
    assert told.config == JobConfig(num_tokens=4096, hidden=7168, topk=8)
    config = JobConfig()
    for event in only(Configured, parse(elastic)):
        config = config.completed_by(event.config)
    assert config == JobConfig(
        num_nodes=2, gpu_per_node=8, world_size=16, topk=6, num_experts=256, num_tokens=4096, hidden=7168
    )


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("DeepEP dispatch RDMA sender timeout, channel: 3, RDMA: 1, nvl: 2, dst RDMA lane: 0, head: 8, tail: 40", 10),
        ("DeepEP RDMA sender coordinator timeout, channel: 3, IB: 1, nvl 2, dst IB: 0, tail: 4, remaining: 1", 10),
        ("DeepEP timeout for dispatch senders, rank 2, responsible_channel = 5", 2),
        ("DeepEP timeout check failed: rank = 6, thread = 5, value = 1024)", 6),
        ("Warning: DeepEP timeout for dispatch receive, rank 1, local_expert_idx 3, src_rank 6", 1),
        ("DeepEP notify timeout, rank: 4, thread: 3, count: 2", 4),
    ],
)  # fmt: skip
def test_timeouts_name_their_reporter(line: str, rank: int) -> None:
    root = root_of(line)
    assert root.rank == rank
    assert "timeout" in root.cause
    assert lines_of(parse(line))[0][1] == "error"


def test_a_timeout_of_nobody_known() -> None:
    root = root_of("[default3]:DeepEP NVLink barrier timeout, tag: 1, nvl: 2, thread: 3, status: 0")
    assert root.rank == 3
