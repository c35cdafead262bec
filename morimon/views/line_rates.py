"""What the links of a rank can carry, where somebody said so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Link: TypeAlias = Literal["rdma", "xgmi"]


@dataclass(frozen=True, slots=True)
class LineRates:
    """Line rates of one rank's network port and of its XGMI or NVLink, 10⁹ bytes/s; None where nobody told."""

    rdma_gbps: float | None = None
    xgmi_gbps: float | None = None

    def of(self, link: Link) -> float | None:
        """The rate of one of the two."""
        return self.rdma_gbps if link == "rdma" else self.xgmi_gbps


UNKNOWN_RATES = LineRates()
