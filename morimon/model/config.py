"""What a job says about itself: sizes, kernel type, routing; every field may be unknown."""

from __future__ import annotations

import msgspec


class JobConfig(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """Configuration of an EP job in mori's words; None where the job has not told.

    `num_tokens` is the most tokens a rank sends (mori's max_tokens), `dtype` one of bf16, fp32, fp8, fp4 or the job's
    own word, `platform` what the figures were measured on ("CPU", "GPU", "EMULATED GPU"): it is shown beside them.
    """

    name: str | None = None
    kernel_type: str | None = None
    backend: str | None = None
    platform: str | None = None
    cmd: str | None = None
    world_size: int | None = None
    num_nodes: int | None = None
    gpu_per_node: int | None = None
    num_tokens: int | None = None
    hidden: int | None = None
    topk: int | None = None
    num_experts: int | None = None
    dtype: str | None = None
    combine_dtype: str | None = None
    routing: str | None = None
    seed: int | None = None
    rounds: int | None = None
    warmup: int | None = None

    def completed_by(self, later: JobConfig) -> JobConfig:
        """This configuration with every field that `later` knows taken from it."""
        known = {f: v for f in self.__struct_fields__ if (v := getattr(later, f)) is not None}
        return msgspec.structs.replace(self, **known)
