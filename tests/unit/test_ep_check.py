from __future__ import annotations

import pytest

from morimon.ep.check import Observed, check_exactly, check_statistically
from morimon.ep.config import EpConfig
from morimon.ep.expectation import expect
from morimon.ep.predict import predict, routes

CONFIG = EpConfig(num_nodes=2, gpu_per_node=4, num_tokens=256, hidden=16, kernel_type="v1")
COUNTS = predict(CONFIG, routes(CONFIG, "random", 5))
PRINTED = [Observed(one.rank, one.recv_tokens, one.rdma_tokens_algo) for one in COUNTS.ranks]


def test_equal_counts_pass_and_lines_may_repeat() -> None:
    check = check_exactly(COUNTS, [*PRINTED, *PRINTED])
    assert check.ok
    assert not check.statistical
    assert check.missing == ()
    assert len(check.findings) == 16


def test_one_token_more_or_less_is_found() -> None:
    wrong = Observed(3, COUNTS.ranks[3].recv_tokens + 1, COUNTS.ranks[3].rdma_tokens_algo)
    check = check_exactly(COUNTS, [*PRINTED[:3], wrong])
    assert not check.ok
    assert [(f.rank, f.field, f.verdict) for f in check.findings if not f.ok] == [
        (3, "recv_tokens", "different")
    ]
    assert check.missing == (4, 5, 6, 7)


def test_a_line_without_rdma_tokens_is_held_to_what_it_says() -> None:
    check = check_exactly(COUNTS, [Observed(2, COUNTS.ranks[2].recv_tokens)])
    assert check.ok
    assert [finding.field for finding in check.findings] == ["recv_tokens"]


def test_another_draw_is_within_the_band_and_a_biased_one_outside() -> None:
    other = predict(CONFIG, routes(CONFIG, "random", 6)).ranks
    fair = check_statistically(
        CONFIG, [Observed(one.rank, one.recv_tokens, one.rdma_tokens_algo) for one in other]
    )
    assert fair.ok
    assert fair.statistical
    skewed = predict(CONFIG, routes(CONFIG, "skewed", 6)).ranks
    biased = check_statistically(
        CONFIG, [Observed(one.rank, one.recv_tokens, one.rdma_tokens_algo) for one in skewed]
    )
    assert {"outside"} <= {finding.verdict for finding in biased.findings}


def test_the_band_is_four_sigmas_wide() -> None:
    due = expect(CONFIG).recv_tokens
    inside, outside = (Observed(0, round(due.mean + sigmas * due.sigma)) for sigmas in (3.9, 4.1))
    assert check_statistically(CONFIG, [inside]).ok
    assert not check_statistically(CONFIG, [outside]).ok


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (Observed(0, 256, 513), "rdma_tokens_algo"),  # more than tokens × nodes
        (Observed(0, 2049), "recv_tokens"),  # more than all tokens of all ranks
        (Observed(0, -1), "recv_tokens"),
    ],
)
def test_counts_that_no_routing_gives_are_impossible(line: Observed, field: str) -> None:
    for check in (check_exactly(COUNTS, [line]), check_statistically(CONFIG, [line])):
        assert field in [finding.field for finding in check.findings if finding.verdict == "impossible"]


def test_a_rank_that_the_job_does_not_have_is_found() -> None:
    check = check_exactly(COUNTS, [Observed(8, 10)])
    assert [finding.verdict for finding in check.findings] == ["no such rank"]
    assert not check.ok
