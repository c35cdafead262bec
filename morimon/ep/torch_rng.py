"""The numbers that torch's CPU generator draws, without torch.

`torch.manual_seed(seed)` seeds a 32-bit Mersenne Twister (mt19937) with the low half of the seed, as numpy's
does; `torch.randn` turns its words into normal numbers in one of two ways (ATen/native/cpu/DistributionTemplates.h):

* tensors of 16 elements and more are filled with uniform floats of 24 bits, and every 16 of these are then turned,
  in place, by the Box-Muller transform: the first eight are radii, the last eight angles. Where the size is no
  multiple of 16, the last 16 elements are drawn afresh (fp32), or the last block is drawn whole (bf16, fp16);
* smaller tensors take one double a time, by Box-Muller from two uniform doubles of 53 bits, whose second result
  waits in the generator for the next small draw.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

_BLOCK = 16
_UNIT_24 = np.float32(2.0**-24)


class TorchCpuGenerator:
    """What `torch.manual_seed(seed)` makes of torch's default CPU generator."""

    def __init__(self, seed: int) -> None:
        self._twister = np.random.MT19937()
        # RandomState alone seeds as the original mt19937 does, from one word; MT19937(seed) mixes the seed first.
        seeded = np.random.RandomState(seed & 0xFFFFFFFF).get_state(legacy=False)
        self._twister.state = {"bit_generator": "MT19937", "state": seeded["state"]}
        self._waiting: float | None = None

    def words(self, count: int) -> npt.NDArray[np.uint32]:
        """The next `count` raw words."""
        return self._twister.random_raw(count).astype(np.uint32)

    def skip_randn_bf16(self, count: int) -> None:
        """Leave the generator as `torch.randn(count, dtype=torch.bfloat16)` leaves it."""
        if count < _BLOCK:
            self._small_normals(count)
        else:
            self._twister.random_raw(-(-count // _BLOCK) * _BLOCK, output=False)

    def randn(self, count: int) -> Floats:
        """`torch.randn(count)`, fp32."""
        if count < _BLOCK:
            return self._small_normals(count).astype(np.float32)
        uniform = self._uniform(count)
        whole = count // _BLOCK * _BLOCK
        normal = np.empty(count, dtype=np.float32)
        normal[:whole] = _box_muller(uniform[:whole])
        if whole < count:
            normal[-_BLOCK:] = _box_muller(self._uniform(_BLOCK))
        return normal

    def _uniform(self, count: int) -> Floats:
        uniform: Floats = (self.words(count) & np.uint32(0xFFFFFF)).astype(np.float32)
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


def _box_muller(uniform: Floats) -> Floats:
    pairs = uniform.reshape(-1, 2, _BLOCK // 2)
    radius = np.sqrt(np.float32(-2) * np.log(np.float32(1) - pairs[:, 0]))
    angle = np.float32(2 * np.pi) * pairs[:, 1]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)
