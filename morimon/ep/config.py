"""What an expert-parallel job is configured with, checked once, so that the arithmetic may rely on it.

Ranks are numbered node by node: rank = node × gpu_per_node + local_rank.
Experts are numbered rank by rank: expert e lives on rank e // experts_per_rank.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

KernelType = Literal["intranode", "v1", "v1_ll", "async_ll"]
Dtype = Literal["bf16", "fp32", "fp8", "fp4"]

KERNEL_TYPES: tuple[KernelType, ...] = get_args(KernelType)
DTYPES: tuple[Dtype, ...] = get_args(Dtype)


class ConfigError(ValueError):
    """A configuration that no job can have; its text is one sentence for the user."""


class EpConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Shape of one expert-parallel job.

    `num_tokens` is the number of tokens of one rank, `num_experts` that of the whole job.
    `dtype` is what dispatch carries and `combine_dtype` what combine carries.
    `scale_dim` scales of `scale_type_size` bytes travel with each dispatched row (mori's names); None means the scales
    that the dtype itself needs: one fp32 for 128 elements of fp8 (DeepEP), one byte for 32 of fp4 (OCP MX), else none.
    `combine_weights` says whether combine sends the weights back, too.
    Raises ConfigError where the figures do not fit together.
    """

    num_nodes: int = 1
    gpu_per_node: int = 8
    num_tokens: int = 4096
    hidden: int = 7168
    num_experts: int = 256
    topk: int = 8
    dtype: Dtype = "bf16"
    combine_dtype: Dtype = "bf16"
    kernel_type: KernelType = "intranode"
    scale_dim: int | None = None
    scale_type_size: int = 4
    combine_weights: bool = False

    def __post_init__(self) -> None:
        for field, what in _COUNTED.items():
            value = getattr(self, field)
            if value < 1:
                raise ConfigError(f"{what} must be at least 1, not {value}.")
        if (self.scale_dim or 0) < 0 or self.scale_type_size < 0:
            raise ConfigError("The number of scales and their size must not be negative.")
        if self.num_experts % self.world_size:
            raise ConfigError(
                f"{self.num_experts} experts cannot be divided among {self.world_size} ranks "
                f"({self.num_nodes} × {self.gpu_per_node}): choose a multiple of {self.world_size}."
            )
        if self.topk > self.num_experts:
            raise ConfigError(f"top-k of {self.topk} is more than there are experts ({self.num_experts}).")
        for name in (self.dtype, self.combine_dtype):
            if name not in DTYPES:
                raise ConfigError(f"Unknown dtype {name!r}: choose one of {', '.join(DTYPES)}.")
        if self.kernel_type not in KERNEL_TYPES:
            raise ConfigError(
                f"Unknown kernel type {self.kernel_type!r}: choose one of {', '.join(KERNEL_TYPES)}."
            )
        if self.kernel_type == "intranode" and self.num_nodes > 1:
            raise ConfigError(
                f"The intranode kernel runs on one node, not {self.num_nodes}: choose v1, v1_ll or async_ll."
            )

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self.num_nodes * self.gpu_per_node

    @property
    def experts_per_rank(self) -> int:
        """Number of experts that live on one rank."""
        return self.num_experts // self.world_size

    @property
    def experts_per_node(self) -> int:
        """Number of experts that live on one node."""
        return self.num_experts // self.num_nodes

    def node_of(self, rank: int) -> int:
        """Node that a rank runs on."""
        return rank // self.gpu_per_node

    def local_rank_of(self, rank: int) -> int:
        """Place of a rank within its node."""
        return rank % self.gpu_per_node


_COUNTED = {
    "num_nodes": "The number of nodes",
    "gpu_per_node": "The number of GPUs per node",
    "num_tokens": "The number of tokens per rank",
    "hidden": "The hidden size",
    "num_experts": "The number of experts",
    "topk": "top-k",
}


def default_kernel_type(num_nodes: int) -> KernelType:
    """Kernel type that a job runs when it names none: intranode on one node, v1 across nodes."""
    return "intranode" if num_nodes == 1 else "v1"


def default_combine_dtype(dtype: Dtype) -> Dtype:
    """What combine carries where nobody says: fp32 after fp32, else bf16."""
    return "fp32" if dtype == "fp32" else "bf16"
