# SPDX-License-Identifier: Apache-2.0
"""Prints the sixteen values that tests/unit/kernels/initial_values_test.cpp pins, computed with Python alone:
Philox4x32-10 from its paper, the normal quantile from the standard library."""
from statistics import NormalDist

MASK = 0xFFFFFFFF


def philox(counter, key):
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(b >> 32) ^ counter[1] ^ key[0], b & MASK, (a >> 32) ^ counter[3] ^ key[1], a & MASK]
        key = [(key[0] + 0x9E3779B9) & MASK, (key[1] + 0xBB67AE85) & MASK]
    return counter


def fnv1a(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def element(seed, name, index, deviation):
    stream = fnv1a(name)
    words = philox([index & MASK, index >> 32, stream & MASK, stream >> 32], [seed & MASK, seed >> 32])
    k = (words[1] << 32 | words[0]) & (1 << 52) - 1
    return NormalDist(0.0, deviation).inv_cdf((k + 0.5) * 2.0**-52)


for i in range(16):
    print(repr(element(42, "layers.0.attention.wq.weight", i, 0.02)))
