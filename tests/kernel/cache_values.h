/* SPDX-License-Identifier: MIT */
/* Values of codes by formulas of the tests' own, and a source of random bits. */
#ifndef ASSAY_TESTS_KERNEL_CACHE_VALUES_H
#define ASSAY_TESTS_KERNEL_CACHE_VALUES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static uint64_t state;

static inline uint32_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 32);
}

static inline float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline double e4m3(int code)
{
    const int magnitude = code & 0x7F;
    const double value =
        magnitude < 8 ? magnitude * 0x1p-9 : ldexp(8 + magnitude % 8, magnitude / 8 - 10);
    if (magnitude == 0x7F) return (double)NAN;
    return code & 0x80 ? -value : value;
}

static inline double e2m1(int code)
{
    static const double magnitude[8] = { 0, 0.5, 1, 1.5, 2, 3, 4, 6 };
    return code & 8 ? -magnitude[code & 7] : magnitude[code & 7];
}

#endif
