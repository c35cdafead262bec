"""`morimon tokens` against the way of print_bw_values.py: one gloo process a rank, torch drawing and counting.

    python benchmarks/bench_tokens.py [--pairs 3] [--num-nodes 2 --gpu-per-node 8 --num-tokens 4096 …]

Both sides run alternately as whole processes; their counts must be equal, and the medians and their ratio are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SIZES = {
    "num_nodes": 2,
    "gpu_per_node": 8,
    "num_tokens": 4096,
    "hidden": 7168,
    "num_experts": 256,
    "num_topk": 8,
}


def gloo_rank(rank: int, sizes: dict[str, int], port: int) -> None:
    """Draw, count, add up over the ranks and print, as print_bw_values.py does in each of its processes."""
    import torch
    import torch.distributed as dist

    nodes, gpus, experts = sizes["num_nodes"], sizes["gpu_per_node"], sizes["num_experts"]
    tokens, world = sizes["num_tokens"], sizes["num_nodes"] * sizes["gpu_per_node"]
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", world_size=world, rank=rank)
    torch.manual_seed(rank)
    torch.randn((tokens, sizes["hidden"]), dtype=torch.bfloat16)
    scores = torch.randn((tokens, experts)).abs() + 1
    grouped = scores.view(tokens, nodes, -1)
    best_nodes = torch.topk(grouped.amax(-1), min(nodes, 4), sorted=False).indices
    reached = torch.zeros((tokens, nodes), dtype=torch.bool).scatter_(1, best_nodes, True)
    scores = (grouped * reached.unsqueeze(-1)).view(tokens, experts)
    topk_idx = torch.topk(scores, sizes["num_topk"], sorted=False).indices
    to_rank = torch.zeros((tokens, world), dtype=torch.bool).scatter_(1, topk_idx // (experts // world), True)
    to_node = to_rank.view(tokens, nodes, gpus).any(-1).sum(0)
    received = to_rank.sum(0)
    dist.all_reduce(received)
    mine = {
        "rank": rank,
        "recv_tokens": int(received[rank]),
        "rdma_tokens_algo": int(to_node.sum()),
        "rdma_tokens_physical": int(to_node.sum() - to_node[rank // gpus]),
    }
    dist.barrier()
    for turn in range(world):
        if turn == rank:
            print(json.dumps(mine), flush=True)
        dist.barrier()
    dist.destroy_process_group()


def gloo_job(sizes: dict[str, int]) -> None:
    """All ranks, one process each."""
    from torch.multiprocessing.spawn import spawn

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = sizes["num_nodes"] * sizes["gpu_per_node"]
    spawn(gloo_rank, args=(sizes, port), nprocs=ranks)  # type: ignore[no-untyped-call]  # torch gives none


def timed(command: list[str]) -> tuple[float, str]:
    start = time.perf_counter()
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    return time.perf_counter() - start, done.stdout


def counts(ranks: list[dict[str, Any]]) -> list[tuple[int, int, int, int]]:
    return [(r["rank"], r["recv_tokens"], r["rdma_tokens_algo"], r["rdma_tokens_physical"]) for r in ranks]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, value in SIZES.items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=value)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--gloo-side", action="store_true", help=argparse.SUPPRESS)
    arguments = vars(parser.parse_args())
    pairs, gloo_side = arguments.pop("pairs"), arguments.pop("gloo_side")
    if gloo_side:
        gloo_job(arguments)
        return
    options = [f"--{name.replace('_', '-')}={value}" for name, value in arguments.items()]
    sides: dict[str, list[float]] = {"morimon tokens": [], "one gloo process a rank": []}
    for _ in range(pairs):
        ours_s, text = timed(
            [sys.executable, "-m", "morimon", "tokens", "--json", "--kernel-type=v1", *options]
        )
        theirs_s, lines = timed([sys.executable, __file__, "--gloo-side", *options])
        if counts(json.loads(text)["ranks"]) != counts([json.loads(line) for line in lines.splitlines()]):
            sys.exit("The two sides count differently.")
        sides["morimon tokens"].append(ours_s)
        sides["one gloo process a rank"].append(theirs_s)
    print(f"{' '.join(options)}, equal counts, medians of {pairs} alternating runs")
    for name, seconds in sides.items():
        print(f"{name:<26}{statistics.median(seconds):8.2f} s   ({min(seconds):.2f}…{max(seconds):.2f})")
    ours, theirs = (statistics.median(seconds) for seconds in sides.values())
    print(f"{'ratio':<26}{theirs / ours:8.1f} ×   (budget: at least 10)")
    print("repeat:", shlex.join([Path(sys.executable).name, *sys.argv]))


if __name__ == "__main__":
    main()
