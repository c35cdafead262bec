"""Record lines to events and back: newline-delimited JSON."""

from __future__ import annotations

import msgspec

from morimon.model.events import RecordEvent

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[RecordEvent] = msgspec.json.Decoder(RecordEvent)


def encode(event: RecordEvent) -> bytes:
    """One record line, newline included."""
    return _encoder.encode(event) + b"\n"


def decode(line: bytes) -> RecordEvent:
    """The event of one line (with or without its newline); msgspec.DecodeError where it is none."""
    return _decoder.decode(line)
