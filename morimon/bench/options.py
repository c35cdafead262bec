"""The job's options, parsed and checked without torch, so that they can be refused before any rank starts."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NoReturn, get_args

import msgspec

from morimon.ep.config import ConfigError, EpConfig, default_combine_dtype
from morimon.ep.routing import ROUTINGS, Routing, route

Command = Literal["bench", "stress", "profile"]
Weighting = Literal["weighted", "unweighted"]
BackendName = Literal["gloo"]
RowDtype = Literal["bf16", "fp32", "fp8"]
CombineDtype = Literal["bf16", "fp32"]

# Sized for a machine without GPUs: eight ranks on two cores end by themselves within about a minute.
_DEFAULT_TOKENS = 512
_DEFAULT_HIDDEN = 2048
_DEFAULT_EXPERTS_PER_RANK = 32
_DEFAULT_TOPK = 8
_DEFAULT_ROUNDS = 50
_DEFAULT_WARMUP = 1


class OptionsError(ValueError):
    """Options that no job can run with; the text is one sentence for the user."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What one job does; `ep` is its shape, checked, and everything else fits to it.

    `rounds` counts the rounds that are printed: as in mori's benchmark the first of them, round 0, is left out of the
    statistics. `warmup` rounds before these are verified like all others.
    """

    ep: EpConfig
    cmd: Command
    backend: BackendName
    routing: Routing
    seed: int
    rounds: int
    warmup: int
    combine: Weighting
    slow_rank: int | None
    slow_us: int
    trace_dir: str


def parse(argv: Sequence[str], world_size: int) -> Options:
    """The options of a job of `world_size` ranks on one node.

    Raises OptionsError for what cannot be; `--help` prints and leaves by SystemExit(0).
    """
    given = _parser().parse_args(argv)
    try:
        ep = EpConfig(
            num_nodes=1,
            gpu_per_node=world_size,
            num_tokens=given.max_tokens,
            hidden=given.hidden_dim,
            num_experts=_num_experts(given.num_experts, given.num_experts_per_rank, world_size),
            topk=given.num_experts_per_token,
            dtype=given.dtype,
            combine_dtype=given.combine_dtype or default_combine_dtype(given.dtype),
            kernel_type=given.kernel_type,
        )
        # One token shows whether the pattern fits at all.
        route(msgspec.structs.replace(ep, num_tokens=1), given.routing, seed=given.seed, rank=0)
    except ConfigError as error:
        raise OptionsError(str(error)) from None
    if given.rounds < 2:
        raise OptionsError(
            f"--rounds must be at least 2, not {given.rounds}: round 0 is left out of the statistics."
        )
    if given.warmup < 0:
        raise OptionsError(f"--warmup must not be negative, but is {given.warmup}.")
    if given.slow_us < 0:
        raise OptionsError(f"--slow-us must not be negative, but is {given.slow_us}.")
    if given.slow_rank is not None and not 0 <= given.slow_rank < world_size:
        raise OptionsError(f"--slow-rank {given.slow_rank} is none of the {world_size} ranks.")
    if given.cmd == "profile" and not Path(given.trace_dir).is_dir():
        raise OptionsError(f"--trace-dir {given.trace_dir} is no folder.")
    return Options(
        ep=ep,
        cmd=given.cmd,
        backend=given.backend,
        routing=given.routing,
        seed=given.seed,
        rounds=given.rounds,
        warmup=given.warmup,
        combine=given.combine,
        slow_rank=given.slow_rank,
        slow_us=given.slow_us,
        trace_dir=given.trace_dir,
    )


def help_text() -> str:
    """The options and their defaults, for people."""
    return _parser().format_help().partition("\n\n")[2]


def _num_experts(total: int | None, per_rank: int | None, world_size: int) -> int:
    if total is not None and per_rank is not None:
        raise OptionsError("Give --num-experts or --num-experts-per-rank, not both.")
    if total is not None:
        return total
    return world_size * (_DEFAULT_EXPERTS_PER_RANK if per_rank is None else per_rank)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise OptionsError(f"{message[:1].upper()}{message[1:]}.")


def _parser() -> _Parser:
    parser = _Parser(
        prog="morimon.bench",
        description="Dispatch and combine tokens among real ranks, verify every round, print mori's lines.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    job = parser.add_argument_group("job")
    job.add_argument("--cmd", choices=get_args(Command), default="bench", help="what to run")
    job.add_argument("--backend", choices=get_args(BackendName), default="gloo", help="what moves the rows")
    job.add_argument("--kernel-type", choices=["intranode"], default="intranode", help="kernel family")
    job.add_argument(
        "--rounds",
        type=int,
        default=_DEFAULT_ROUNDS,
        metavar="N",
        help="rounds; round 0 is not in the statistics",
    )
    job.add_argument("--warmup", type=int, default=_DEFAULT_WARMUP, metavar="N", help="rounds before round 0")
    job.add_argument(
        "--trace-dir",
        default=".",
        metavar="DIR",
        help="where --cmd profile writes its traces",
    )

    shape = parser.add_argument_group("shape")
    shape.add_argument(
        "--max-tokens", type=int, default=_DEFAULT_TOKENS, metavar="N", help="tokens of one rank"
    )
    shape.add_argument("--hidden-dim", type=int, default=_DEFAULT_HIDDEN, metavar="N", help="elements a row")
    shape.add_argument(
        "--num-experts-per-rank",
        type=int,
        metavar="N",
        help=f"experts of one rank ({_DEFAULT_EXPERTS_PER_RANK} if neither is given)",
    )
    shape.add_argument("--num-experts", type=int, metavar="N", help="experts of the whole job")
    shape.add_argument("--num-experts-per-token", type=int, default=_DEFAULT_TOPK, metavar="K", help="top-k")
    shape.add_argument("--dtype", choices=get_args(RowDtype), default="bf16", help="what dispatch carries")
    shape.add_argument(
        "--combine-dtype",
        choices=get_args(CombineDtype),
        help="what combine carries (fp32 for fp32, else bf16)",
    )
    shape.add_argument(
        "--combine",
        choices=get_args(Weighting),
        default="weighted",
        help="whether experts' rows are weighted before they are summed",
    )

    routing = parser.add_argument_group("routing")
    routing.add_argument("--routing", choices=ROUTINGS, default="random", help="which experts tokens go to")
    routing.add_argument("--seed", type=int, default=0, metavar="N", help="seed of routing and data")

    late = parser.add_argument_group("lateness")
    late.add_argument("--slow-rank", type=int, metavar="R", help="rank that arrives late at every phase")
    late.add_argument(
        "--slow-us", type=int, default=20_000, metavar="US", help="how late --slow-rank arrives, µs"
    )
    return parser
