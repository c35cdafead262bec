"""morimon: a terminal dashboard for expert-parallel dispatch/combine kernels."""

from __future__ import annotations

__version__ = "0.1.0"
