"""A job of two nodes, on one host: each node's hub shows its own ranks under their global numbers."""

from __future__ import annotations

import socket

import pytest

from morimon.model.events import LogLines, RankProcess
from tests.support.jobs import bench

pytestmark = [pytest.mark.e2e, pytest.mark.torch]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port: int = probe.getsockname()[1]
        return port


def test_each_node_names_its_ranks_by_their_global_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    rendezvous = f"--rdzv-endpoint=localhost:{free_port()}"
    options = ("--nnodes=2", rendezvous, "--rdzv-backend=c10d", "--rdzv-id=7")
    with bench(monkeypatch.setenv) as made:
        nodes = [made.start(options=options, real_torchrun=True) for _ in range(2)]
        for node in nodes:
            node.wait_for(RankProcess, 2)
            node.wait_for(LogLines, 2)
            node.go()
        ends = [node.end() for node in nodes]
        found = [{(one.rank, one.local_rank, one.node) for one in node.all_of(RankProcess)} for node in nodes]
        assert sorted(map(sorted, found)) == [[(0, 0, 0), (1, 1, 0)], [(2, 0, 1), (3, 1, 1)]]
        for node, ranks in zip(nodes, found, strict=True):
            printed = {one.rank: one.file for one in node.all_of(LogLines) if one.stream == "stdout"}
            assert printed.keys() == {rank for rank, _, _ in ranks}
            for rank, file in printed.items():
                assert f"rank {rank} up" in (node.folder.path / file).read_text()
        assert [end.outcome for end in ends] == ["finished", "finished"]
        for node in nodes:
            node.assert_nothing_left()
