/* SPDX-License-Identifier: MIT */
/* The dot-add of a tile with AVX2 and FMA: the vocabulary of dot_tile_fp8_tmpl.c and
 * dot_tile_wide_tmpl.c. The rounding mode is the processor's, toward zero for a step. */
#include "ref/unit/dot_tile_kernels.h"

#include <immintrin.h>

#define TARGET    __attribute__((target("avx2,fma")))
#define OPERATION static inline TARGET
#define UNROLLED  _Pragma("GCC unroll 8")

enum { LANES = 8, DOUBLES = 4, BLOCK_ROWS = 2, FP8_VECTORS = 2, WIDE_VECTORS = 2 };

typedef __m256i ints;
typedef __m256 floats;
typedef __m256d doubles;

#define shift_left(x, count)  _mm256_slli_epi32(x, count)
#define shift_right(x, count) _mm256_srli_epi32(x, count)

OPERATION ints all_ints(uint32_t word)
{
    return _mm256_set1_epi32((int)word);
}

OPERATION ints load_ints(const uint32_t *from)
{
    return _mm256_load_si256((const ints *)(const void *)from);
}

OPERATION void store_ints(uint32_t *to, ints x)
{
    _mm256_store_si256((ints *)(void *)to, x);
}

/* Words of 8 rows of 32 bytes: lane i of words[w] is word w of row i. */
OPERATION void load_words(const unsigned char *codes, int64_t row_bytes, ints words[8])
{
    ints row[8], pairs[8];
    UNROLLED
    for (int i = 0; i < 8; i++)
        row[i] = _mm256_loadu_si256((const ints *)(const void *)(codes + i * row_bytes));
    UNROLLED
    for (int i = 0; i < 8; i += 2) {
        pairs[i] = _mm256_unpacklo_epi32(row[i], row[i + 1]);
        pairs[i + 1] = _mm256_unpackhi_epi32(row[i], row[i + 1]);
    }
    UNROLLED
    for (int i = 0; i < 2; i++) {
        const ints low = _mm256_unpacklo_epi64(pairs[i], pairs[i + 2]);
        const ints high = _mm256_unpackhi_epi64(pairs[i], pairs[i + 2]);
        const ints far_low = _mm256_unpacklo_epi64(pairs[i + 4], pairs[i + 6]);
        const ints far_high = _mm256_unpackhi_epi64(pairs[i + 4], pairs[i + 6]);
        words[2 * i] = _mm256_permute2x128_si256(low, far_low, 0x20);
        words[2 * i + 1] = _mm256_permute2x128_si256(high, far_high, 0x20);
        words[2 * i + 4] = _mm256_permute2x128_si256(low, far_low, 0x31);
        words[2 * i + 5] = _mm256_permute2x128_si256(high, far_high, 0x31);
    }
}

OPERATION ints shift_left_by(ints x, ints count)
{
    return _mm256_sllv_epi32(x, count);
}

OPERATION ints shift_right_by(ints x, ints count)
{
    return _mm256_srlv_epi32(x, count);
}

OPERATION ints and_ints(ints a, ints b)
{
    return _mm256_and_si256(a, b);
}

OPERATION ints or_ints(ints a, ints b)
{
    return _mm256_or_si256(a, b);
}

OPERATION ints add_bytes(ints a, ints b)
{
    return _mm256_add_epi8(a, b);
}

OPERATION ints add_words(ints a, ints b)
{
    return _mm256_add_epi16(a, b);
}

OPERATION ints add_ints(ints a, ints b)
{
    return _mm256_add_epi32(a, b);
}

OPERATION ints subtract_ints(ints a, ints b)
{
    return _mm256_sub_epi32(a, b);
}

OPERATION ints larger_bytes(ints a, ints b)
{
    return _mm256_max_epu8(a, b);
}

OPERATION ints larger_words(ints a, ints b)
{
    return _mm256_max_epu16(a, b);
}

OPERATION ints larger_ints(ints a, ints b)
{
    return _mm256_max_epu32(a, b);
}

/* @x where @condition is not zero, else zero. */
OPERATION ints bytes_where(ints condition, ints x)
{
    return _mm256_andnot_si256(_mm256_cmpeq_epi8(condition, _mm256_setzero_si256()), x);
}

OPERATION ints words_where(ints condition, ints x)
{
    return _mm256_andnot_si256(_mm256_cmpeq_epi16(condition, _mm256_setzero_si256()), x);
}

OPERATION ints ints_where(ints condition, ints x)
{
    return _mm256_andnot_si256(_mm256_cmpeq_epi32(condition, _mm256_setzero_si256()), x);
}

/* How much @a is above @b; zero where it is not. */
OPERATION ints bytes_above(ints a, ints b)
{
    return _mm256_subs_epu8(a, b);
}

OPERATION ints words_above(ints a, ints b)
{
    return _mm256_subs_epu16(a, b);
}

OPERATION ints ints_above(ints a, ints b)
{
    return _mm256_sub_epi32(_mm256_max_epu32(a, b), b);
}

OPERATION unsigned set_of_nonzero(ints x)
{
    const ints zeros = _mm256_cmpeq_epi32(x, _mm256_setzero_si256());
    return ~(unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(zeros)) & 0xFF;
}

OPERATION floats all_floats(float x)
{
    return _mm256_set1_ps(x);
}

OPERATION floats load_floats(const float *from)
{
    return _mm256_load_ps(from);
}

OPERATION void store_floats(float *to, floats x)
{
    _mm256_store_ps(to, x);
}

OPERATION floats as_floats(ints x)
{
    return _mm256_castsi256_ps(x);
}

OPERATION ints as_ints(floats x)
{
    return _mm256_castps_si256(x);
}

/* 2 * @x - @offset where @fields is below @limit, both below 2^31, else @x. */
OPERATION floats doubled_where_below(floats x, ints fields, ints limit, floats offset)
{
    const floats doubled = _mm256_fmsub_ps(x, _mm256_set1_ps(2.0f), offset);
    return _mm256_blendv_ps(x, doubled, as_floats(_mm256_cmpgt_epi32(limit, fields)));
}

/* @x where the sign bit of @sign is set, else zero; the other way round. */
OPERATION floats floats_where_negative(ints sign, floats x)
{
    return _mm256_blendv_ps(_mm256_setzero_ps(), x, as_floats(sign));
}

OPERATION floats floats_where_positive(ints sign, floats x)
{
    return _mm256_blendv_ps(x, _mm256_setzero_ps(), as_floats(sign));
}

OPERATION floats smaller_floats(floats a, floats b)
{
    return _mm256_min_ps(a, b);
}

OPERATION floats add_floats(floats a, floats b)
{
    return _mm256_add_ps(a, b);
}

OPERATION floats subtract_floats(floats a, floats b)
{
    return _mm256_sub_ps(a, b);
}

OPERATION floats fused_floats(floats a, floats b, floats c)
{
    return _mm256_fmadd_ps(a, b, c);
}

OPERATION doubles all_doubles(double x)
{
    return _mm256_set1_pd(x);
}

OPERATION doubles load_doubles(const double *from)
{
    return _mm256_load_pd(from);
}

OPERATION void store_doubles(double *to, doubles x)
{
    _mm256_store_pd(to, x);
}

OPERATION doubles add_doubles(doubles a, doubles b)
{
    return _mm256_add_pd(a, b);
}

OPERATION doubles subtract_doubles(doubles a, doubles b)
{
    return _mm256_sub_pd(a, b);
}

OPERATION doubles fused_doubles(doubles a, doubles b, doubles c)
{
    return _mm256_fmadd_pd(a, b, c);
}

OPERATION doubles low_doubles(floats x)
{
    return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
}

OPERATION doubles high_doubles(floats x)
{
    return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
}

/* 2^(x - 1023). */
OPERATION doubles low_powers_of_two(ints x)
{
    return _mm256_castsi256_pd(
        _mm256_slli_epi64(_mm256_cvtepi32_epi64(_mm256_castsi256_si128(x)), 52));
}

OPERATION doubles high_powers_of_two(ints x)
{
    return _mm256_castsi256_pd(
        _mm256_slli_epi64(_mm256_cvtepi32_epi64(_mm256_extracti128_si256(x, 1)), 52));
}

/* All ones where the magnitude is 2^128 or more. */
OPERATION floats overflowing(doubles x)
{
    const doubles magnitude = _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
    return _mm256_castpd_ps(
        _mm256_cmp_pd(magnitude, _mm256_set1_pd(0x1p128), _CMP_GE_OQ));
}

/* Toward zero; from 2^128 on the largest f32, whose bits plus one are infinity's. */
OPERATION floats joined_floats(doubles low, doubles high)
{
    const floats joined = _mm256_insertf128_ps(
        _mm256_castps128_ps256(_mm256_cvtpd_ps(low)), _mm256_cvtpd_ps(high), 1);
    /* Even words of both, whose pairs of two lanes change places. */
    const floats even = _mm256_shuffle_ps(overflowing(low), overflowing(high), 0x88);
    const ints ordered = _mm256_permute4x64_epi64(as_ints(even), 0xD8);
    return as_floats(subtract_ints(as_ints(joined), ordered));
}

#include "ref/unit/dot_tile_fp8_tmpl.c"
#include "ref/unit/dot_tile_wide_tmpl.c"

enum { ALL_MASKED_TOWARD_ZERO = 0x7F80 };

/* The compiler takes the rounding mode for constant: steps are functions of their own. */
static void run_toward_zero(void (*step)(struct assay_dot_tile_work *),
                            struct assay_dot_tile_work *work)
{
    const unsigned mode = _mm_getcsr();
    _mm_setcsr(ALL_MASKED_TOWARD_ZERO);
    step(work);
    _mm_setcsr(mode);
}

static void fp8_step_toward_zero(struct assay_dot_tile_work *work)
{
    run_toward_zero(fp8_step, work);
}

static void wide_step_toward_zero(struct assay_dot_tile_work *work)
{
    run_toward_zero(wide_step, work);
}

static bool is_supported(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

const struct assay_dot_tile_kernels assay_dot_tile_avx2 = {
    .instruction_set = "avx2",
    .is_supported = is_supported,
    .rows_beyond = rows_beyond,
    .add_fp8_step = fp8_step_toward_zero,
    .add_wide_step = wide_step_toward_zero,
};
