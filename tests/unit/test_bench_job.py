"""The job on ranks that are threads: what it moves, prints and tells, and what its verification catches."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import pytest
import torch

from morimon.bench.data import Batch, batch
from morimon.bench.options import Options, parse
from morimon.bench.rows import encode, pack, unpack
from morimon.bench.verify import expected_sums
from morimon.ep.predict import predict, routes
from morimon.ep.routing import ROUTINGS
from morimon.ep.volume import row_bytes
from morimon.model.config import JobConfig
from morimon.model.events import Configured, PhaseDone, Tokens
from morimon.probe import Probe
from tests.support.parsing import lines_of, only
from tests.support.parsing import parse as read
from tests.support.thread_ranks import Spoil, ThreadBackend, World, run_threads

SMALL = "--max-tokens 24 --hidden-dim 40 --num-experts-per-rank 4 --num-experts-per-token 4 --rounds 3 "


def options(argv: str = "", world_size: int = 4) -> Options:
    return parse((SMALL + argv).split(), world_size)


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("argv", ["--dtype bf16", "--dtype fp32 --combine unweighted", "--dtype fp8"])
def test_printed_counts_are_those_that_the_routing_gives(routing: str, argv: str) -> None:
    job = options(f"{argv} --routing {routing} --seed 3")
    log, errors = run_threads(World(job))
    assert errors == []
    counts = predict(job.ep, routes(job.ep, job.routing, job.seed))
    printed = {e.rank: (e.recv_tokens, e.rdma_tokens_algo) for e in only(Tokens, read(log))}
    assert printed == {one.rank: (one.recv_tokens, one.rdma_tokens_algo) for one in counts.ranks}


def test_printed_rounds_read_back() -> None:
    log, _ = run_threads(World(options("--warmup 2 --rounds 4")))
    events = read(log)
    told = {(e.round, e.phase, e.rank): e.latency_us for e in only(PhaseDone, events)}
    assert told == {
        (round_, phase, rank): base + rank
        for round_ in (-1, 1, 2, 3)
        for phase, base in (("dispatch", 1000), ("combine", 2000))
        for rank in range(4)
    }
    assert {level for _, level, _ in lines_of(events)} == {"info"}
    config = JobConfig()
    for event in only(Configured, events):
        config = config.completed_by(event.config)
    assert config == JobConfig(world_size=4, dtype="bf16", combine_dtype="bf16")


def test_the_order_of_printed_lines_is_moris() -> None:
    log, _ = run_threads(World(options("--rounds 2 --warmup 1", world_size=2)))
    lines = log.splitlines()
    assert "WarmUp Round 0 begin" in lines
    leads = [line for line in lines if not line.startswith("rank:  1")]
    first = leads.index("Round 0")
    assert [line.split("[")[0] for line in leads[first : first + 8]] == [
        "Round 0",
        "  dispatch duration ",
        "  dispatch rdma bandwidth ",
        "  dispatch bandwidth ",
        "  combine duration ",
        "  combine rdma bandwidth ",
        "  combine bandwidth ",
        "Round 1",
    ]
    assert leads[first + 1] == "  dispatch duration [1000, 1001] avg 1000.50 µs"
    assert {
        "rank:  0 error times:  0 appear round:  set()",
        "rank:  1 error times:  0 appear round:  set()",
    } <= set(lines)
    assert sum("Performance (bfloat16)" in line for line in lines) == 2


def test_stress_draws_every_round_anew() -> None:
    job = options("--cmd stress --rounds 6")
    log, errors = run_threads(World(job))
    assert errors == []
    of_rank_0 = [e.recv_tokens for e in only(Tokens, read(log)) if e.rank == 0 and e.rdma_tokens_algo is None]
    assert len(of_rank_0) == 6
    assert len(set(of_rank_0)) > 1
    sizes = {batch(job, round_, 1).num_tokens for round_ in range(6)}
    assert len(sizes) > 1


@pytest.mark.parametrize("dtype", ["bf16", "fp32", "fp8"])
def test_rows_have_the_bytes_that_travel(dtype: str) -> None:
    job = options(f"--dtype {dtype} --hidden-dim 200")
    mine = batch(job, 0, 1)
    rows = encode(job.ep, mine, torch.arange(mine.num_tokens))
    packed = pack(rows)
    assert packed.shape == (24, row_bytes(job.ep, "dispatch"))
    back = unpack(job.ep, packed)
    assert torch.equal(back.values(), rows.values())
    assert torch.equal(back.topk_idx, mine.topk_idx)
    assert torch.equal(back.weights, mine.weights)
    error = (back.values() - mine.tokens).abs().max()
    assert error == 0 if dtype != "fp8" else 0 < error <= 1 / 16


def test_fp8_scales_follow_large_and_small_blocks() -> None:
    job = options("--dtype fp8 --hidden-dim 256")
    tokens = torch.cat([torch.full((1, 128), 2.0**15), torch.zeros(1, 128)], dim=1)
    small = Batch(tokens, torch.zeros(1, 4, dtype=torch.int32), torch.ones(1, 4))
    assert torch.equal(encode(job.ep, small, torch.zeros(1)).values(), tokens)


def test_combined_tokens_are_weighted_sums() -> None:
    """Against float64 arithmetic straight from the definition; bf16 rounds each of at most 4 terms and the sum."""
    job = options("--routing random")
    mine = batch(job, 0, 2)
    want = mine.tokens.double() * mine.weights.double().sum(dim=1)[:, None]
    bound = 5 * 2.0**-8 * mine.tokens.abs().double() * mine.weights.double().sum(dim=1)[:, None]
    assert ((expected_sums(job, 0, 2).double() - want).abs() <= bound).all()


def test_unweighted_sums_count_destinations() -> None:
    job = options("--routing spread --combine unweighted --dtype fp32")
    mine = batch(job, 0, 2)
    assert torch.equal(expected_sums(job, 0, 2), 4 * mine.tokens)


def flip(place: int) -> Spoil:
    def spoil(rank: int, exchange: int, arrived: torch.Tensor) -> torch.Tensor:
        if (rank, exchange) == (2, 2):
            arrived = arrived.clone()
            arrived[5, place] ^= 1
        return arrived

    return spoil


def drop(rank: int, exchange: int, arrived: torch.Tensor) -> torch.Tensor:
    return arrived[1:] if (rank, exchange) == (2, 2) else arrived


def twice(rank: int, exchange: int, arrived: torch.Tensor) -> torch.Tensor:
    return torch.cat([arrived[:1], arrived[:-1]]) if (rank, exchange) == (2, 2) else arrived


class Stale:
    """The rows of the round before."""

    def __init__(self) -> None:
        self.last = torch.empty(0)

    def __call__(self, rank: int, exchange: int, arrived: torch.Tensor) -> torch.Tensor:
        if rank == 2:
            self.last, arrived = arrived, self.last if exchange == 2 else arrived
        return arrived


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (flip(0), "wrong elements"),
        (flip(79), "wrong elements"),
        (flip(80), "wrong weights"),
        (flip(96), "wrong experts"),
        (flip(112), "wrong source"),
        (drop, "expected token num"),
        (twice, "wrong source"),
        (Stale(), "wrong elements"),
    ],
)
def test_a_spoiled_dispatch_is_caught(spoil: Spoil, words: str) -> None:
    world = World(options("--warmup 0 --rounds 4"), on_dispatch=spoil)
    log, (error,) = run_threads(world)
    assert words in str(error)
    assert "rank 2, round 2, dispatch" in str(error)
    assert {e.round for e in only(PhaseDone, read(log))} == {-1, 1}


def test_a_spoiled_combine_is_caught() -> None:
    def spoil(rank: int, exchange: int, sums: torch.Tensor) -> torch.Tensor:
        if (rank, exchange) == (1, 3):
            sums[7, 3] += 1 / 64
        return sums

    log, (error,) = run_threads(World(options("--warmup 0 --rounds 4 --dtype fp32"), on_combine=spoil))
    assert "rank 1, round 2, combine: token 7 " in str(error)
    assert {e.round for e in only(PhaseDone, read(log))} == {-1, 1}


class Told(Probe):
    """A probe that keeps what it is told in a list, together with what the backend and the clock are asked."""

    def __init__(self, rank: int, calls: list[tuple[object, ...]]) -> None:
        super().__init__("/nowhere", rank=rank)
        self.calls = calls

    def enter(self, phase: str, round: int) -> None:  # noqa: A002 - the probe's word
        self.calls.append(("enter", phase, round))

    def done(
        self,
        phase: str,
        round: int,  # noqa: A002 - the probe's word
        latency_us: float,
        *,
        recv_tokens: int | None = None,
        rdma_tokens_algo: int | None = None,
        bytes: int | None = None,  # noqa: A002 - the probe's word
        rdma_bytes: int | None = None,
    ) -> None:
        self.calls.append(("done", phase, round, recv_tokens, rdma_tokens_algo, bytes, rdma_bytes))

    def config(self, **fields: object) -> None:
        self.calls.append(("config", JobConfig(**fields)))  # type: ignore[arg-type]

    def progress(self, done: int, total: int | None = None, label: str = "") -> None:
        self.calls.append(("progress", done, total))

    def tokens(self, recv_tokens: int, rdma_tokens_algo: int | None = None) -> None:
        self.calls.append(("tokens", recv_tokens, rdma_tokens_algo))

    def traffic(self, to_ranks: Iterable[int], to_experts: Iterable[int] = ()) -> None:
        self.calls.append(("traffic", sum(to_ranks), sum(to_experts)))


def tell(argv: str, monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[object, ...]]]:
    """What two ranks do, in order, rank by rank."""
    calls: list[list[tuple[object, ...]]] = [[], []]
    for name in ("barrier", "dispatch", "combine"):
        method = getattr(ThreadBackend, name)

        def noted(self: ThreadBackend, *args: object, name: str = name, method: Any = method) -> object:
            calls[self.rank].append((name,))
            return method(self, *args)

        monkeypatch.setattr(ThreadBackend, name, noted)
    by_thread: dict[int, int] = {}

    def probe(rank: int) -> Told:
        by_thread[threading.get_ident()] = rank
        return Told(rank, calls[rank])

    monkeypatch.setattr(
        "morimon.bench.job.time.sleep", lambda s: calls[by_thread[threading.get_ident()]].append(("sleep", s))
    )
    _, errors = run_threads(World(options(argv, world_size=2)), probe)
    assert errors == []
    return calls


def test_a_rank_arrives_before_anything_collective_of_the_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = tell("--warmup 1 --rounds 3 --slow-rank 1 --slow-us 700", monkeypatch)
    late = ("sleep", 0.0007)
    kinds = ("barrier", "sleep", "enter", "dispatch", "combine")
    for rank, slow in ((0, []), (1, [late])):
        assert [call for call in calls[rank] if call[0] in kinds] == [
            step
            for round_ in (-2, -1, 1, 2)
            for phase in ("dispatch", "combine")
            for step in [("barrier",), *slow, ("enter", phase, round_), (phase,)]
        ]


def test_the_probe_is_told_figures_in_bytes_of_each_phases_own_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = tell("--warmup 0 --rounds 2 --dtype fp8 --combine-dtype fp32", monkeypatch)
    job = options("--dtype fp8 --combine-dtype fp32", world_size=2)
    counts = predict(job.ep, routes(job.ep, job.routing, job.seed))
    for rank, count in enumerate(counts.ranks):
        recv, algo = count.recv_tokens, count.rdma_tokens_algo
        assert [call for call in calls[rank] if call[0] in ("done", "tokens", "traffic")] == [
            ("tokens", recv, algo),
            ("traffic", counts.to_rank[rank].sum(), 24 * 4),
            *(
                ("done", phase, round_, recv, algo, recv * 40 * size, algo * 40 * size)
                for round_ in (-1, 1)
                for phase, size in (("dispatch", 1), ("combine", 4))
            ),
        ]
    assert [call for call in calls[0] if call[0] == "progress"] == [("progress", 1, 2), ("progress", 2, 2)]
    (told,) = (call[1] for call in calls[0] if call[0] == "config")
    assert isinstance(told, JobConfig)
    assert (told.platform, told.dtype, told.num_experts, told.rounds) == ("THREADS", "fp8", 8, 2)
    assert [call for call in calls[1] if call[0] in ("config", "progress")] == []
