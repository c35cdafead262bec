"""The numbers that torch's CPU generator draws, without torch.

`torch.manual_seed(seed)` seeds a 32-bit Mersenne Twister (mt19937) with the low half of the seed;
`torch.randn` turns its words into normal numbers in one of two ways (ATen/native/cpu/DistributionTemplates.h):

* tensors of 16 elements and more are filled with uniform floats of 24 bits, and every 16 of these are then turned,
  in place, by the Box-Muller transform: the first eight are radii, the last eight angles. Where the size is no
  multiple of 16, the last 16 elements are drawn afresh (fp32), or the last block is drawn whole (bf16);
* smaller tensors take one double a time, by Box-Muller from two uniform doubles of 53 bits, whose second result
  waits in the generator for the next small draw.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from morimon.ep import mt19937_jump, torch_math

Floats = npt.NDArray[np.float32]

BLOCK = 16
_UNIT_24 = np.float32(2.0**-24)
_DRAW_WORDS = 1 << 20


class Randn:
    """The normal numbers of one `torch.randn(count)`, fp32; each part is computed when it is asked for."""

    def __init__(self, uniform: Floats, redrawn: Floats, small: Floats | None = None) -> None:
        """`uniform` as first drawn; `redrawn` replaces the last 16 results, where there is any; `small` is the result itself."""
        self._uniform = uniform
        self._redrawn = redrawn
        self._small = small

    def quick(self, start: int, stop: int) -> Floats:
        """Elements [start, stop), each within 2⁻²¹ relative of torch's."""
        return self._slice(start, stop, _box_muller)

    def exact(self, start: int, stop: int) -> Floats:
        """Elements [start, stop), bit for bit what torch computes on x86 processors with AVX2."""
        return self._slice(start, stop, torch_math.box_muller)

    def _slice(self, start: int, stop: int, transform: Callable[[Floats, Floats], Floats]) -> Floats:
        if self._small is not None:
            return self._small[start:stop]
        count = len(self._uniform)
        first = start // BLOCK * BLOCK
        pairs = self._uniform[first : -(-stop // BLOCK) * BLOCK]
        normal = np.empty(len(pairs), dtype=np.float32)
        whole = len(pairs) // BLOCK * BLOCK
        _fill(normal[:whole], pairs[:whole], transform)
        if len(self._redrawn) and stop > count - BLOCK:
            tail = np.empty(BLOCK, dtype=np.float32)
            _fill(tail, self._redrawn, transform)
            begin = max(first, count - BLOCK)
            normal[begin - first : count - first] = tail[begin - (count - BLOCK) :][
                : len(normal) - begin + first
            ]
        return normal[start - first : stop - first]


class TorchCpuGenerator:
    """What `torch.manual_seed(seed)` makes of torch's default CPU generator."""

    def __init__(self, seed: int) -> None:
        self._twister = np.random.MT19937()
        # RandomState alone seeds as the original mt19937 does, from one word; MT19937(seed) mixes the seed first.
        seeded = np.random.RandomState(seed & 0xFFFFFFFF).get_state(legacy=False)
        self._twister.state = {"bit_generator": "MT19937", "state": seeded["state"]}
        self._waiting: float | None = None

    def skip_randn_bf16(self, count: int) -> None:
        """Leave the generator as `torch.randn(count, dtype=torch.bfloat16)` leaves it."""
        if count < BLOCK:
            self._small_normals(count)
        else:
            mt19937_jump.skip(self._twister, -(-count // BLOCK) * BLOCK)

    def randn(self, count: int) -> Randn:
        """`torch.randn(count)`, fp32."""
        if count < BLOCK:
            none = np.empty(0, dtype=np.float32)
            return Randn(none, none, self._small_normals(count).astype(np.float32))
        return Randn(self._uniform(count), self._uniform(BLOCK if count % BLOCK else 0))

    def _uniform(self, count: int) -> Floats:
        uniform = np.empty(count, dtype=np.float32)
        for start in range(0, count, _DRAW_WORDS):
            part = uniform[start : start + _DRAW_WORDS]
            part[:] = self._twister.random_raw(len(part)) & 0xFFFFFF
        uniform *= _UNIT_24
        return uniform

    def _small_normals(self, count: int) -> npt.NDArray[np.float64]:
        normal = np.empty(count)
        for place in range(count):
            if self._waiting is not None:
                normal[place], self._waiting = self._waiting, None
                continue
            angle, radius = self._uniform_doubles(2)
            radius = np.sqrt(-2 * np.log1p(-radius))
            normal[place] = radius * np.cos(2 * np.pi * angle)
            self._waiting = radius * np.sin(2 * np.pi * angle)
        return normal

    def _uniform_doubles(self, count: int) -> npt.NDArray[np.float64]:
        high, low = self._twister.random_raw(2 * count).reshape(count, 2).T
        uniform: npt.NDArray[np.float64] = ((high << np.uint64(32) | low) & np.uint64(2**53 - 1)) * 2.0**-53
        return uniform


def _fill(normal: Floats, uniform: Floats, transform: Callable[[Floats, Floats], Floats]) -> None:
    pairs = uniform.reshape(-1, 2, BLOCK // 2)
    normal.reshape(-1, 2, BLOCK // 2)[:] = transform(
        np.float32(1) - pairs[:, 0], np.float32(2 * np.pi) * pairs[:, 1]
    )


def _box_muller(radii: Floats, angles: Floats) -> Floats:
    """Normal numbers [blocks, 2, n] from (0, 1] uniform radii and angles, both [blocks, n]."""
    radius = np.sqrt(np.float32(-2) * np.log(radii))
    return np.stack([radius * np.cos(angles), radius * np.sin(angles)], axis=1)
