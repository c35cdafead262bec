"""The lines on top of every screen: which job, how it is configured, how far it is, and what went wrong first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from morimon.draw.charts import progress
from morimon.draw.glyphs import Glyphs
from morimon.draw.line import Line, Role, Run, merged, width_of
from morimon.draw.page import Frame, fitted
from morimon.draw.text import cells, clipped, sanitised
from morimon.draw.units import duration, tokens
from morimon.model.config import JobConfig
from morimon.model.events import Failure
from morimon.runs.command import short_command
from morimon.store.snapshot import RunSnapshot

_STATE_ROLES: dict[str, Role] = {
    "starting": "dim",
    "running": "ok",
    "stopping": "warning",
    "finished": "ok",
    "failed": "failed",
    "stopped": "warning",
    "lost": "failed",
}


@dataclass(frozen=True, slots=True)
class Viewing:
    """How the person looks at the run: now or in replay, moving or paused, and how far behind."""

    mode: Literal["live", "attach", "replay", "watch"] = "live"
    paused: bool = False
    behind_s: float = 0.0
    """Paused: how much the run has moved on since."""
    speed: float = 1.0
    position_s: float = 0.0
    length_s: float = 0.0
    """Replay: where in the recording, and how long it is."""
    loading: float | None = None
    """Share of the record that has been read, while there is much of it left."""
    elapsed_s: float | None = None
    """Time since the start by the clock on the wall, which goes on where a job is silent; None: as the record has it."""


def configuration(config: JobConfig, glyphs: Glyphs) -> list[str]:
    """What the job says of itself, most important first, one short phrase each; nothing for what it does not say."""
    name = _words(" ", config.name, config.kernel_type)
    ranks = None
    if config.world_size:
        nodes, gpus = config.num_nodes, config.gpu_per_node
        ranks = (
            f"{nodes}{glyphs.times}{gpus} ranks"
            if nodes and gpus and nodes > 1
            else f"{config.world_size} ranks"
        )
    sizes = " ".join(
        word
        for word in (
            tokens(config.num_tokens, glyphs) + " tok" if config.num_tokens else "",
            f"{glyphs.times} {config.hidden}" if config.hidden else "",
            _words("", config.dtype),
        )
        if word
    )
    experts = f"top-{config.topk}" if config.topk else ""
    if experts and config.num_experts:
        experts += f" of {config.num_experts}"
    routing = f"{_words('', config.routing)} routing" if config.routing else ""
    return [phrase for phrase in (name, ranks, sizes, experts, routing) if phrase]


def measured_on(config: JobConfig) -> str:
    """What the figures were measured on, `gloo/CPU`: it stands beside them wherever they are shown; else nothing."""
    return _words("/", config.backend, config.platform)


def _words(between: str, *words: str | None) -> str:
    """The job's own words that it told, made safe."""
    return between.join(sanitised(word) for word in words if word)


def state_lines(snapshot: RunSnapshot, viewing: Viewing, frame: Frame) -> tuple[Line, ...]:
    """The state of the job in one line, or in two where there are fewer than 110 columns; then its failure, if any.

    What the figures were measured on gives way to nothing.
    """
    glyphs = frame.glyphs
    phrases = configuration(snapshot.config, glyphs) or [_command(snapshot)]
    state = [*_platform(snapshot.config, frame), *_state(snapshot, viewing, glyphs)]
    moving = _moving(snapshot, viewing, frame)
    if frame.is_narrow:
        name = [Run(" "), Run(clipped(phrases[0], frame.width // 2, glyphs.ellipsis), "title")]
        lines = [
            _ends(name, state, frame.width),
            _ends(
                [Run(" "), Run(_joined(phrases[1:], frame.width - width_of(moving) - 3, glyphs), "dim")],
                moving,
                frame.width,
            ),
        ]
    else:
        right = merged([*state, Run("  "), *moving])
        room = frame.width - width_of(right) - 4
        name_text = clipped(phrases[0], room, glyphs.ellipsis)
        rest = _joined(phrases[1:], room - cells(name_text) - 3, glyphs)
        dot = f" {glyphs.dot} " if rest else ""
        lines = [_ends([Run(" "), Run(name_text, "title"), Run(dot + rest, "dim")], right, frame.width)]
    if snapshot.failure is not None:
        lines.append(frame.fit(failure_line(snapshot.failure, glyphs)))
    return tuple(lines)


def failure_line(failure: Failure, glyphs: Glyphs) -> Line:
    """The first cause in one line: which rank, why, and how its process ended."""
    who = "job" if failure.rank is None else f"rank {failure.rank}"
    how = failure.signal or (f"exit code {failure.exitcode}" if failure.exitcode is not None else "")
    cause = sanitised(failure.cause)
    how = f" ({how})" if how and how not in cause else ""
    return (Run(f" {glyphs.failed} {who} failed first: {cause}{how}", "failed"),)


def _command(snapshot: RunSnapshot) -> str:
    if not snapshot.command:
        return "a job that has not told its name yet"
    return sanitised(short_command(snapshot.command))


def _platform(config: JobConfig, frame: Frame) -> list[Run]:
    """What the figures were measured on; the platform alone where the backend's name is long."""
    words, room = measured_on(config), frame.width // 4
    if cells(words) > room:
        words = clipped(_words("", config.platform or config.backend), room, frame.glyphs.ellipsis)
    return [Run(words, "title"), Run("  ")] if words else []


def _state(snapshot: RunSnapshot, viewing: Viewing, glyphs: Glyphs) -> list[Run]:
    """What became of the job; nothing while its record has not been read that far."""
    state = snapshot.state
    if state == "starting" and viewing.loading is not None:
        return []
    marks = {
        "starting": glyphs.waiting,
        "finished": glyphs.done,
        "failed": glyphs.failed,
        "lost": glyphs.failed,
    }
    text = f"{marks.get(state, glyphs.running)} {state}"
    if state == "failed" and snapshot.exitcode is not None:
        text += f" ({snapshot.exitcode})"
    return [Run(text, _STATE_ROLES[state])]


def _moving(snapshot: RunSnapshot, viewing: Viewing, frame: Frame) -> Line:
    """Progress, ETA and clock; or, where the view is paused, how far behind it is."""
    glyphs = frame.glyphs
    if viewing.loading is not None:
        return (Run(f"reading the record  {viewing.loading * 100:3.0f} %", "dim"),)
    if viewing.paused and viewing.mode != "replay":
        text = f"{glyphs.paused} paused, {duration(viewing.behind_s)} behind"
        return (Run(f"{text}  ", "warning"), Run(duration(snapshot.elapsed_s), "dim"))
    runs = []
    done, total = snapshot.progress_done, snapshot.progress_total
    if done is not None and total:
        share = min(done / total, 1.0)
        runs += [Run(f"{done}/{total} "), *progress(share, 14, glyphs), Run(f" {share * 100:3.0f} %  ")]
    elif done is not None:
        runs.append(Run(f"{tokens(done, glyphs)} done  "))
    if snapshot.eta_s is not None and snapshot.state == "running" and done != total:
        runs.append(Run(f"{duration(snapshot.eta_s)} left  "))
    elapsed_s = (
        snapshot.elapsed_s if viewing.elapsed_s is None else max(viewing.elapsed_s, snapshot.elapsed_s)
    )
    runs.append(Run(duration(elapsed_s), "dim"))
    return merged(runs)


def replay_line(viewing: Viewing, frame: Frame) -> Line:
    """Where a replay stands: its state, speed, and a bar over the whole recording."""
    glyphs = frame.glyphs
    mark = glyphs.paused if viewing.paused else glyphs.play
    left = f" {mark} replay {viewing.speed:g}{glyphs.times}  {duration(viewing.position_s)} "
    right = f" {duration(viewing.length_s)} "
    share = viewing.position_s / viewing.length_s if viewing.length_s > 0 else 1.0
    bar = progress(min(share, 1.0), max(frame.width - cells(left) - cells(right), 0), glyphs, "key")
    return merged([Run(left, "warning" if viewing.paused else "text"), *bar, Run(right, "dim")])


def _joined(phrases: Sequence[str], room: int, glyphs: Glyphs) -> str:
    """As many phrases as have room, least important ones left out."""
    text = ""
    for phrase in phrases:
        longer = f"{text} {glyphs.dot} {phrase}" if text else phrase
        if cells(longer) > room:
            break
        text = longer
    return text


def _ends(left: Sequence[Run], right: Sequence[Run], width: int) -> Line:
    """One line with a left and a right end; the left one gives way."""
    right_width = sum(run.width for run in right) + 1
    kept = fitted(tuple(left), max(width - right_width - 1, 0))
    return merged([*kept, Run(" " * max(width - width_of(kept) - right_width, 1)), *right, Run(" ")])
