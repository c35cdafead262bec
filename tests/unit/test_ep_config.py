from __future__ import annotations

from typing import Any

import pytest

from morimon.ep.config import ConfigError, EpConfig, default_kernel_type


def test_places_of_ranks_and_experts() -> None:
    config = EpConfig(num_nodes=2, gpu_per_node=4, num_experts=32, topk=4, kernel_type="v1")
    assert (config.world_size, config.experts_per_rank, config.experts_per_node) == (8, 4, 16)
    assert [(config.node_of(rank), config.local_rank_of(rank)) for rank in (0, 3, 4, 7)] == [
        (0, 0),
        (0, 3),
        (1, 0),
        (1, 3),
    ]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"num_tokens": -5}, "The number of tokens per rank must be at least 1, not -5."),
        ({"num_nodes": 0}, "The number of nodes must be at least 1, not 0."),
        (
            {"num_experts": 250},
            "250 experts cannot be divided among 8 ranks (1 × 8): choose a multiple of 8.",
        ),
        ({"topk": 257}, "top-k of 257 is more than there are experts (256)."),
        ({"dtype": "int3"}, "Unknown dtype 'int3': choose one of bf16, fp32, fp8, fp4."),
        ({"kernel_type": "v9"}, "Unknown kernel type 'v9': choose one of intranode, v1, v1_ll, async_ll."),
        ({"num_nodes": 2}, "The intranode kernel runs on one node, not 2: choose v1, v1_ll or async_ll."),
        ({"scale_dim": -1}, "The number of scales and their size must not be negative."),
    ],
)
def test_impossible_configurations_are_refused_in_one_sentence(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        EpConfig(**fields)
    assert str(caught.value) == sentence


def test_one_node_runs_intranode_and_more_run_v1() -> None:
    assert (default_kernel_type(1), default_kernel_type(3)) == ("intranode", "v1")
