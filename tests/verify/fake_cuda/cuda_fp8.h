/* SPDX-License-Identifier: MIT */
/* The value of an e4m3 code as CUDA's header of that name gives it, for tests without
 * CUDA. */
#ifndef ASSAY_TESTS_VERIFY_FAKE_CUDA_CUDA_FP8_H
#define ASSAY_TESTS_VERIFY_FAKE_CUDA_CUDA_FP8_H

#include <cmath>
#include <cstdint>

struct __nv_fp8_e4m3 {
    std::uint8_t code;

    explicit operator float() const
    {
        const int exponent = code >> 3 & 15, mantissa = code & 7;
        if ((code & 127) == 127) return NAN;
        const float size = exponent ? std::ldexp(float(8 + mantissa), exponent - 10)
                                    : std::ldexp(float(mantissa), -9);
        return code & 128 ? -size : size;
    }
};

#endif
