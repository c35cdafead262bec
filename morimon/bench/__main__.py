"""One rank of the job: `python -m torch.distributed.run --standalone --nproc-per-node N -m morimon.bench [options]`."""

from __future__ import annotations

import os
import sys

from morimon.bench.options import OptionsError, parse


def main(argv: list[str]) -> int:
    """Run this rank.

    0 where all went well, 1 for a failed verification or a trace that cannot be written, 2 for options that cannot be.
    """
    try:
        world_size = int(os.environ.get("WORLD_SIZE", "1"))
        options = parse(argv, world_size)
        if "RANK" not in os.environ:
            raise OptionsError(
                "Ranks are started by torchrun: "
                "python -m torch.distributed.run --standalone --nproc-per-node 8 -m morimon.bench"
            )
        if world_size != int(os.environ.get("LOCAL_WORLD_SIZE", world_size)):
            raise OptionsError(
                f"The {options.ep.kernel_type} job runs on one node: start torchrun with --nnodes 1."
            )
    except OptionsError as error:
        if os.environ.get("RANK", "0") == "0":  # once is enough
            print(f"morimon.bench: error: {error}", file=sys.stderr)
        return 2

    # Only now, so that bad options are refused without the seconds that torch takes.
    import torch

    from morimon.bench.gloo import GlooBackend
    from morimon.bench.job import Job
    from morimon.bench.spans import Spans
    from morimon.bench.verify import VerificationError
    from morimon.probe import Probe
    from morimon.trace.model import TraceError

    torch.set_num_threads(1)  # ranks share the cores
    probe = Probe()
    probe.hello()
    spans = Spans(is_kept=options.cmd == "profile")
    backend = GlooBackend(options, spans)
    say("init process group done")
    try:
        Job(options, backend, probe, say, spans).run()
    except (VerificationError, TraceError) as error:
        print(f"[rank{backend.rank}]: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return 1
    backend.close()
    probe.close()
    return 0


def say(line: str) -> None:
    """Print a line so that it leaves now, and whole, whoever else prints."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
