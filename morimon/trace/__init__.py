"""Traces: read, pair, iterations, lanes, statistics, merge, write. Pure: no terminal, no threads, no watching.

Read and analyse
- `load(path, progress, cancelled) -> Trace`: any Chrome trace, in pieces; raises TraceError and nothing else.
- `wholeness(path) -> "whole" | "growing" | "empty" | "not a trace"`: cheap, for a watcher.
- `file_name(path) -> FileName`: rank and time stamp as the name tells them.

Look at one (all derive from a Trace, none changes it)
- `timeline(trace, process, number) -> Timeline`: bars, sub-rows and concurrent regions of one iteration.
- `slot_table(trace, process, number) -> tuple[SlotRow, ...]`, `thread_table(trace, process, number) -> ThreadTable`:
  statistics of one process or all (None), of one iteration or all (None).
- `rows(start_ns, end_ns)`: sub-row for every span, so that spans of a row do not overlap (a lane opened into warps).
- `summary(trace) -> dict`: the JSON object of one file.

Across processes
- `save(trace, folder)`, `open_saved(folder) -> Trace`: hand-over as .npy columns, memory-mapped by the reader;
  `python -m morimon.trace FILE OUTDIR` does the first in a process of its own, with progress on standard output.
- `align(traces) -> Alignment`, `write_merged(traces, path) -> Alignment`: one Perfetto file, pid = rank.
- `TraceWriter`: writes a trace that says its rank, configuration and clock.
"""
