"""What a round must give, worked out plainly by every rank from what all ranks feed in; nothing here has travelled."""

from __future__ import annotations

import torch

from morimon.bench.data import Batch, batch, destinations, weight_on
from morimon.bench.options import Options
from morimon.bench.rows import TORCH_DTYPES, Rows, encode


class VerificationError(Exception):
    """A round gave something else than it must; the text names rank, round, phase and token."""


def expected_rows(options: Options, round_: int, rank: int) -> Rows:
    """The rows that `rank` must receive, by source."""
    tokens, topk_idx, weights, source = [], [], [], []
    for sender in range(options.ep.world_size):
        sent = batch(options, round_, sender)
        here = destinations(options, sent.topk_idx)[:, rank]
        tokens.append(sent.tokens[here])
        topk_idx.append(sent.topk_idx[here])
        weights.append(sent.weights[here])
        source.append(here.nonzero()[:, 0] + sender * options.ep.num_tokens)
    due = Batch(torch.cat(tokens), torch.cat(topk_idx), torch.cat(weights))
    return encode(options.ep, due, torch.cat(source))


def verify_dispatch(options: Options, round_: int, rank: int, rows: Rows) -> None:
    """Raise VerificationError unless `rows` are, bit for bit and in whatever order, what `rank` must receive."""
    due = expected_rows(options, round_, rank)
    where = f"rank {rank}, round {round_}, dispatch"
    if rows.source.shape != due.source.shape:
        raise VerificationError(
            f"{where}: expected token num {due.source.shape[0]} got {rows.source.shape[0]}"
        )
    rows = rows.select(rows.source.argsort())
    for name, got, want in zip(
        ("source", "elements", "scales", "weights", "experts"),
        (rows.source, rows.elements, rows.scales, rows.weights, rows.topk_idx),
        (due.source, due.elements, due.scales, due.weights, due.topk_idx),
        strict=True,
    ):
        wrong = (_bits(got) != _bits(want)).flatten(1).any(dim=1)
        if wrong.any():
            row = int(wrong.nonzero()[0])
            source, token = divmod(int(due.source[row]), options.ep.num_tokens)
            raise VerificationError(
                f"{where}: token {token} of rank {source} has wrong {name}, "
                f"as have {int(wrong.sum())} of {len(wrong)} tokens"
            )


def expected_sums(options: Options, round_: int, rank: int) -> torch.Tensor:
    """What the tokens of `rank` must come back as: the sum over their destinations, each in the combine dtype."""
    mine = batch(options, round_, rank)
    dtype = TORCH_DTYPES[options.ep.combine_dtype]
    values = encode(options.ep, mine, torch.arange(mine.num_tokens)).values()
    goes = destinations(options, mine.topk_idx)
    sums = torch.zeros_like(values)
    for destination in range(options.ep.world_size):
        weight = weight_on(options, mine.topk_idx, mine.weights, destination) * goes[:, destination]
        sums += (values * weight[:, None]).to(dtype).to(torch.float32)
    return sums.to(dtype)


def verify_combine(options: Options, round_: int, rank: int, tokens: torch.Tensor) -> None:
    """Raise VerificationError unless `tokens` are exactly the sums that `rank` must get back."""
    due = expected_sums(options, round_, rank)
    where = f"rank {rank}, round {round_}, combine"
    if tokens.shape != due.shape:
        raise VerificationError(f"{where}: expected token num {due.shape[0]} got {tokens.shape[0]}")
    wrong = tokens != due
    if wrong.any():
        token, element = (int(place) for place in wrong.nonzero()[0])
        raise VerificationError(
            f"{where}: token {token} is {float(tokens[token, element]):g} instead of "
            f"{float(due[token, element]):g} at element {element}, "
            f"and {int(wrong.any(dim=1).sum())} of {len(due)} tokens are wrong"
        )


def _bits(column: torch.Tensor) -> torch.Tensor:
    return (column[:, None] if column.dim() == 1 else column).contiguous().view(torch.uint8)
