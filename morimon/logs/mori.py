"""What ROCm/mori's benchmarks and tests print: internode, intranode and the small ones, of all their times."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from morimon.logs.dialect import LIST, WHOLE, Meant, Rule, Source, numbers, rule
from morimon.logs.rounds import Rounds
from morimon.model.events import Failure, Phase, PhaseDone

_DTYPES = {"bfloat16": "bf16", "float32": "fp32", "bf16": "bf16", "fp32": "fp32"}


def dtype_of(name: str) -> str:
    """Our word for torch's or mori's name of an element type; the name itself where we have none."""
    if name.startswith(("float8", "fp8")):
        return "fp8"
    if name.startswith(("float4", "fp4")):
        return "fp4"
    return _DTYPES.get(name, name)


def _phase(match: re.Match[str]) -> Phase:
    return "dispatch" if match["phase"].lower() == "dispatch" else "combine"


def _tokens(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    algo = match.groupdict().get("algo")
    yield source.tokens(int(match["rank"]), int(match["recv"]), int(algo) if algo else None)


def _wrong(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    del source
    yield Failure(rank=int(match["rank"]), cause=match[0])


def _header(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    return source.remember(Rounds).header(int(match["round"]), source)


def _duration(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    return source.remember(Rounds).duration(source, _phase(match), numbers(match["us"]))


def _bandwidth(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    phase = _phase(match) if match["phase"] else None
    return source.remember(Rounds).bandwidth(
        source, phase, numbers(match["gbps"]), rdma=match["rdma"] is not None
    )


def _one_line(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    return source.remember(Rounds).whole(source, _phase(match), numbers(match["us"]), numbers(match["gbps"]))


def _heading(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    source.remember(Rounds).phase = None if match["what"] == "End-to-end" else _phase_named(match["what"])
    return ()


def _phase_named(word: str) -> Phase:
    return "dispatch" if word == "Dispatch" else "combine"


def _intranode_round(source: Source, match: re.Match[str]) -> Iterator[PhaseDone]:
    """Figures of eight ranks under `Dispatch result:` or `Combine result:`; here round 0 counts."""
    phase = source.remember(Rounds).phase
    if phase is None:
        return
    bandwidths = numbers(match["gbps"])
    for rank, latency_us in enumerate(numbers(match["us"])):
        yield PhaseDone(
            t_ns=source.t_ns,
            restart=source.restart,
            rank=rank,
            round=int(match["round"]),
            phase=phase,
            latency_us=latency_us,
            xgmi_gbps=bandwidths[rank] if rank < len(bandwidths) else None,
            source="log",
        )


def _banner(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    """`key: value` pairs, whose number has grown over time."""
    told = dict(pair.partition(": ")[::2] for pair in match["pairs"].split(", "))

    def whole(key: str) -> int | None:
        value = told.get(key, "")
        return int(value) if re.fullmatch(WHOLE, value) else None

    world_size, per_rank = whole("world_size(EP)") or whole("world_size"), whole("num_experts_per_rank")
    yield source.configured(
        cmd=match["cmd"],
        kernel_type="intranode",
        num_nodes=1,
        world_size=world_size,
        gpu_per_node=world_size,
        num_tokens=whole("max_tokens_per_rank"),
        hidden=whole("hidden_dim"),
        topk=whole("num_experts_per_token"),
        num_experts=world_size * per_rank if world_size and per_rank else None,
        dtype=dtype_of(told["dispatch_dtype"]) if "dispatch_dtype" in told else None,
        combine_dtype=dtype_of(told["combine_dtype"]) if "combine_dtype" in told else None,
    )


def _world(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    yield source.configured(world_size=int(match["world"]))


def _title(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    field = "dtype" if match["what"] == "Dispatch" else "combine_dtype"
    yield source.configured(**{field: dtype_of(match["dtype"])})


def _test_round(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    yield source.progress(int(match["done"]), None, "sentinel rounds" if match["sentinel"] else "test rounds")


def _tuning(source: Source, match: re.Match[str]) -> Iterable[Meant]:
    yield source.progress(int(match["done"]), int(match["total"]), f"tuning {match['what']}")


RULES: tuple[Rule, ...] = (
    rule(
        " recv ",
        rf"rank (?P<rank>\d{{1,6}}) recv (?P<recv>{WHOLE}) tokens(?: (?P<algo>{WHOLE}) rdma tokens)?",
        _tokens,
    ),
    rule(
        " received ",
        rf"rank (?P<rank>\d{{1,6}}) got {WHOLE} tokens received (?P<recv>{WHOLE}) tokens",
        _tokens,
    ),
    rule(
        "received",
        rf"Rank (?P<rank>\d{{1,6}}): sent {WHOLE} tokens, received (?P<recv>{WHOLE})",
        _tokens,
    ),
    rule(
        "expected token num",
        rf"rank (?P<rank>\d{{1,6}}) expected token num {WHOLE} got {WHOLE}",
        _wrong,
        level="error",
    ),
    rule("Weight mismatch", r"Weight mismatch for token \d{1,15}", level="error"),
    rule("error times:", r"rank: {1,2}(?P<rank>\d{1,6}) error times: {1,2}0\b"),
    rule(
        "error times:",
        r"rank: {1,2}(?P<rank>\d{1,6}) error times: {1,2}[1-9]\d{0,9} appear round: {1,2}[^\n]{0,200}",
        _wrong,
        level="error",
    ),
    rule("I'm pe ", r"I'm pe (?P<rank>\d{1,6}) in (?P<world>\d{1,6}) pes", _world),
    # internode figures, newest form first
    rule("Round ", r"(?<!WarmUp )\bRound (?P<round>\d{1,9})(?!\d| begin| gen| duration\()", _header),
    rule(
        "duration [",
        rf"(?P<phase>dispatch|combine) {{1,2}}duration (?P<us>{LIST})(?! bandwidth)",
        _duration,
        since="2025-07-30",
    ),
    rule(
        "bandwidth [",
        rf"(?:(?P<phase>dispatch|combine) {{1,2}})?(?P<rdma>rdma )?bandwidth (?P<gbps>{LIST})",
        _bandwidth,
        since="2025-10-27",
    ),
    rule(
        "duration [",
        rf"(?P<phase>dispatch|combine) {{1,2}}duration (?P<us>{LIST}) bandwidth (?P<gbps>{LIST})",
        _one_line,
        since="2025-06-30",
        until="2025-10-27",
    ),
    rule(
        "Performance (",
        r"(?P<what>Dispatch|Combine) Performance \((?P<dtype>\w{1,40})\)",
        _title,
        since="2025-11-04",
    ),
    # intranode figures
    rule(
        "Running ", r"Running (?P<cmd>\w{1,20}) with (?P<pairs>max_tokens_per_rank: [^\n]{0,4000})", _banner
    ),
    rule(" result:", r"(?P<what>Dispatch|Combine|End-to-end) result:", _heading),
    rule(
        "duration(us) [",
        rf"Round (?P<round>\d{{1,9}}) duration\(us\) (?P<us>{LIST}) bandwidth\(GB/s\) (?P<gbps>{LIST})",
        _intranode_round,
        since="2025-07-07",
    ),
    # tests and tuning
    rule(" begin", r"(?<!WarmUp )(?P<sentinel>Sentinel )?\b[Rr]ound (?P<done>\d{1,9}) begin", _test_round),
    rule(
        "block_num=",
        r"\[(?P<done>\d{1,9})/(?P<total>\d{1,9})\] (?P<what>block_num=[\w=, ]{1,80})",
        _tuning,
    ),
    # the library's own log lines
    rule("select ", r"rank (?P<rank>\d{1,6}) rankInNode \d{1,6} select "),
    rule(
        "select no device",
        r"rank (?P<rank>\d{1,6}) rankInNode \d{1,6} select no device",
        level="warning",
    ),
    rule("RDMA devices:", r"rank (?P<rank>\d{1,6}) RDMA devices:"),
    rule("] [", r"\] \[(?:error|critical)\] ", level="error"),
    rule("] [", r"\] \[warning\] ", level="warning"),
    # EPv2's checks
    rule("CHECK FAIL", r"CHECK FAIL \([^)\n]{0,200}\)", level="error"),
    rule(": FAIL", r"# [A-Z][A-Z-]{1,40}[^\n#]{0,80}: FAIL\b", level="error"),
    rule("TIMEOUT", r"!!! TIMEOUT \(", level="error"),
)
