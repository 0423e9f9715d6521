/* SPDX-License-Identifier: MIT */
/* The dot-add of a tile with AVX-512: the vocabulary of dot_tile_fp8_tmpl.c and
 * dot_tile_wide_tmpl.c, whose rounding toward zero is part of the instruction. */
#include "ref/unit/dot_tile_kernels.h"

#include <immintrin.h>

#define TARGET      __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define OPERATION   static inline TARGET
#define TOWARD_ZERO (_MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)

#define UNROLLED _Pragma("GCC unroll 8")

/* GCC's forms without a mask are macros at -O0 that pass -1: -Wconversion refuses. */
enum { ALL_DOUBLES = 0xFF };
enum { LANES = 16, DOUBLES = 8, BLOCK_ROWS = 2, FP8_VECTORS = 4, WIDE_VECTORS = 4 };

typedef __m512i ints;
typedef __m512 floats;
typedef __m512d doubles;

#define shift_left(x, count)  _mm512_slli_epi32(x, count)
#define shift_right(x, count) _mm512_srli_epi32(x, count)

OPERATION ints all_ints(uint32_t word)
{
    return _mm512_set1_epi32((int)word);
}

OPERATION ints load_ints(const uint32_t *from)
{
    return _mm512_load_si512(from);
}

OPERATION void store_ints(uint32_t *to, ints x)
{
    _mm512_store_si512(to, x);
}

/* Words of 16 rows of 32 bytes: lane i of words[w] is word w of row i. */
OPERATION void load_words(const unsigned char *codes, int64_t row_bytes, ints words[8])
{
    ints pairs[8], quads[8];
    UNROLLED
    for (int i = 0; i < 8; i++) {
        const unsigned char *const low = codes + (i < 4 ? i : i + 4) * row_bytes;
        const unsigned char *const high = low + 4 * row_bytes;
        pairs[i] = _mm512_inserti64x4(
            _mm512_castsi256_si512(
                _mm256_loadu_si256((const __m256i *)(const void *)low)),
            _mm256_loadu_si256((const __m256i *)(const void *)high), 1);
    }
    UNROLLED
    for (int i = 0; i < 8; i += 2) {
        quads[i] = _mm512_unpacklo_epi32(pairs[i], pairs[i + 1]);
        quads[i + 1] = _mm512_unpackhi_epi32(pairs[i], pairs[i + 1]);
    }
    UNROLLED
    for (int i = 0; i < 2; i++) {
        const ints low = _mm512_unpacklo_epi64(quads[i], quads[i + 2]);
        const ints high = _mm512_unpackhi_epi64(quads[i], quads[i + 2]);
        const ints far_low = _mm512_unpacklo_epi64(quads[i + 4], quads[i + 6]);
        const ints far_high = _mm512_unpackhi_epi64(quads[i + 4], quads[i + 6]);
        words[2 * i] = _mm512_shuffle_i32x4(low, far_low, 0x88);
        words[2 * i + 1] = _mm512_shuffle_i32x4(high, far_high, 0x88);
        words[2 * i + 4] = _mm512_shuffle_i32x4(low, far_low, 0xDD);
        words[2 * i + 5] = _mm512_shuffle_i32x4(high, far_high, 0xDD);
    }
}

OPERATION ints shift_left_by(ints x, ints count)
{
    return _mm512_sllv_epi32(x, count);
}

OPERATION ints shift_right_by(ints x, ints count)
{
    return _mm512_srlv_epi32(x, count);
}

OPERATION ints and_ints(ints a, ints b)
{
    return _mm512_and_si512(a, b);
}

OPERATION ints or_ints(ints a, ints b)
{
    return _mm512_or_si512(a, b);
}

OPERATION ints add_bytes(ints a, ints b)
{
    return _mm512_add_epi8(a, b);
}

OPERATION ints add_words(ints a, ints b)
{
    return _mm512_add_epi16(a, b);
}

OPERATION ints add_ints(ints a, ints b)
{
    return _mm512_add_epi32(a, b);
}

OPERATION ints subtract_ints(ints a, ints b)
{
    return _mm512_sub_epi32(a, b);
}

OPERATION ints larger_bytes(ints a, ints b)
{
    return _mm512_max_epu8(a, b);
}

OPERATION ints larger_words(ints a, ints b)
{
    return _mm512_max_epu16(a, b);
}

OPERATION ints larger_ints(ints a, ints b)
{
    return _mm512_max_epu32(a, b);
}

/* @x where @condition is not zero, else zero. */
OPERATION ints bytes_where(ints condition, ints x)
{
    return _mm512_maskz_mov_epi8(_mm512_test_epi8_mask(condition, condition), x);
}

OPERATION ints words_where(ints condition, ints x)
{
    return _mm512_maskz_mov_epi16(_mm512_test_epi16_mask(condition, condition), x);
}

OPERATION ints ints_where(ints condition, ints x)
{
    return _mm512_maskz_mov_epi32(_mm512_test_epi32_mask(condition, condition), x);
}

/* How much @a is above @b; zero where it is not. */
OPERATION ints bytes_above(ints a, ints b)
{
    return _mm512_subs_epu8(a, b);
}

OPERATION ints words_above(ints a, ints b)
{
    return _mm512_subs_epu16(a, b);
}

OPERATION ints ints_above(ints a, ints b)
{
    return _mm512_sub_epi32(_mm512_max_epu32(a, b), b);
}

OPERATION unsigned set_of_nonzero(ints x)
{
    return _mm512_test_epi32_mask(x, x);
}

OPERATION floats all_floats(float x)
{
    return _mm512_set1_ps(x);
}

OPERATION floats load_floats(const float *from)
{
    return _mm512_load_ps(from);
}

OPERATION void store_floats(float *to, floats x)
{
    _mm512_store_ps(to, x);
}

OPERATION floats as_floats(ints x)
{
    return _mm512_castsi512_ps(x);
}

OPERATION ints as_ints(floats x)
{
    return _mm512_castps_si512(x);
}

/* 2 * @x - @offset where @fields is below @limit, both below 2^31, else @x. */
OPERATION floats doubled_where_below(floats x, ints fields, ints limit, floats offset)
{
    return _mm512_mask_fmsub_ps(x, _mm512_cmplt_epi32_mask(fields, limit),
                                _mm512_set1_ps(2.0f), offset);
}

/* @x where the sign bit of @sign is set, else zero; the other way round. */
OPERATION floats floats_where_negative(ints sign, floats x)
{
    return _mm512_maskz_mov_ps(_mm512_movepi32_mask(sign), x);
}

OPERATION floats floats_where_positive(ints sign, floats x)
{
    return _mm512_mask_mov_ps(x, _mm512_movepi32_mask(sign), _mm512_setzero_ps());
}

OPERATION floats smaller_floats(floats a, floats b)
{
    return _mm512_min_ps(a, b);
}

OPERATION floats add_floats(floats a, floats b)
{
    return _mm512_add_round_ps(a, b, TOWARD_ZERO);
}

OPERATION floats subtract_floats(floats a, floats b)
{
    return _mm512_sub_round_ps(a, b, TOWARD_ZERO);
}

OPERATION floats fused_floats(floats a, floats b, floats c)
{
    return _mm512_fmadd_round_ps(a, b, c, TOWARD_ZERO);
}

OPERATION doubles all_doubles(double x)
{
    return _mm512_set1_pd(x);
}

OPERATION doubles load_doubles(const double *from)
{
    return _mm512_load_pd(from);
}

OPERATION void store_doubles(double *to, doubles x)
{
    _mm512_store_pd(to, x);
}

OPERATION doubles add_doubles(doubles a, doubles b)
{
    return _mm512_mask_add_round_pd(a, ALL_DOUBLES, a, b, TOWARD_ZERO);
}

OPERATION doubles subtract_doubles(doubles a, doubles b)
{
    return _mm512_mask_sub_round_pd(a, ALL_DOUBLES, a, b, TOWARD_ZERO);
}

OPERATION doubles fused_doubles(doubles a, doubles b, doubles c)
{
    return _mm512_mask_fmadd_round_pd(a, ALL_DOUBLES, b, c, TOWARD_ZERO);
}

OPERATION doubles low_doubles(floats x)
{
    return _mm512_cvtps_pd(_mm512_castps512_ps256(x));
}

OPERATION doubles high_doubles(floats x)
{
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
}

/* 2^(x - 1023). */
OPERATION doubles low_powers_of_two(ints x)
{
    return _mm512_castsi512_pd(
        _mm512_slli_epi64(_mm512_cvtepi32_epi64(_mm512_castsi512_si256(x)), 52));
}

OPERATION doubles high_powers_of_two(ints x)
{
    return _mm512_castsi512_pd(
        _mm512_slli_epi64(_mm512_cvtepi32_epi64(_mm512_extracti32x8_epi32(x, 1)), 52));
}

/* Toward zero; from 2^128 on the largest f32, whose bits plus one are infinity's. */
OPERATION __m256i narrowed(doubles x)
{
    const __mmask8 overflows =
        _mm512_cmp_pd_mask(_mm512_abs_pd(x), _mm512_set1_pd(0x1p128), _CMP_GE_OQ);
    const __m256i bits = _mm256_castps_si256(_mm512_cvt_roundpd_ps(x, TOWARD_ZERO));
    return _mm256_mask_add_epi32(bits, overflows, bits, _mm256_set1_epi32(1));
}

OPERATION floats joined_floats(doubles low, doubles high)
{
    return as_floats(
        _mm512_inserti32x8(_mm512_castsi256_si512(narrowed(low)), narrowed(high), 1));
}

#include "ref/unit/dot_tile_fp8_tmpl.c"
#include "ref/unit/dot_tile_wide_tmpl.c"

static bool is_supported(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

const struct assay_dot_tile_kernels assay_dot_tile_avx512 = {
    .instruction_set = "avx512",
    .is_supported = is_supported,
    .rows_beyond = rows_beyond,
    .add_fp8_step = fp8_step,
    .add_wide_step = wide_step,
};
