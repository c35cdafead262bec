"""The Box-Muller transform to the last bit as torch computes it on x86 processors with AVX2.

torch uses single-precision polynomials of the Cephes library (ATen/native/cpu/avx_mathfun.h), in which the compiler
fuses a product and the sum that follows. A fused step is done here in double precision, where the product of
two floats is exact, and rounded once more.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

_f32 = np.float32

_LOG_COEFFICIENTS = (
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
_SIN_COEFFICIENTS = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COS_COEFFICIENTS = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_LN2_HIGH, _LN2_LOW = _f32(0.693359375), _f32(-2.12194440e-4)
_QUARTER_PI = (0.78515625, 2.4187564849853515625e-4, 3.77489497744594108e-8)  # π/4, in three parts


def box_muller(radii: Floats, angles: Floats) -> Floats:
    """Normal numbers [blocks, 2, n] from (0, 1] uniform radii and angles below 2π, both [blocks, n]."""
    radius = np.sqrt(_f32(-2) * _log(radii))
    sine, cosine = _sincos(angles)
    return np.stack([radius * cosine, radius * sine], axis=1)


def _fused(a: Floats, b: Floats | np.float32, c: Floats | np.float32) -> Floats:
    """A × b + c, rounded once to single precision."""
    return (a.astype(np.float64) * b + c).astype(np.float32)


def _polynomial(x: Floats, coefficients: tuple[float, ...]) -> Floats:
    value = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = _fused(value, x, _f32(coefficient))
    return value


def _log(x: Floats) -> Floats:
    mantissa, exponent = np.frexp(x)
    small = mantissa < _f32(np.sqrt(0.5))
    exponent = (exponent - small).astype(np.float32)
    part = (mantissa - _f32(1)) + np.where(small, mantissa, _f32(0))
    square = part * part
    series = _polynomial(part, _LOG_COEFFICIENTS) * part
    series = _fused(series, square, exponent * _LN2_LOW)
    series = _fused(-square, _f32(0.5), series)
    return _fused(exponent, _LN2_HIGH, part + series)


def _sincos(x: Floats) -> tuple[Floats, Floats]:
    octant = (x * _f32(4 / np.pi)).astype(np.int32)
    octant = (octant + 1) & ~1
    turns = octant.astype(np.float32)
    for part in _QUARTER_PI:
        x = _fused(turns, _f32(-part), x)
    square = x * x
    cosine = _polynomial(square, _COS_COEFFICIENTS) * square
    cosine = _fused(cosine, square, -(square * _f32(0.5))) + _f32(1)
    sine = _fused(_polynomial(square, _SIN_COEFFICIENTS) * square, x, x)
    swapped = (octant & 2) != 0
    sine, cosine = np.where(swapped, cosine, sine), np.where(swapped, sine, cosine)
    return np.where(octant & 4, -sine, sine), np.where((octant - 2) & 4, cosine, -cosine)
