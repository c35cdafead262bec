"""DeepEP's draws without torch: against counts that torch's own run gave, and against torch where it is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from morimon.ep import deepep, mt19937_jump
from morimon.ep.config import EpConfig
from morimon.ep.predict import predict, routes
from morimon.ep.torch_rng import BLOCK, TorchCpuGenerator
from morimon.ep.torch_topk import topk
from morimon.report.bw_values import byte_figures

ORACLE = json.loads((Path(__file__).parents[1] / "data" / "token_counts.json").read_text())


def oracle_config(sizes: dict[str, int]) -> EpConfig:
    return EpConfig(
        num_nodes=sizes["num_nodes"],
        gpu_per_node=sizes["gpu_per_node"],
        num_tokens=sizes["num_tokens"],
        hidden=sizes["hidden"],
        num_experts=sizes["num_experts"],
        topk=sizes["num_topk"],
        kernel_type="v1",
    )


@pytest.mark.parametrize("job", ORACLE, ids=lambda job: f"{job['config']['num_nodes']} nodes")
def test_every_integer_of_the_recorded_runs(job: dict[str, Any]) -> None:
    config = oracle_config(job["config"])
    counts = predict(config, routes(config, "deepep", 0))
    figures = [
        {
            "rank": one.rank,
            "node": one.node,
            "gpu": one.local_rank,
            "recv_tokens": one.recv_tokens,
            "rdma_tokens_algo": one.rdma_tokens_algo,
            "rdma_tokens_physical": one.rdma_tokens_physical,
            **byte_figures(config, one),
        }
        for one in counts.ranks
    ]
    assert figures == job["ranks"]


def test_another_seed_draws_what_another_rank_draws() -> None:
    config = EpConfig(gpu_per_node=4, num_tokens=20, hidden=16)
    assert np.array_equal(deepep.topk_idx(config, 2, 1), deepep.topk_idx(config, 0, 3))


def torch_or_skip() -> Any:
    return pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")


def torch_topk_idx(torch: Any, config: EpConfig, seed: int) -> Any:
    """DeepEP's draws by torch itself."""
    nodes, tokens = config.num_nodes, config.num_tokens
    torch.manual_seed(seed)
    torch.randn((tokens, config.hidden), dtype=torch.bfloat16)
    scores = torch.randn((tokens, config.num_experts)).abs() + 1
    grouped = scores.view(tokens, nodes, -1)
    best = torch.topk(grouped.amax(-1), min(nodes, 4), sorted=False).indices
    reached = torch.zeros((tokens, nodes), dtype=torch.bool).scatter_(1, best, True)
    masked = (grouped * reached.unsqueeze(-1)).view(tokens, -1)
    return torch.topk(masked, config.topk, sorted=False).indices.numpy()


@pytest.mark.parametrize(
    ("nodes", "gpus", "tokens", "hidden", "experts", "topk_", "rank"),
    [
        (2, 8, 2048, 16, 256, 8, 9),
        (8, 4, 2048, 16, 256, 8, 31),  # four of eight nodes
        (1, 8, 2048, 16, 512, 8, 0),  # std::partial_sort
        (3, 2, 333, 7, 30, 5, 5),  # sizes that are no multiples of 16
        (5, 1, 3, 5, 10, 6, 2),
        (1, 2, 3, 3, 2, 1, 1),  # fewer than 16 numbers
        (1, 1, 1, 7, 4, 4, 0),
        (1, 2, 2000, 1100, 4, 3, 1),  # a first draw that is jumped over
    ],
)
def test_same_experts_as_torch(
    nodes: int, gpus: int, tokens: int, hidden: int, experts: int, topk_: int, rank: int
) -> None:
    torch = torch_or_skip()
    config = EpConfig(
        num_nodes=nodes,
        gpu_per_node=gpus,
        num_tokens=tokens,
        hidden=hidden,
        num_experts=experts,
        topk=topk_,
        kernel_type="v1",
    )
    ours = np.sort(deepep.topk_idx(config, 0, rank), axis=1)
    assert np.array_equal(ours, np.sort(torch_topk_idx(torch, config, rank), axis=1))


def test_a_tie_at_the_border_falls_as_torch_lets_it_fall(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = torch_or_skip()
    rank, token = 28, 1333  # found by search among a million tokens
    config = EpConfig(gpu_per_node=64, num_tokens=16384, hidden=1)
    theirs = np.sort(torch_topk_idx(torch, config, rank), axis=1)
    assert np.array_equal(np.sort(deepep.topk_idx(config, 0, rank), axis=1), theirs)
    monkeypatch.setattr(deepep, "_CLOSE", np.float32(-1))
    quick = np.sort(deepep.topk_idx(config, 0, rank), axis=1)
    assert np.flatnonzero((quick != theirs).any(axis=1)).tolist() == [token], "the case is a real one"


@pytest.mark.parametrize("before", [1, 3, 15, 16, 17, 40])
@pytest.mark.parametrize("count", [1, 2, 5, 15, 16, 17, 31, 33, 1000, 12295])
def test_randn_bit_for_bit(before: int, count: int) -> None:
    torch = torch_or_skip()
    torch.manual_seed(7)
    torch.randn(before, dtype=torch.bfloat16)
    theirs = torch.randn(count).numpy()
    generator = TorchCpuGenerator(7)
    generator.skip_randn_bf16(before)
    numbers = generator.randn(count)
    if torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512"):
        assert np.array_equal(numbers.exact(0, count), theirs)
    assert np.allclose(numbers.quick(0, count), theirs, rtol=2**-20, atol=1e-7)


@given(st.integers(1, 100), st.data())
def test_any_part_of_the_numbers_is_a_part_of_the_whole(count: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, count - 1))
    stop = data.draw(st.integers(start + 1, count))
    numbers = TorchCpuGenerator(count).randn(count)
    assert np.array_equal(numbers.exact(start, stop), numbers.exact(0, count)[start:stop])
    assert np.array_equal(numbers.quick(start, stop), numbers.quick(0, count)[start:stop])


def test_normal_numbers_are_normal() -> None:
    numbers = TorchCpuGenerator(0).randn(BLOCK * 4096).quick(0, BLOCK * 4096)
    assert numbers.mean() == pytest.approx(0, abs=4 / 256)
    assert numbers.std() == pytest.approx(1, abs=4 / 362)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=300), st.data())
@settings(deadline=None)
def test_ties_fall_as_in_torch(values: list[int], data: st.DataObject) -> None:
    torch = torch_or_skip()
    k = data.draw(st.integers(1, len(values)) | st.integers(1, max(1, len(values) // 64)))
    theirs = torch.topk(torch.tensor(values, dtype=torch.float32), k, sorted=False).indices.tolist()
    assert sorted(topk(values, k)) == sorted(theirs)


def test_introselect_falls_back_to_a_heap() -> None:
    # Median-of-three partitioning makes no headway on this row, so that the depth limit is reached.
    torch = torch_or_skip()
    size = 256
    killer = [0] * size
    for place in range(size // 2):
        killer[place] = -(place + 1 if place % 2 == 0 else size // 2 + place + place % 2)
        killer[size // 2 + place] = -2 * (place + 1)
    for k in (64, 128, 200):
        theirs = torch.topk(torch.tensor(killer, dtype=torch.float32), k, sorted=False).indices.tolist()
        assert sorted(topk(killer, k)) == sorted(theirs)


@pytest.mark.parametrize("begun", [0, 1, 623, 624, 1000])
@pytest.mark.parametrize("count", [0, 5, (1 << 22) - 1, 1 << 22, 5_000_011])
def test_jumping_is_drawing(begun: int, count: int) -> None:
    jumped, drawn = np.random.MT19937(5), np.random.MT19937(5)
    for twister in (jumped, drawn):
        twister.random_raw(begun, output=False)
    mt19937_jump.skip(jumped, count)
    drawn.random_raw(count, output=False)
    assert np.array_equal(jumped.random_raw(2000), drawn.random_raw(2000))
