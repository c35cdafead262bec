"""The job's options: checked before any rank exists, without torch."""

from __future__ import annotations

import subprocess
import sys

import pytest

from morimon.bench.options import OptionsError, parse


def test_defaults_fit_every_usual_number_of_ranks() -> None:
    for world_size in (1, 2, 4, 8, 16):
        options = parse([], world_size)
        assert options.ep.world_size == world_size
        assert options.ep.experts_per_rank == 32
        assert (options.cmd, options.backend, options.routing) == ("bench", "gloo", "random")


def test_options_as_in_moris_benchmark() -> None:
    argv = (
        "--max-tokens 100 --hidden-dim 96 --num-experts-per-rank 4 --num-experts-per-token 3 --dtype fp8 --seed 7 "
        "--routing skewed --cmd stress --combine unweighted --slow-rank 3 --slow-us 5000 --rounds 9 --warmup 0"
    )
    options = parse(argv.split(), 4)
    ep = options.ep
    assert (ep.num_tokens, ep.hidden, ep.num_experts, ep.topk) == (100, 96, 16, 3)
    assert (ep.dtype, ep.combine_dtype, ep.kernel_type) == ("fp8", "bf16", "intranode")
    assert (options.slow_rank, options.slow_us, options.rounds, options.warmup) == (3, 5000, 9, 0)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ("--num-experts 12", "12 experts cannot be divided among 8 ranks"),
        ("--num-experts 8 --num-experts-per-token 9", "top-k of 9"),
        ("--backend nccl", "'nccl'"),
        ("--routing zigzag", "'zigzag'"),
        ("--kernel-type v1", "'v1'"),
        ("--dtype fp4", "'fp4'"),
        ("--max-tokens -5", "-5"),
        ("--hidden-dim 0", "hidden size must be at least 1"),
        ("--max-tokens many", "'many'"),
        ("--bench", "--bench"),
        ("--rounds 1", "--rounds must be at least 2"),
        ("--warmup -1", "--warmup"),
        ("--seed -1", "seed"),
        ("--slow-rank 8", "--slow-rank 8 is none of the 8 ranks"),
        ("--slow-us -1", "--slow-us"),
        ("--routing spread --num-experts-per-token 4", "spread"),
        ("--num-experts 8 --num-experts-per-rank 1", "not both"),
        ("--cmd profile --trace-dir /nowhere/at/all", "/nowhere/at/all is no folder"),
    ],
)
def test_bad_options_give_one_sentence(argv: str, words: str) -> None:
    with pytest.raises(OptionsError) as refused:
        parse(argv.split(), 8)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert str(refused.value).endswith(".")


def test_remote_round_robin_needs_another_rank() -> None:
    with pytest.raises(OptionsError):
        parse(["--routing", "remote_round_robin"], 1)


def test_options_are_checked_without_torch() -> None:
    code = "import sys, morimon.bench.options as o; o.parse([], 8); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("argv", "words"), [(["--backend", "nccl"], "nccl"), ([], "Ranks are started by torchrun")]
)
def test_the_job_refuses_in_one_line(argv: list[str], words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "morimon.bench", *argv],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
