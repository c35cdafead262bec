"""Traces: read, pair, iterations, lanes, statistics, merge, write. Pure: no terminal, no threads, no watching.

model.py says what a loaded trace is; nothing is re-exported here, so that each use pays for its own imports only.

Read and analyse
- `load.load(path, progress, cancelled) -> Trace`: any Chrome trace, in pieces; raises TraceError and nothing else.
- `whole.wholeness(path) -> "whole" | "growing" | "empty" | "not a trace"`: cheap, for a watcher.
- `names.file_name(path) -> FileName`: rank and time stamp as the name tells them.

Look at one (all derive from a Trace, none changes it)
- `lanes.timeline(trace, process, number) -> Timeline`: bars, sub-rows and concurrent regions of one iteration.
- `lanes.warps(trace, process, number, slots) -> Warps`: a lane opened into its warps, the latest on top.
- `lanes.rows(start_ns, end_ns)`: sub-row for every span, so that spans of a row do not overlap.
- `stats.slot_table(trace, process, number) -> tuple[SlotRow, ...]`, `stats.thread_table(...) -> ThreadTable`: statistics
  of one process or all (None), of one iteration or all (None); `stats.slow_warps(...)`: the warps that stand out.
- `summary.summary(trace) -> dict`: the JSON object of one file.

Across processes
- `handover.save(trace, folder)`, `handover.open_saved(folder) -> Trace`: .npy columns, memory-mapped by the reader;
  `python -m morimon.trace FILE OUTDIR` does the first in a process of its own, with progress on standard output.
- `merge.align(traces) -> Alignment`, `merge.write_merged(traces, path) -> Alignment`: one Perfetto file, pid = rank.
- `write.TraceWriter`: writes a trace that says its rank, configuration and clock.
"""
