"""Skipping many words of an mt19937 generator at once.

The generator's state is a window of 624 words on a sequence x₀, x₁, … over GF(2) that obeys a linear recurrence with the
characteristic polynomial p of degree 19937. With g = tᴺ mod p, the word N places on is the sum of the words that g
names: xₙ₊ⱼ = Σ gᵢ xᵢ₊ⱼ (Haramoto, Matsumoto, Nishimura, Panneton, L'Ecuyer 2008). g depends on N alone and serves every rank.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

_WORDS, _MIDDLE, _LOW_BITS, _TWIST = 624, 397, 31, 0x9908B0DF
_WORD_BITS = 32
_DEGREE = _WORDS * _WORD_BITS - _LOW_BITS
_WORTH_WORDS = 1 << 22  # below this the generator itself is faster

Polynomial = int
"""Over GF(2): bit i is the coefficient of tⁱ."""


def skip(twister: np.random.MT19937, count: int) -> None:
    """Leave the generator as `count` drawn words leave it."""
    if count < _WORTH_WORDS:
        twister.random_raw(count, output=False)
        return
    begun = _WORDS - twister.state["state"]["pos"]
    twister.random_raw(begun, output=False)
    power = _power_of_t(count - begun)
    windows = np.lib.stride_tricks.sliding_window_view(_sequence(twister), _WORDS)
    jumped = np.bitwise_xor.reduce(windows[_exponents(power)], axis=0)
    twister.state = {"bit_generator": "MT19937", "state": {"key": jumped, "pos": _WORDS}}


def _sequence(twister: np.random.MT19937) -> npt.NDArray[np.uint32]:
    """The state words from here on, as many as a polynomial can name; the generator must stand between two windows."""
    windows = []
    for _ in range(-(-_DEGREE // _WORDS) + 1):
        windows.append(twister.state["state"]["key"])
        twister.random_raw(_WORDS, output=False)
    return np.concatenate(windows)


@cache
def _power_of_t(exponent: int) -> Polynomial:
    """T to the power of `exponent`, modulo the characteristic polynomial."""
    if exponent < _DEGREE:
        return 1 << exponent
    return _remainder(_square(_power_of_t(exponent // 2)) << exponent % 2)


def _square(polynomial: Polynomial) -> Polynomial:
    """Squaring over GF(2) sets the coefficients apart."""
    return int("0".join(f"{polynomial:b}"), 2)


def _remainder(polynomial: Polynomial) -> Polynomial:
    lower_terms = [int(exponent) for exponent in _exponents(_characteristic())[:-1]]
    while high := polynomial >> _DEGREE:
        polynomial ^= high << _DEGREE
        for exponent in lower_terms:
            polynomial ^= high << exponent
    return polynomial


@cache
def _characteristic() -> Polynomial:
    """p(t), from the recurrence's constants (Matsumoto, Nishimura 1998, appendix A)."""
    far = 1 << _WORDS | 1 << _MIDDLE
    near = far >> 1
    total = _product(_raised(far, _WORD_BITS - _LOW_BITS), _raised(near, _LOW_BITS))
    for bit in range(_WORD_BITS):
        if _TWIST >> bit & 1:
            if bit < _LOW_BITS:
                term = _product(_raised(far, _WORD_BITS - _LOW_BITS), _raised(near, _LOW_BITS - 1 - bit))
            else:
                term = _raised(far, _WORD_BITS - 1 - bit)
            total ^= term
    return total


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    total = 0
    for exponent in _exponents(a):
        total ^= b << int(exponent)
    return total


def _raised(base: Polynomial, exponent: int) -> Polynomial:
    result = 1
    for _ in range(exponent):
        result = _product(result, base)
    return result


def _exponents(polynomial: Polynomial) -> npt.NDArray[np.intp]:
    """Exponents with a coefficient of one, ascending."""
    octets = np.frombuffer(polynomial.to_bytes(polynomial.bit_length() // 8 + 1, "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(octets, bitorder="little"))
