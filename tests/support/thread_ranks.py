"""Ranks of the built-in job as threads of one process: a backend without gloo, whose rows arrive in random order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from morimon.bench.backend import Arrival, Combined
from morimon.bench.data import Batch, destinations
from morimon.bench.job import Job
from morimon.bench.options import Options
from morimon.bench.rows import TORCH_DTYPES, Rows, encode, pack, unpack
from morimon.bench.spans import Spans
from morimon.bench.verify import VerificationError
from morimon.probe import Probe

Spoil = Callable[[int, int, torch.Tensor], torch.Tensor]
"""(rank, how many exchanges it has had, what arrived) -> what it sees instead"""


def intact(rank: int, exchange: int, arrived: torch.Tensor) -> torch.Tensor:
    """What arrived, as it is."""
    return arrived


@dataclass
class World:
    """What the threads share."""

    options: Options
    on_dispatch: Spoil = intact
    on_combine: Spoil = intact
    mail: dict[tuple[int, int], torch.Tensor] = field(default_factory=dict)
    figures: dict[int, Sequence[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.size = self.options.ep.world_size
        self.meeting = threading.Barrier(self.size)


class ThreadBackend:
    """One thread's end of the exchange; see morimon.bench.backend.Backend."""

    platform = "THREADS"

    def __init__(self, world: World, rank: int) -> None:
        self.rank = rank
        self._world = world
        self._config = world.options.ep
        self._exchanges = 0
        self._order = torch.Generator().manual_seed(rank)

    def dispatch(self, batch: Batch) -> Arrival:
        """Rows through the shared dictionary, shuffled on arrival."""
        world = self._world
        rows = pack(
            encode(self._config, batch, torch.arange(batch.num_tokens) + self.rank * self._config.num_tokens)
        )
        goes = destinations(world.options, batch.topk_idx)
        for peer in range(world.size):
            world.mail[self.rank, peer] = rows[goes[:, peer]]
        world.meeting.wait()
        arrived = torch.cat([world.mail[peer, self.rank] for peer in range(world.size)])
        arrived = arrived[torch.randperm(len(arrived), generator=self._order)]
        arrived = world.on_dispatch(self.rank, self._exchanges, arrived)
        self._exchanges += 1
        world.meeting.wait()
        received: Rows = unpack(self._config, arrived)
        return Arrival(received, 1000.0 + self.rank, (batch.num_tokens, received.source))

    def combine(self, arrival: Arrival, outputs: torch.Tensor) -> Combined:
        """Rows back to where their numbers say they came from."""
        world, dtype = self._world, TORCH_DTYPES[self._config.combine_dtype]
        assert isinstance(arrival.handle, tuple)
        num_tokens, source = arrival.handle
        sums = torch.zeros(num_tokens, outputs.shape[1])
        values = outputs.to(dtype).to(torch.float32)
        numbered = torch.cat([source[:, None].to(torch.float32), values], dim=1)
        for peer in range(world.size):
            world.mail[self.rank, peer] = numbered[source // self._config.num_tokens == peer]
        world.meeting.wait()
        for peer in range(world.size):
            back = world.mail[peer, self.rank]
            token = back[:, 0].to(torch.int64) - self.rank * self._config.num_tokens
            sums.index_add_(0, token, back[:, 1:])
        sums = world.on_combine(self.rank, self._exchanges, sums)
        world.meeting.wait()
        return Combined(sums.to(dtype), 2000.0 + self.rank)

    def barrier(self) -> None:
        """All threads."""
        self._world.meeting.wait()

    def gather(self, figures: Sequence[float]) -> list[list[float]]:
        """Through the shared dictionary."""
        self._world.figures[self.rank] = figures
        self._world.meeting.wait()
        everybody = [list(self._world.figures[rank]) for rank in range(self._world.size)]
        self._world.meeting.wait()
        return everybody if self.rank == 0 else []

    def close(self) -> None:
        """Nothing to leave."""


def run_threads(
    world: World, probe: Callable[[int], Probe] = lambda rank: Probe(rank=rank)
) -> tuple[str, list[VerificationError]]:
    """Run the job to its end: all printed lines, and the errors that verification found."""
    lines: list[str] = []
    errors: list[VerificationError] = []

    def rank(number: int) -> None:
        try:
            spans = Spans(is_kept=world.options.cmd == "profile")
            Job(world.options, ThreadBackend(world, number), probe(number), lines.append, spans).run()
        except VerificationError as error:
            errors.append(error)
            world.meeting.abort()
        except threading.BrokenBarrierError:
            pass

    threads = [threading.Thread(target=rank, args=(number,)) for number in range(world.size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return "".join(line + "\n" for line in lines), errors
