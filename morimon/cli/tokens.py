"""`morimon tokens`: who receives and sends how much, for a routing that is drawn here or read from a file.

One process, no torch. Exit codes: 0 done; 1 `--check` found a count that cannot stand; 2 bad input.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click
import msgspec
from click.core import ParameterSource

from morimon.cli.paper import OneForm, columns, standard_output
from morimon.cli.printed_counts import Printed, read_printed
from morimon.ep.check import Check, check_exactly, check_statistically
from morimon.ep.config import (
    DTYPES,
    KERNEL_TYPES,
    ConfigError,
    EpConfig,
    default_combine_dtype,
    default_kernel_type,
)
from morimon.ep.predict import predict, routes
from morimon.ep.routing import ROUTINGS, Routing
from morimon.ep.topk_file import TopkFileError, read_topk_file
from morimon.model.config import JobConfig
from morimon.model.events import Phase
from morimon.report.bw_values import as_bw_values
from morimon.report.tokens import TokenReport, as_csv, as_object
from morimon.report.tokens_text import as_text, check_text
from morimon.runs.listing import RunsError

_QUIET_S = 1.0
_TOLD = (
    "num_nodes",
    "gpu_per_node",
    "num_tokens",
    "hidden",
    "num_experts",
    "kernel_type",
    "routing",
    "seed",
    "dtype",
    "combine_dtype",
)
_WORDS: dict[str, tuple[str, ...]] = {
    "kernel_type": KERNEL_TYPES,
    "routing": ROUTINGS,
    "dtype": DTYPES,
    "combine_dtype": DTYPES,
}
T = TypeVar("T")


class InputError(ValueError):
    """Options that do not fit; its text is one sentence for the user."""


@click.command("tokens", cls=OneForm, short_help="Predict who receives how much for a routing configuration.")
@click.option("--num-nodes", type=int, default=1, show_default=True)
@click.option("--gpu-per-node", type=int, default=8, show_default=True)
@click.option("--num-tokens", type=int, default=4096, show_default=True, help="Tokens of one rank.")
@click.option("--hidden", type=int, default=7168, show_default=True, help="Elements of one token.")
@click.option("--num-experts", type=int, default=256, show_default=True, help="Experts of the whole job.")
@click.option("--num-topk", type=int, default=8, show_default=True, help="Experts of one token.")
@click.option(
    "--kernel-type",
    type=click.Choice(KERNEL_TYPES),
    help="What counts as RDMA and what is on the wire.  [default: intranode on one node, else v1]",
)
@click.option(
    "--routing",
    type=click.Choice(ROUTINGS),
    default="deepep",
    show_default=True,
    help="deepep draws what DeepEP's test draws on a CPU.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Rank r draws with seed and r.")
@click.option(
    "--dtype", type=click.Choice(DTYPES), default="bf16", show_default=True, help="What dispatch carries."
)
@click.option(
    "--combine-dtype",
    type=click.Choice(DTYPES),
    help="What combine carries.  [default: fp32 after fp32, else bf16]",
)
@click.option(
    "--scale-dim", type=int, help="Scales beside each dispatched row.  [default: what the dtype needs]"
)
@click.option(
    "--scale-type-size", type=int, default=4, show_default=True, help="Bytes of a scale of --scale-dim."
)
@click.option("--combine-weights", is_flag=True, help="Combine sends the weights back, too.")
@click.option(
    "--topk-file",
    type=click.Path(path_type=Path),
    help="Real routing instead: .npy, .pt or .csv of [ranks × tokens, topk].",
)
@click.option("--dispatch-us", type=float, help="Duration of dispatch: adds its bandwidths.")
@click.option("--combine-us", type=float, help="Duration of combine: adds its bandwidths.")
@click.option(
    "--rdma-line-gbps",
    type=float,
    help="Line rate of a rank's network port in GB/s (10⁹ bytes/s), to judge bandwidths by.",
)
@click.option("--xgmi-line-gbps", type=float, help="The same for XGMI or NVLink.")
@click.option(
    "--check",
    "source",
    metavar="LOG|RUN",
    help="Hold the counts of this log file, run folder or run id against these; exit code 1 if they cannot be. "
    "Options that are not given are taken from what the job says of itself.",
)
@click.option(
    "--exact/--statistical",
    default=None,
    help="How --check compares.  [default: exactly, unless the routing is random and the log is not of the draw made here]",
)
@click.option("--matrix", is_flag=True, help="Show the tokens from every rank to every rank.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "csv", "bw-values"]),
    default="text",
    show_default=True,
    help="bw-values prints what print_bw_values.py prints.",
)
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
@click.option("--csv", "form", flag_value="csv", help="The same as --format csv.")
@standard_output()
def command(**options: Any) -> None:
    """Predict who receives how much for a routing configuration.

    For every rank: tokens received (own, same node, forwarded), RDMA tokens (algo, physical), rows on the wire, and
    their bytes in dispatch and combine; with --dispatch-us and --combine-us also the bandwidths.
    """
    try:
        report = _report(options)
    except (InputError, ConfigError, TopkFileError, RunsError) as error:
        _refuse(str(error))
    except OSError as error:
        _refuse(f"{error.filename}: {error.strerror}.")
    except MemoryError:
        _refuse("This machine's memory does not hold the routing of one rank: give fewer tokens.")
    _print(report, options["form"], matrix=options["matrix"])
    if report.check is not None and not report.check.ok:
        sys.exit(1)


def _refuse(sentence: str) -> NoReturn:
    from morimon.cli.headless import Refused

    raise Refused(sentence) from None


def _report(options: dict[str, Any]) -> TokenReport:
    printed = None
    if (source := options["source"]) is not None:
        printed = read_printed(source)
        if not printed.counts:
            raise InputError(
                f"{source}: no token counts in it, such as 'rank 8 recv 26757 tokens 8166 rdma tokens'."
            )
        if printed.job.cmd == "stress":
            raise InputError(
                f"{source}: a stress run sends another number of tokens in every round, which cannot be predicted."
            )
        options |= _told(printed.job)
    config = _config(options)
    file: Path | None = options["topk_file"]
    routing: Routing = options["routing"]
    if file is None:
        topk_idx: Iterable[Any] = routes(config, routing, options["seed"])
    else:
        topk_idx = read_topk_file(file, config.world_size)
        config = _fitted(config, topk_idx.shape)
    report = TokenReport(
        counts=predict(config, _with_progress(topk_idx, config.world_size)),
        routing=routing if file is None else str(file),
        seed=options["seed"] if file is None else None,
        duration_us=_durations(options),
        rdma_line_gbps=_positive("--rdma-line-gbps", options["rdma_line_gbps"]),
        xgmi_line_gbps=_positive("--xgmi-line-gbps", options["xgmi_line_gbps"]),
    )
    if printed is None:
        return report
    return msgspec.structs.replace(report, check=_check(report, printed, options["exact"]))


def _told(job: JobConfig) -> dict[str, Any]:
    """What the job says of itself, for the options that the command line leaves open."""
    told = {name: getattr(job, name) for name in _TOLD} | {"num_topk": job.topk}
    return {
        name: value
        for name, value in told.items()
        if value is not None and not _given(name) and value in _WORDS.get(name, (value,))
    }


def _given(option: str) -> bool:
    """Whether the command line names this option."""
    return click.get_current_context().get_parameter_source(option) is not ParameterSource.DEFAULT


def _config(options: dict[str, Any]) -> EpConfig:
    dtype = options["dtype"]
    return EpConfig(
        num_nodes=options["num_nodes"],
        gpu_per_node=options["gpu_per_node"],
        num_tokens=options["num_tokens"],
        hidden=options["hidden"],
        num_experts=options["num_experts"],
        topk=options["num_topk"],
        dtype=dtype,
        combine_dtype=options["combine_dtype"] or default_combine_dtype(dtype),
        kernel_type=options["kernel_type"] or default_kernel_type(options["num_nodes"]),
        scale_dim=options["scale_dim"],
        scale_type_size=options["scale_type_size"],
        combine_weights=options["combine_weights"],
    )


def _fitted(config: EpConfig, shape: tuple[int, ...]) -> EpConfig:
    """The configuration with the file's tokens and top-k, where the command line does not insist on others."""
    _, tokens, topk = shape
    for option, asked, found in (("num_tokens", config.num_tokens, tokens), ("num_topk", config.topk, topk)):
        if _given(option) and asked != found:
            raise InputError(f"--{option.replace('_', '-')} is {asked}, but the top-k file has {found}.")
    return msgspec.structs.replace(config, num_tokens=tokens, topk=topk)


def _durations(options: dict[str, Any]) -> dict[Phase, float]:
    given: list[tuple[Phase, str, float | None]] = [
        ("dispatch", "--dispatch-us", options["dispatch_us"]),
        ("combine", "--combine-us", options["combine_us"]),
    ]
    return {
        phase: duration for phase, name, value in given if (duration := _positive(name, value)) is not None
    }


def _positive(option: str, value: float | None) -> float | None:
    if value is not None and not 0 < value < float("inf"):
        raise InputError(f"{option} must be above 0, not {value:g}.")
    return value


def _with_progress(items: Iterable[T], length: int) -> Iterator[T]:
    """The items, with a progress bar on standard error once they have taken a second, if that is a terminal."""
    started = time.monotonic()
    with ExitStack() as stack:
        bar = None
        for done, item in enumerate(items, start=1):
            if bar is None and sys.stderr.isatty() and time.monotonic() - started > _QUIET_S:
                bar = stack.enter_context(
                    click.progressbar(length=length, label="routing ranks", file=sys.stderr)
                )
                bar.update(done - 1)
            yield item
            if bar is not None:
                bar.update(1)


def _check(report: TokenReport, printed: Printed, exact: bool | None) -> Check:
    """An exact check wherever the routing is known.

    Random routing is known only if the job drew it as we do, and says its seed (our own job does; mori's draws on its
    GPU's generator): where nobody says, a log that is not equal throughout is held against the statistical band.
    """
    job = printed.job
    if exact is None and (report.routing != "random" or (job.routing == "random" and job.seed is not None)):
        exact = True
    if exact is not False:
        check = check_exactly(report.counts, printed.counts)
        if exact or check.ok:
            return check
    return check_statistically(report.config, printed.counts)


def _print(report: TokenReport, form: str, *, matrix: bool) -> None:
    match form:
        case "json":
            text = msgspec.json.encode(as_object(report)).decode() + "\n"
        case "csv":
            text = as_csv(report)
        case "bw-values":
            text = as_bw_values(report.counts)
        case _:
            text = as_text(report, columns(least=0), matrix=matrix)
    click.echo(text, nl=False)
    if report.check is not None and form in ("csv", "bw-values"):
        click.echo(check_text(report.check, report.config), err=True)
