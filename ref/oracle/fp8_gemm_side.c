/* SPDX-License-Identifier: MIT */
/* A row's facts are the union of its codes' facts, each a set of bits: from bit 0 the lsb
 * counted from 2^-16, from bit 32 the exponent counted from -14, then what is left. */
#include "ref/oracle/fp8_gemm_side.h"

#include "ref/instruction_sets.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { WORD = 64, SMALLEST_LSB = -16, SMALLEST_EXPONENT = -14, FIRST_EXPONENT_BIT = 32 };
enum { LARGE_PART_UNIT = -1 };

#define ONE               UINT64_C(1)
#define IS_ZERO           (ONE << 62)
#define IS_SPECIAL        (ONE << 63)
#define LSB_FACTS         ((ONE << FIRST_EXPONENT_BIT) - 1)
#define EXPONENT_FACTS    ((IS_ZERO - 1) ^ LSB_FACTS)
#define SMALLEST_OF_LARGE 2.0f

_Static_assert(ASSAY_FP8_GEMM_SLICE_K % WORD == 0, "masks are whole words");
_Static_assert((int)ASSAY_FP8_GEMM_SIDE == (int)WORD, "a line is one word");

static uint64_t facts_of(const struct assay_fp8_code *code)
{
    if (code->kind == ASSAY_FP8_ZERO) return IS_ZERO;
    if (code->kind != ASSAY_FP8_FINITE) return IS_SPECIAL;
    return ONE << (code->lsb - SMALLEST_LSB) |
           ONE << (code->exponent - SMALLEST_EXPONENT + FIRST_EXPONENT_BIT);
}

static int lsb_in(uint64_t facts)
{
    facts &= LSB_FACTS;
    return facts ? __builtin_ctzll(facts) + SMALLEST_LSB : ASSAY_FP8_NO_LSB;
}

static int exponent_in(uint64_t facts)
{
    facts &= EXPONENT_FACTS;
    return facts ? 63 - __builtin_clzll(facts) - FIRST_EXPONENT_BIT + SMALLEST_EXPONENT
                 : ASSAY_FP8_NO_EXPONENT;
}

static int width_in(uint64_t facts)
{
    return facts & LSB_FACTS ? exponent_in(facts) + 1 - lsb_in(facts) : 0;
}

int assay_fp8_gemm_side_width(const struct assay_fp8_gemm_side *side)
{
    return width_in(side->slice_facts);
}

bool assay_fp8_gemm_side_has_special(const struct assay_fp8_gemm_side *side)
{
    return side->slice_facts & IS_SPECIAL;
}

bool assay_fp8_gemm_side_has_zero(const struct assay_fp8_gemm_side *side)
{
    return side->slice_facts & IS_ZERO;
}

bool assay_fp8_gemm_side_may_have_subnormal(const struct assay_fp8_gemm_side *side)
{
    const int exponent = assay_fp8_smallest_exponent(side->codes->format);
    return side->slice_facts >> (exponent - SMALLEST_EXPONENT + FIRST_EXPONENT_BIT) & 1;
}

int assay_fp8_gemm_side_parts(const struct assay_fp8_gemm_side *side)
{
    return side->codes->format == ASSAY_E4M3 ? 1 : 2;
}

int assay_fp8_gemm_side_part_unit(const struct assay_fp8_gemm_side *side, int part)
{
    const bool is_large_e5m2 = side->codes->format == ASSAY_E5M2 && part == 0;
    return is_large_e5m2 ? LARGE_PART_UNIT : assay_fp8_unit_exponent(side->codes->format);
}

unsigned assay_fp8_gemm_side_code(const struct assay_fp8_gemm_side *side, int64_t i,
                                  int64_t k)
{
    const struct assay_tensor *const codes = side->codes;
    const unsigned char *const from = codes->data;
    return from[(side->first + i) * codes->stride[0] + k * codes->stride[1]];
}

void assay_fp8_gemm_side_open(struct assay_fp8_gemm_side *side,
                              const struct assay_tensor *codes,
                              const struct assay_tensor *scales, int64_t first,
                              int64_t count, int64_t granularity, bool is_k_major)
{
    assert(codes && scales && count <= ASSAY_FP8_GEMM_SIDE);
    memset(side->value, 0, sizeof side->value);
    memset(side->scale, 0, sizeof side->scale);
    side->codes = codes;
    side->scales = scales;
    side->first = first;
    side->count = count;
    side->granularity = granularity;
    side->row_stride = is_k_major ? 1 : ASSAY_FP8_GEMM_SLICE_K;
    side->k_stride = is_k_major ? ASSAY_FP8_GEMM_SIDE : 1;
    assay_fp8_codes(codes->format, side->table);
    for (int code = 0; code < 256; code++) {
        side->value_of[code] = side->table[code].value;
        side->facts_of[code] = facts_of(&side->table[code]);
    }
}

static float scale_at(const struct assay_tensor *scales, int64_t row, int64_t k_block)
{
    float value;
    const char *const from = scales->data;
    const int64_t element = row * scales->stride[0] + k_block * scales->stride[1];
    memcpy(&value, from + (size_t)element * sizeof value, sizeof value);
    return value;
}

void assay_fp8_gemm_side_start(struct assay_fp8_gemm_side *side, int64_t k_block)
{
    memset(side->facts, 0, sizeof side->facts);
    side->are_scales_finite = true;
    for (int64_t i = 0; i < side->count; i++) {
        const int64_t row = (side->first + i) / side->granularity;
        side->scale[i] = scale_at(side->scales, row, k_block);
        side->are_scales_finite &= isfinite(side->scale[i]) != 0;
    }
}

static uint64_t nonzero_word(const struct assay_fp8_gemm_side *side, const float *value,
                             int64_t count)
{
    uint64_t word = 0;
    for (int64_t k = 0; k < count; k++)
        word |= (uint64_t)(value[k * side->k_stride] != 0) << k;
    return word;
}

/* Elements [k, k + count) of the slice, of row @i, at most a word. */
static void load_word(struct assay_fp8_gemm_side *side, const unsigned char *from,
                      int64_t i, int64_t k, int64_t count)
{
    const int64_t stride = side->codes->stride[1], k_stride = side->k_stride;
    float *const value = side->value + i * side->row_stride + k * k_stride;
    uint64_t facts = 0;
    for (int64_t j = 0; j < count; j++) {
        const unsigned code = from[j * stride];
        facts |= side->facts_of[code];
        value[j * k_stride] = side->value_of[code];
    }
    const bool has_zero = facts & (IS_ZERO | IS_SPECIAL);
    side->nonzero[i][k / WORD] = has_zero        ? nonzero_word(side, value, count)
                                 : count == WORD ? UINT64_MAX
                                                 : (ONE << count) - 1;
    side->facts[i] |= facts;
    side->slice_facts |= facts;
}

void assay_fp8_gemm_side_load(struct assay_fp8_gemm_side *side, int64_t k0, int64_t count)
{
    const struct assay_tensor *const codes = side->codes;
    side->slice_facts = 0;
    for (int64_t k = 0; k < count; k += WORD)
        for (int64_t i = 0; i < side->count; i++) {
            const unsigned char *const from = (const unsigned char *)codes->data +
                                              (side->first + i) * codes->stride[0] +
                                              (k0 + k) * codes->stride[1];
            load_word(side, from, i, k, count - k < WORD ? count - k : WORD);
        }
}

void assay_fp8_gemm_side_finish(struct assay_fp8_gemm_side *side)
{
    uint64_t facts = 0;
    for (int i = 0; i < ASSAY_FP8_GEMM_SIDE; i++) {
        side->lsb[i] = lsb_in(side->facts[i]);
        side->exponent[i] = exponent_in(side->facts[i]);
        facts |= side->facts[i];
    }
    side->width = width_in(facts);
}

/* In integers: bits of floats of one sign are ordered like the floats, and loops without
 * floating-point comparisons can be vectorised. */
static inline int32_t read_bits(int32_t value, enum assay_fp8_reading reading,
                                int32_t limit)
{
    const int32_t magnitude = value & INT32_MAX;
    switch (reading) {
    case ASSAY_FP8_VALUE: return value;
    case ASSAY_FP8_MAGNITUDE: return magnitude;
    case ASSAY_FP8_PADDED:
        return (magnitude > limit ? magnitude : limit) & -(magnitude > 0);
    case ASSAY_FP8_LARGE_PART: return value & -(magnitude >= limit);
    case ASSAY_FP8_SMALL_PART: return value & -(magnitude < limit);
    case ASSAY_FP8_LARGE_MAGNITUDE: return magnitude & -(magnitude >= limit);
    case ASSAY_FP8_SMALL_MAGNITUDE: return magnitude & -(magnitude < limit);
    }
    return 0;
}

static inline double reading_of(float value, enum assay_fp8_reading reading,
                                int32_t limit)
{
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = read_bits(bits, reading, limit);
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* @lines lines of WORD values, @stride apart. */
#define READ(reading)                                                                    \
  for (int64_t line = 0; line < lines; line++, to += stride, from += stride)             \
    for (int i = 0; i < WORD; i++)                                                       \
      to[i] = reading_of(from[i], reading, limit);                                       \
  break

ASSAY_EACH_INSTRUCTION_SET
static void read_lines(double *restrict to, const float *restrict from, int64_t lines,
                       int64_t stride, enum assay_fp8_reading reading, int32_t limit)
{
    switch (reading) {
    case ASSAY_FP8_VALUE: READ(ASSAY_FP8_VALUE);
    case ASSAY_FP8_MAGNITUDE: READ(ASSAY_FP8_MAGNITUDE);
    case ASSAY_FP8_PADDED: READ(ASSAY_FP8_PADDED);
    case ASSAY_FP8_LARGE_PART: READ(ASSAY_FP8_LARGE_PART);
    case ASSAY_FP8_SMALL_PART: READ(ASSAY_FP8_SMALL_PART);
    case ASSAY_FP8_LARGE_MAGNITUDE: READ(ASSAY_FP8_LARGE_MAGNITUDE);
    case ASSAY_FP8_SMALL_MAGNITUDE: READ(ASSAY_FP8_SMALL_MAGNITUDE);
    }
}

void assay_fp8_gemm_side_read(struct assay_fp8_gemm_side *side, int64_t count,
                              enum assay_fp8_reading reading)
{
    const bool is_k_major = side->row_stride == 1;
    const float from = reading == ASSAY_FP8_PADDED
                           ? ldexpf(1, assay_fp8_smallest_exponent(side->codes->format))
                       : side->codes->format == ASSAY_E4M3 ? 0.0f
                                                           : SMALLEST_OF_LARGE;
    int32_t limit;
    memcpy(&limit, &from, sizeof limit);
    if (is_k_major) {
        read_lines(side->factor, side->value, count, WORD, reading, limit);
        return;
    }
    for (int64_t k = 0; k < count; k += WORD)
        read_lines(side->factor + k, side->value + k, side->count, side->row_stride,
                   reading, limit);
}

void assay_fp8_gemm_side_load_units(struct assay_fp8_gemm_side *side, int64_t k0,
                                    int64_t count)
{
    for (int64_t i = 0; i < side->count; i++) {
        uint32_t *const units = side->units + i * ASSAY_FP8_GEMM_SLICE_K;
        int64_t k = 0;
        for (; k < count; k++)
            units[k] = side->table[assay_fp8_gemm_side_code(side, i, k0 + k)].units;
        for (; k % WORD; k++)
            units[k] = 0;
    }
}
