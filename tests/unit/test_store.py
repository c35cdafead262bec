"""The store: who is late, best/worst/average, restarts, versions, bounds."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from morimon.model.config import JobConfig
from morimon.model.events import (
    RECORD_VERSION,
    Configured,
    Counter,
    Dropped,
    Failure,
    Hello,
    JobFailed,
    LogLines,
    Note,
    Phase,
    PhaseDone,
    PhaseEntered,
    ProcessSample,
    Progress,
    RankExited,
    RankProcess,
    RecordEvent,
    RunEnded,
    RunHeader,
    Tokens,
)
from morimon.store import rank as rank_module
from morimon.store import store as store_module
from morimon.store import tally as tally_module
from morimon.store.snapshot import Claim, RankSnapshot, RunSnapshot
from morimon.store.store import Store
from tests.support.records import Plan, make_record


def stored(events: Sequence[RecordEvent]) -> Store:
    store = Store()
    for event in events:
        store.apply(event)
    return store


def seen(plan: Plan) -> RunSnapshot:
    return stored(make_record(plan).events).snapshot()


def header(kind: str = "script", version: int = RECORD_VERSION, nproc: int = 2) -> RunHeader:
    return RunHeader(
        t_ns=0,
        version=version,
        run_id="ab12",
        host="h",
        boot_id="b",
        unix_ns=0,
        command=("x",),
        cwd="/",
        kind=kind,  # type: ignore[arg-type]  # a parameter of the tests
        nproc=nproc,
    )


def entered(rank: int, number: int, t_us: float, phase: Phase = "dispatch") -> PhaseEntered:
    return PhaseEntered(t_ns=round(t_us * 1000), rank=rank, round=number, phase=phase)


def world(ranks: int) -> list[RecordEvent]:
    return [
        Hello(t_ns=0, rank=r, local_rank=r, node=0, world_size=ranks, local_world_size=ranks)
        for r in range(ranks)
    ]


def done(rank: int, number: int, latency_us: float, **more: object) -> PhaseDone:
    return PhaseDone(t_ns=0, rank=rank, round=number, phase="dispatch", latency_us=latency_us, **more)  # type: ignore[arg-type]


# who is late


@pytest.mark.parametrize("late", [0, 3, 7])
def test_late_rank_is_named_by_its_arrival(late: int) -> None:
    snapshot = seen(Plan(late_rank=late, late_by_us=400.0))
    straggler = snapshot.straggler
    assert straggler is not None
    assert (straggler.rank, straggler.phase) == (late, "dispatch")
    assert (straggler.rounds, straggler.judged) == (20, 20)
    assert straggler.behind_us == pytest.approx(400, abs=10)
    assert straggler.is_late
    assert [r.rank for r in snapshot.ranks if r.is_late] == [late]
    row = snapshot.ranks[late]
    assert row.dispatch.arrival_us == max(r.dispatch.arrival_us or 0 for r in snapshot.ranks)
    assert row.last_to_arrive >= 20


def test_durations_would_name_another_rank() -> None:
    """The record is a collective's: who reads lateness from durations, by longest or slowest mean, is wrong here."""
    snapshot = seen(Plan(late_rank=3, late_by_us=400.0))
    mean_us = {r.rank: mean(r.dispatch.latencies_us) for r in snapshot.ranks}
    assert min(mean_us, key=mean_us.__getitem__) == 3
    assert snapshot.straggler is not None
    assert snapshot.straggler.rank == 3


def test_durations_have_no_say() -> None:
    """The same arrivals with any durations give the same verdict."""
    events = make_record(Plan(late_rank=3)).events
    changed = [
        PhaseDone(
            t_ns=e.t_ns, rank=e.rank, round=e.round, phase=e.phase, latency_us=1e6 if e.rank == 5 else 1.0
        )
        if isinstance(e, PhaseDone)
        else e
        for e in events
    ]
    a, b = stored(events).snapshot(), stored(changed).snapshot()
    assert a.straggler == b.straggler
    assert [r.is_late for r in a.ranks] == [r.is_late for r in b.ranks]


def test_without_arrivals_nobody_is_late() -> None:
    events = [e for e in make_record(Plan(late_rank=3)).events if not isinstance(e, PhaseEntered)]
    snapshot = stored(events).snapshot()
    assert snapshot.straggler is None
    assert not any(r.is_late for r in snapshot.ranks)
    assert snapshot.dispatch is not None


def test_no_rank_is_late_among_equals() -> None:
    for seed in range(10):
        snapshot = seen(Plan(late_rank=None, seed=seed, rounds=40))
        assert not any(r.is_late for r in snapshot.ranks)
        assert snapshot.straggler is not None
        assert not snapshot.straggler.is_late


def test_a_rank_that_is_late_now_is_named_though_another_came_last_before() -> None:
    store = stored(world(3))
    for number in range(60):
        last = 1 if number < 40 else 2
        for rank in range(3):
            lag = 10 if number < 40 else 9000
            store.apply(entered(rank, number, 100_000 * number + (lag if rank == last else rank)))
    straggler = store.snapshot().straggler
    assert straggler
    assert (straggler.rank, straggler.is_late, straggler.rounds, straggler.judged) == (2, True, 20, 60)
    assert [rank.rank for rank in store.snapshot().ranks if rank.is_late] == [2]


def test_a_round_is_judged_when_all_have_entered() -> None:
    store = stored([*world(3), entered(0, 0, 10), entered(2, 0, 35)])
    assert store.snapshot().arrivals_judged == 0
    store.apply(entered(1, 0, 12))
    snapshot = store.snapshot()
    assert snapshot.arrivals_judged == 1
    assert [r.dispatch.arrival_us for r in snapshot.ranks] == [0.0, 2.0, 25.0]
    assert snapshot.straggler is not None
    assert snapshot.straggler.behind_us == 23.0


def test_an_earlier_sweep_never_meets_a_later_one() -> None:
    store = stored([*world(2), entered(0, 0, 0), entered(1, 0, 1), entered(1, 1, 5)])
    for event in (entered(0, 0, 1000), entered(0, 1, 1010), entered(1, 0, 1003), entered(1, 1, 1011)):
        store.apply(event)
    snapshot = store.snapshot()
    assert snapshot.arrivals_judged == 3
    assert [r.dispatch.arrival_us for r in snapshot.ranks] == [0.0, 1.0]


def test_warm_up_is_never_counted() -> None:
    snapshot = stored([*world(2), entered(0, -1, 0), entered(1, -1, 99), done(0, -1, 5.0)]).snapshot()
    assert snapshot.arrivals_judged == 0
    assert snapshot.dispatch is None
    assert snapshot.ranks[0].round == -1
    assert snapshot.ranks[0].dispatch.rounds == ()


def test_only_this_hosts_ranks_are_waited_for() -> None:
    hello = [Hello(t_ns=0, rank=r, node=1, world_size=16, local_world_size=2) for r in (8, 9)]
    snapshot = stored([*hello, entered(8, 0, 0), entered(9, 0, 7)]).snapshot()
    assert snapshot.arrivals_judged == 1
    assert [r.rank for r in snapshot.ranks] == [8, 9]


def test_late_clears_when_the_rank_recovers() -> None:
    events = world(4)
    for n in range(60):
        events += [entered(r, n, n * 1e4 + (r + n) % 4 + (300 if r == 2 and n < 30 else 0)) for r in range(4)]
    assert [r.is_late for r in stored(events[: 4 + 4 * 30]).snapshot().ranks] == [False, False, True, False]
    assert not any(r.is_late for r in stored(events).snapshot().ranks)


# best, worst, average


def test_summary_means_what_moris_summary_means() -> None:
    events = make_record(Plan()).events
    summary = stored(events).snapshot().dispatch
    rounds: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for e in events:
        if isinstance(e, PhaseDone) and e.phase == "dispatch" and e.round >= 0:
            rounds[e.round].append((e.latency_us, e.rank))
    least = min((us, r, n) for n, values in rounds.items() for us, r in values)
    most = max((us, r, n) for n, values in rounds.items() for us, r in values)
    assert summary is not None
    assert summary.latency_us is not None
    best, worst = summary.latency_us.best, summary.latency_us.worst
    assert (best.value, best.rank, best.round) == least
    assert (worst.value, worst.rank, worst.round) == most
    assert summary.latency_us.average == pytest.approx(
        mean(mean(us for us, _ in values) for values in rounds.values())
    )
    assert summary.rounds == 20


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30), st.floats(0.1, 1e6)), min_size=1))
def test_summary_needs_no_order(figures: list[tuple[int, int, float]]) -> None:
    summary = stored([done(rank, number, us) for rank, number, us in figures]).snapshot().dispatch
    rounds: dict[int, list[float]] = defaultdict(list)
    for _, number, us in figures:
        rounds[number].append(us)
    assert summary is not None
    assert summary.latency_us is not None
    assert summary.rounds == len(rounds)
    assert summary.latency_us.average == pytest.approx(mean(mean(values) for values in rounds.values()))
    for extreme, value in ((summary.latency_us.best, min), (summary.latency_us.worst, max)):
        assert extreme.value == value(us for _, _, us in figures)
        assert (extreme.rank, extreme.round, extreme.value) in figures


def test_average_weighs_rounds_and_not_ranks() -> None:
    summary = stored([done(0, 1, 10.0), done(1, 1, 30.0), done(0, 2, 100.0)]).snapshot().dispatch
    assert summary is not None
    assert summary.latency_us is not None
    assert summary.latency_us.average == (20 + 100) / 2


def test_extremes_outlive_the_rings() -> None:
    n = max(rank_module.ROUNDS_KEPT, tally_module.OPEN_ROUNDS) + 10
    store = stored([done(0, i, 1.0 if i == 1 else 50.0) for i in range(1, n + 1)])
    snapshot = store.snapshot()
    assert snapshot.dispatch is not None
    assert snapshot.dispatch.latency_us is not None
    assert snapshot.dispatch.latency_us.best.round == 1
    assert snapshot.dispatch.latency_us.average == pytest.approx((1.0 + 50.0 * (n - 1)) / n)
    assert snapshot.dispatch.rounds == n
    figures = snapshot.ranks[0].dispatch
    assert len(figures.rounds) == len(figures.latencies_us) == rank_module.ROUNDS_KEPT
    assert figures.rounds[-1] == n
    assert figures.overall == snapshot.dispatch


def test_bandwidth_is_bytes_over_time_in_powers_of_ten() -> None:
    snapshot = stored(
        [done(0, 0, 1000.0, bytes=359_800_000, rdma_bytes=111_000_000), done(0, 2, 2.0)]
    ).snapshot()
    assert snapshot.dispatch is not None
    assert snapshot.dispatch.xgmi_gbps is not None
    assert snapshot.dispatch.rdma_algo_gbps is not None
    assert snapshot.dispatch.xgmi_gbps.best.value == pytest.approx(359.8)
    assert snapshot.dispatch.rdma_algo_gbps.best.value == pytest.approx(111.0)
    series = snapshot.ranks[0].dispatch.xgmi_series_gbps
    assert series[0] == pytest.approx(359.8)
    assert math.isnan(series[1])


def test_one_node_keeps_its_rdma_figures_and_says_that_nothing_crosses() -> None:
    events: list[RecordEvent] = [done(0, 0, 10.0, rdma_bytes=100)]
    store = stored(events)
    assert store.snapshot().crosses_nodes
    store.apply(Configured(t_ns=1, config=JobConfig(num_nodes=1)))
    after = store.snapshot()
    assert after.ranks[0].dispatch.rdma_algo_gbps == pytest.approx(0.01)
    assert not after.crosses_nodes


def test_the_probe_is_believed_before_the_log() -> None:
    log, probe = done(0, 0, 1040.0, source="log"), done(0, 0, 1040.7)
    for events in ([log, probe], [probe, log]):
        summary = stored(events).snapshot().dispatch
        assert summary is not None
        assert summary.latency_us is not None
        assert summary.latency_us.average == 1040.7
    tokens = [Tokens(t_ns=0, rank=0, recv_tokens=7), Tokens(t_ns=0, rank=0, recv_tokens=8, source="log")]
    assert stored(tokens).snapshot().recv_tokens_total == 7


def test_what_the_job_printed_is_kept_apart_from_what_its_bytes_say() -> None:
    printed = done(0, 3, 1040.0, source="log", xgmi_gbps=362.0, rdma_algo_gbps=111.0)
    log_alone = stored([printed]).snapshot().ranks[0].dispatch
    assert log_alone.is_printed
    assert log_alone.claimed == Claim(3, 1040.0, 362.0, 111.0)
    store = stored([done(0, 3, 1040.7, bytes=379_215_872, rdma_bytes=117_024_768)])
    before = store.version
    store.apply(printed)
    assert store.version > before
    both = store.snapshot().ranks[0].dispatch
    assert not both.is_printed
    assert both.claimed == log_alone.claimed
    assert both.rdma_algo_gbps == pytest.approx(117_024_768 / 1040.7e3)
    assert both.rounds == (3,)


def test_warm_up_rounds_and_durations_alone_claim_nothing() -> None:
    events = [done(0, -1, 9.0, source="log", xgmi_gbps=9.0), done(0, 1, 9.0, source="log")]
    assert stored(events).snapshot().ranks[0].dispatch.claimed is None


def test_totals_need_every_rank() -> None:
    store = stored([header("builtin"), Tokens(t_ns=0, rank=0, recv_tokens=5, rdma_tokens_algo=2)])
    assert store.snapshot().recv_tokens_total is None
    store.apply(Tokens(t_ns=0, rank=1, recv_tokens=6, rdma_tokens_algo=3))
    snapshot = store.snapshot()
    assert (snapshot.recv_tokens_total, snapshot.rdma_tokens_algo_total) == (11, 5)


# restarts, states, versions


def test_the_newest_restart_is_shown() -> None:
    store = stored([header(), *world(2), done(0, 0, 1.0)])
    store.apply(Hello(t_ns=5, rank=1, restart=1, world_size=2))
    store.apply(done(0, 0, 2.0))
    snapshot = store.snapshot()
    assert [(r.rank, r.restart) for r in snapshot.ranks] == [(1, 1)]
    assert snapshot.dispatch is None
    assert "restart 1" in snapshot.notes[0].text


@pytest.mark.parametrize(
    "sign",
    [
        RankProcess(t_ns=2, rank=0, restart=1, local_rank=0, node=0, pid=1, started_s=1.0),
        LogLines(t_ns=2, file="f", offset=0, length=1, lines=1, stream="stdout", rank=0, restart=1),
    ],
)
def test_a_new_attempt_clears_the_failure_of_the_last_one(sign: RecordEvent) -> None:
    failed = JobFailed(t_ns=1, failure=Failure(rank=0, cause="x"))
    store = stored([header(), *world(2), failed])
    assert store.snapshot().failure
    store.apply(sign)
    assert store.snapshot().failure is None
    assert {rank.state for rank in store.snapshot().ranks} <= {"running", "waiting"}


def test_a_failed_attempt_is_no_failure_of_a_run_that_finished() -> None:
    failed = JobFailed(t_ns=1, failure=Failure(rank=0, cause="x"))
    for outcome, failure in (("finished", None), ("failed", failed.failure)):
        end = RunEnded(t_ns=2, outcome=outcome, failure=failure)  # type: ignore[arg-type] # the names of outcomes
        assert stored([header(), failed, end]).snapshot().failure == failure


def test_states_of_a_rank() -> None:
    store = stored([header("builtin")])

    def states() -> list[str]:
        return [r.state for r in store.snapshot().ranks]

    assert states() == ["waiting", "waiting"]
    for rank in (0, 1):
        store.apply(
            RankProcess(t_ns=1, rank=rank, restart=0, local_rank=rank, node=0, pid=10 + rank, started_s=1.0)
        )
    assert states() == ["running", "running"]
    store.apply(RankExited(t_ns=2, rank=0, restart=0, pid=10, exitcode=0))
    store.apply(RankExited(t_ns=2, rank=1, restart=0, pid=99, exitcode=3))
    assert states() == ["exited", "running"]
    store.apply(RankExited(t_ns=2, rank=1, restart=0, pid=11, signal=9))
    assert states() == ["exited", "failed"]
    assert store.snapshot().ranks[1].signal == 9


def test_who_was_ended_has_not_failed_unless_the_job_failed_by_it() -> None:
    store = stored([header("builtin")])
    for rank in (0, 1):
        store.apply(RankExited(t_ns=2, rank=rank, restart=0, pid=10 + rank, signal=15))
    assert [r.state for r in store.snapshot().ranks] == ["exited", "exited"]
    store.apply(RunEnded(t_ns=3, outcome="failed", failure=Failure(rank=1, cause="x", signal="SIGTERM")))
    assert [r.state for r in store.snapshot().ranks] == ["exited", "failed"]


def test_equal_versions_mean_equal_rows() -> None:
    store = Store()
    rows: dict[tuple[int, int], RankSnapshot] = {}
    snapshots: list[RunSnapshot] = []
    for event in make_record(Plan(rounds=6)).events:
        store.apply(event)
        snapshot = store.snapshot()
        snapshots.append(snapshot)
        for row in snapshot.ranks:
            assert rows.setdefault((row.rank, row.version), row) == row
    for a, b in pairwise(snapshots):
        assert a.version <= b.version
        assert (a.version == b.version) == (a is b)


def test_only_changed_ranks_are_built_anew() -> None:
    store = stored(make_record(Plan(ranks=16, ends=False)).events)
    before = store.snapshot()
    store.apply(
        ProcessSample(t_ns=9, rank=4, restart=0, pid=1, cpu_percent=50.0, rss_bytes=1, threads=1),
    )
    after = store.snapshot()
    assert [a.rank for a, b in zip(after.ranks, before.ranks, strict=True) if a is not b] == [4]


def test_progress_and_the_time_left() -> None:
    store = stored([Progress(t_ns=0, done=10, total=100), Progress(t_ns=int(5e9), done=20, total=100)])
    snapshot = store.snapshot()
    assert (snapshot.progress_done, snapshot.progress_total, snapshot.eta_s) == (20, 100, 40.0)
    store.apply(Progress(t_ns=int(6e9), done=1, total=50, label="stress"))
    assert store.snapshot().eta_s is None


# bounds


def test_rings_forget_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "DROPS_KEPT", 2)
    line = LogLines(t_ns=0, file="f", offset=0, length=2, lines=3, stream="stdout")
    store = stored([line] * (store_module.LOGS_KEPT + 2))
    for i in range(4):
        store.apply(Dropped(t_ns=0, count=10, reason=f"reason {i}"))
    for i in range(rank_module.COUNTERS_KEPT + 1):
        store.apply(Counter(t_ns=0, rank=0, name=f"c{i}", value=1.0))
    snapshot = store.snapshot()
    assert len(snapshot.logs) == store_module.LOGS_KEPT
    assert snapshot.logs_forgotten == 6
    assert sum(d.count for d in snapshot.drops) == 41
    assert len(snapshot.drops) == 3
    assert len(snapshot.ranks[0].counters) == rank_module.COUNTERS_KEPT


def test_a_newer_format_is_said() -> None:
    assert "format 99" in stored([header(version=99)]).snapshot().notes[0].text


def test_the_worst_level_stays() -> None:
    store = stored([Note(t_ns=0, text="a", level="error"), Note(t_ns=0, text="b", level="warning")])
    assert store.snapshot().worst_level == "error"
