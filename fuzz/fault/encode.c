/* SPDX-License-Identifier: MIT */
/* Faults of number formats: decoding of operands, quantisers, conversions. */
#include "fuzz/fault/fault.h"
#include "ref/format/minifloat.h"
#include "ref/kernel/mla_attention.h"
#include "ref/kernel/mla_cache.h"
#include "ref/kernel/quantise.h"
#include "ref/kernel/unit.h"
#include "verify/operation/mla_cache/mla_cache.h"

#include <math.h>
#include <string.h>

#define QUANTISER(numerics) ((struct assay_quantise_numerics *)(numerics))
#define CACHE(numerics)     ((struct assay_mla_cache_numerics *)(numerics))

#define TURN(function, type, field, value)                                               \
  static void function(void *numerics)                                                   \
  {                                                                                      \
    ((struct type *)numerics)->field = (value);                                          \
  }

/* --- decoding --------------------------------------------------------------------- */

static void recode_a(struct assay_fault_run *run, uint8_t (*recode)(uint8_t code))
{
    const struct assay_tensor *const a = assay_fault_tensor(run, "a");
    for (int64_t i = 0; a->format == ASSAY_E4M3 && i < assay_tensor_elements(a); i++)
        assay_tensor_set_bits(a, i, recode((uint8_t)assay_tensor_bits(a, i)));
}

static uint8_t nan_as_number(uint8_t code)
{
    return (code & 0x7F) == 0x7F ? code - 1 : code;
}

static uint8_t minus_zero_as_nan(uint8_t code)
{
    return code == 0x80 ? 0x7F : code;
}

static uint8_t large_as_nan(uint8_t code)
{
    return (code & 0x7F) > 0x78 ? 0x7F : code;
}

/* (8 + m) / 8 * 2^-7, to the nearest code below 2^-6. */
static uint8_t subnormal_as_normal(uint8_t code)
{
    const int magnitude = code & 0x7F;
    const int changed = magnitude > 0 && magnitude < 8 ? (8 + magnitude) / 2 : magnitude;
    return (uint8_t)((code & 0x80) | changed);
}

static uint8_t subnormal_as_zero(uint8_t code)
{
    return (code & 0x7F) < 8 ? code & 0x80 : code;
}

static uint8_t without_sign(uint8_t code)
{
    return code & 0x7F;
}

#define RECODE(function, recode)                                                         \
  static void function(struct assay_fault_run *run)                                      \
  {                                                                                      \
    recode_a(run, recode);                                                               \
  }
RECODE(decode_nan_as_number, nan_as_number)
RECODE(decode_minus_zero_as_nan, minus_zero_as_nan)
RECODE(decode_large_as_nan, large_as_nan)
RECODE(decode_subnormal_as_normal, subnormal_as_normal)
RECODE(flush_codes, subnormal_as_zero)
RECODE(lose_signs, without_sign)

/* Groups whose exponent code is 0 vanish. */
static void vanish_at_code_zero(struct assay_fault_run *run)
{
    enum { IN_WORD = 4, GROUP = 128 };
    const struct assay_tensor *const words = assay_fault_tensor(run, "sfa");
    const struct assay_tensor *const a = assay_fault_tensor(run, "a");
    const int64_t k = a->shape[1];
    for (int64_t i = 0; words->format == ASSAY_I32 && i < assay_tensor_elements(a); i++) {
        const int64_t group = i % k / GROUP, row = i / k;
        const uint32_t word =
            assay_tensor_bits(words, group / IN_WORD * a->shape[0] + row);
        if ((word >> 8 * (group % IN_WORD) & 0xFF) == 0) assay_tensor_set_bits(a, i, 0);
    }
}

/* --- scales of the quantiser ------------------------------------------------------ */

static void set_power(struct assay_quantise_block *block, float scale)
{
    if (!block->problem->has_power_of_two_scale) return;
    block->scale = block->divisor = scale;
}

static float raw_scale(const struct assay_quantise_block *block)
{
    return block->amax / 448;
}

static void scale_rounded_down(struct assay_quantise_block *block)
{
    assay_quantise_scale(block);
    if (isfinite(block->amax)) set_power(block, ldexpf(1, ilogbf(raw_scale(block))));
}

static void scale_by_logarithm(struct assay_quantise_block *block)
{
    assay_quantise_scale(block);
    if (isfinite(block->amax)) set_power(block, exp2f(ceilf(log2f(raw_scale(block)))));
}

static void scale_by_frexp(struct assay_quantise_block *block)
{
    int exponent;
    assay_quantise_scale(block);
    if (!isfinite(block->amax)) return;
    frexpf(raw_scale(block), &exponent);
    set_power(block, ldexpf(1, exponent));
}

static void scale_of_bf16_amax(struct assay_quantise_block *block)
{
    const struct assay_minifloat *const bf16 = assay_minifloat(ASSAY_BF16);
    block->amax = (float)assay_minifloat_decode(
        bf16, assay_minifloat_encode_f32(bf16, block->amax, ASSAY_OVERFLOW_SPECIAL));
    assay_quantise_scale(block);
}

static void scale_with_floor(struct assay_quantise_block *block)
{
    assay_quantise_scale(block);
    if (block->scale < 1e-4f) block->scale = block->divisor = 1e-4f;
}

static void scale_clamped_apart(struct assay_quantise_block *block)
{
    const float amax = block->amax;
    assay_quantise_scale(block);
    if (amax <= 1e-4f) block->divisor = block->scale / 64;
}

static void amax_without_floor(struct assay_quantise_block *block)
{
    float amax = 0;
    assay_quantise_amax(block);
    if (!isfinite(block->amax)) return;
    for (int64_t row = block->m0; row < block->m0 + block->rows; row++)
        for (int64_t column = block->k0; column < block->k0 + block->columns; column++)
            amax = fmaxf(amax, fabsf(assay_fault_value(block->x, row * block->problem->k +
                                                                     column)));
    block->amax = amax;
}

static void amax_of_first_half(struct assay_quantise_block *block)
{
    const int64_t columns = block->columns;
    if (columns > 1) block->columns = columns / 2;
    assay_quantise_amax(block);
    block->columns = columns;
}

#define QUANTISE_STAGE(function, part, with)                                             \
  static void function(void *numerics)                                                   \
  {                                                                                      \
    QUANTISER(numerics)->stage.part = with;                                              \
  }
QUANTISE_STAGE(round_down, scale, scale_rounded_down)
QUANTISE_STAGE(take_logarithm, scale, scale_by_logarithm)
QUANTISE_STAGE(take_frexp, scale, scale_by_frexp)
QUANTISE_STAGE(round_amax, scale, scale_of_bf16_amax)
QUANTISE_STAGE(floor_scale, scale, scale_with_floor)
QUANTISE_STAGE(clamp_scale_only, scale, scale_clamped_apart)
QUANTISE_STAGE(no_floor, amax, amax_without_floor)
QUANTISE_STAGE(half_of_block, amax, amax_of_first_half)
TURN(quantise_by_raw_scale, assay_quantise_numerics, order, ASSAY_QUANTISE_BY_RAW_SCALE)
TURN(divide, assay_quantise_numerics, payload, ASSAY_PAYLOAD_DIVIDED)
TURN(ignore_nan, assay_quantise_numerics, nan, ASSAY_AMAX_IGNORES_NAN)
TURN(reciprocal, assay_quantise_numerics, reciprocal, 1)

/* --- payload of the quantiser ----------------------------------------------------- */

/* Calls @recode with every code that was written and the value it stands for. */
static void payload_recoded(struct assay_quantise_block *block,
                            uint8_t (*recode)(uint8_t code, float value))
{
    assay_quantise_payload(block);
    for (int64_t row = block->m0; row < block->m0 + block->rows; row++)
        for (int64_t column = block->k0; column < block->k0 + block->columns; column++) {
            const int64_t at = row * block->problem->k + column;
            const float value = assay_fault_value(block->x, at) / block->divisor;
            assay_tensor_set_bits(
                block->q, at, recode((uint8_t)assay_tensor_bits(block->q, at), value));
        }
}

static float magnitude_of(uint8_t code)
{
    return (float)assay_minifloat_decode(assay_minifloat(ASSAY_E4M3), code & 0x7F);
}

static uint8_t cut(uint8_t code, float value)
{
    return (code & 0x7F) && magnitude_of(code) > fabsf(value) ? code - 1 : code;
}

static uint8_t saturate_early(uint8_t code, float value)
{
    (void)value;
    return (code & 0x7F) >= 0x78 && (code & 0x7F) < 0x7F ? (code & 0x80) | 0x7E : code;
}

static uint8_t nan_saturated(uint8_t code, float value)
{
    (void)value;
    return (code & 0x7F) == 0x7F ? 0x7E : code;
}

#define PAYLOAD(function, recode)                                                        \
  static void recode##_payload(struct assay_quantise_block *block)                       \
  {                                                                                      \
    payload_recoded(block, recode);                                                      \
  }                                                                                      \
  QUANTISE_STAGE(function, payload, recode##_payload)
PAYLOAD(cut_payload_bits, cut)
PAYLOAD(saturate_at_exponent, saturate_early)
PAYLOAD(saturate_nan, nan_saturated)
TURN(round_half_up, assay_quantise_numerics, ties, ASSAY_E4M3_TIES_AWAY)
TURN(drop_sign_of_zero, assay_quantise_numerics, zero, ASSAY_E4M3_ZERO_UNSIGNED)

/* --- caches and conversions ------------------------------------------------------- */

TURN(inverse_for_cache, assay_mla_cache_numerics, payload,
     ASSAY_MLA_PAYLOAD_TIMES_INVERSE)
TURN(floor_cache_amax, assay_mla_cache_numerics, floor, ASSAY_MLA_FLOOR_AMAX)
TURN(multiply_keys, assay_mla_dequantise_numerics, dequantisation, ASSAY_MLA_F32_PRODUCT)
TURN(convert_to_special, assay_convert_numerics, overflow, ASSAY_CONVERT_SPECIAL)
TURN(convert_by_cutting, assay_convert_numerics, rounding, ASSAY_CONVERT_TOWARD_ZERO)
TURN(round_ex2, assay_sfu_numerics, rounding, ASSAY_SFU_ROUNDED)

#define GEMM_CASE "fp8_gemm_nt m=8 n=16 k=128 out=f32 seed=2 "
#define TOKENS    "quantise m=4 k=256 x_format=f32 seed=2"
#define POWERS    "quantise m=4 k=256 scale=ue8m0 x_format=f32 seed=2"
/* A NaN and an infinity. */
#define ODD "quantise m=2 k=8 x_format=f32 seed=2 bits=x.0.0:7fc00000,x.1.2:7f800000"
/* About 1e-6 and less. */
#define TINY                                                                             \
  "quantise m=2 k=4 x_format=f32 seed=2 "                                                \
  "bits=x.0.0:358637bd,x.0.1:b5000000,x.0.2:34000000,x.0.3:0"
/* Amax of column 0: 448, 448 + a little, and 448 * 2^-10 * (1 + 2^-23). */
#define EXACT_AMAX                                                                       \
  "quantise m=1 k=8 scale=ue8m0 x_format=f32 data=subnormal seed=2 "                     \
  "bits=x.0.0:43e00000"
#define LATE_AMAX                                                                        \
  "quantise m=1 k=8 scale=ue8m0 x_format=f32 data=subnormal seed=2 "                     \
  "bits=x.0.0:43e00100"
#define NEAR_POWER                                                                       \
  "quantise m=1 k=8 scale=ue8m0 x_format=f32 data=subnormal seed=2 "                     \
  "bits=x.0.0:3ee00001"
#define ZEROS                                                                            \
  "quantise m=2 k=4 x_format=f32 seed=2 bits=x.0.0:0,x.0.1:80000000,x.0.2:0,x.0.3:0"

#define IN(op, sort)   .operation = op, .kind = ASSAY_FAULT_##sort
#define DECODING       IN("fp8_gemm_nt", FUNCTION)
#define QUANTISE(sort) IN("quantise", sort)

const struct assay_fault assay_faults_encode[] = {
    { "nan-as-480", "C13a", "R38", "code 0x7F is read as a number", DECODING,
      .cases = { GEMM_CASE "bits=a.3.5:7f" }, .before = decode_nan_as_number },
    { "minus-zero-as-nan", "C13b", "R38", "code 0x80 is read as NaN", DECODING,
      .cases = { GEMM_CASE "bits=a.3.5:80" }, .before = decode_minus_zero_as_nan },
    { "large-as-nan", "C13", "R38", "288 to 448 are read as NaN", DECODING,
      .cases = { GEMM_CASE "bits=a.3.5:7a" }, .before = decode_large_as_nan },
    { "subnormal-as-normal", "C13d", "R38", "subnormals by the formula of normal codes",
      DECODING, .cases = { GEMM_CASE "data=subnormal" },
      .before = decode_subnormal_as_normal },
    { "subnormal-code-flushed", "C13", NULL, "subnormal codes are read as zero", DECODING,
      .cases = { GEMM_CASE "data=subnormal" }, .before = flush_codes },
    { "sign-lost", "C13", NULL, "signs of a are lost", DECODING, .cases = { GEMM_CASE },
      .before = lose_signs },
    { "exponent-code-zero", "C02a", "R06", "exponent code 0 is read as 0.0, not 2^-127",
      DECODING,
      .cases = { "fp8_gemm_nt m=4 n=8 k=128 recipe=mx out=f32 data=positive seed=2 "
                 "bits=sfa.0.1:00000000,sfa.0.2:00000000" },
      .before = vanish_at_code_zero },
    { "power-rounded-down", "C01a", "R04", "scales are rounded down to a power of two",
      QUANTISE(FUNCTION), .cases = { POWERS }, .numerics = round_down },
    { "power-by-logarithm", "C01b", "R03", "the exponent from an f32 logarithm",
      QUANTISE(FUNCTION), .cases = { NEAR_POWER }, .numerics = take_logarithm },
    { "power-by-frexp", "C01c", "R04", "exact powers of two are doubled",
      QUANTISE(FUNCTION), .cases = { EXACT_AMAX }, .numerics = take_frexp },
    { "amax-in-bf16", "C01d", "R04", "amax is rounded to bf16 before its scale",
      QUANTISE(FUNCTION), .cases = { LATE_AMAX }, .numerics = round_amax },
    { "raw-scale-payload", "C03a", "R02", "payload by the raw scale, stored rounded",
      QUANTISE(FUNCTION), .cases = { POWERS }, .numerics = quantise_by_raw_scale },
    { "payload-divided", "C03b", NULL, "the payload is divided, not multiplied",
      QUANTISE(ROUNDING),
      .cases = { "quantise m=32 k=1066 granularity=block seed=3887595291" },
      .numerics = divide },
    { "scale-by-reciprocal", "C03b", NULL, "scales by the reciprocal of 448",
      QUANTISE(ROUNDING), .cases = { TOKENS }, .numerics = reciprocal },
    { "scale-clamped-alone", "C03c", "R21", "amax is clamped for the scale alone",
      QUANTISE(FUNCTION), .cases = { TINY }, .numerics = clamp_scale_only },
    { "amax-without-floor", "C11a", "R20", "no floor under amax: zeros divide by zero",
      QUANTISE(FUNCTION), .cases = { ZEROS }, .numerics = no_floor },
    { "floor-on-scale", "C11b", "R21", "the floor is put under the scale, not amax",
      QUANTISE(FUNCTION), .cases = { TINY }, .numerics = floor_scale },
    { "amax-half-block", "C11", NULL, "amax of half of the block", QUANTISE(FUNCTION),
      .cases = { TOKENS }, .numerics = half_of_block },
    { "amax-ignores-nan", "C11", NULL, "amax passes NaN over", QUANTISE(FUNCTION),
      .cases = { ODD }, .numerics = ignore_nan },
    { "payload-cut", "C12b", "R37", "the payload is cut, not rounded", QUANTISE(FUNCTION),
      .cases = { TOKENS }, .numerics = cut_payload_bits, .must_catch = "bound" },
    { "nan-saturated", "C12c", "R37", "NaN becomes 448", QUANTISE(FUNCTION),
      .cases = { ODD }, .numerics = saturate_nan },
    { "zero-sign-lost", "C12d", NULL, "-0 becomes +0", QUANTISE(ROUNDING),
      .cases = { ZEROS }, .numerics = drop_sign_of_zero },
    { "saturates-at-256", "C12e", "R37", "all from 256 up becomes 448",
      QUANTISE(FUNCTION), .cases = { TOKENS }, .numerics = saturate_at_exponent },
    { "half-up", "C12f", "R37", "ties are rounded up, not to even", QUANTISE(ROUNDING),
      .cases = { "quantise m=4 k=256 data=ties seed=2" }, .numerics = round_half_up },
    { "cache-inverse", "C03b", NULL, "the cache's payload by a reciprocal",
      IN("mla_cache_quantise", ROUNDING),
      .cases = { "mla_cache_quantise kv=v32 tokens=40 scale=f32 seed=2" },
      .numerics = inverse_for_cache },
    { "cache-floor-on-amax", "C11b", "R21", "the cache's floor is put under amax",
      IN("mla_cache_quantise", FUNCTION),
      .cases = { "mla_cache_quantise kv=v32 tokens=4 data=wide seed=2" },
      .numerics = floor_cache_amax },
    { "key-multiplied", "C03b", NULL, "keys by f32 scales, not by bf16 ones",
      IN("mla_cache_dequantise", ROUNDING),
      .cases = { "mla_cache_dequantise kv=v32 tokens=4 scale=f32 seed=2" },
      .numerics = multiply_keys },
    { "convert-overflow", "C12a", "R37", "conversion to e4m3 does not saturate",
      IN("convert", FUNCTION),
      .cases = { "convert from=f32 to=e4m3 count=500 data=special seed=2" },
      .numerics = convert_to_special },
    { "convert-cut", "C15a", "R39", "conversion to bf16 by cutting",
      IN("convert", ROUNDING), .cases = { "convert from=f32 to=bf16 count=500 seed=2" },
      .numerics = convert_by_cutting, .must_catch = "bitwise bound" },
    { "ex2-rounded", "C37", NULL, "2^x correctly rounded", IN("sfu", ROUNDING),
      .cases = { "sfu function=ex2 count=500 seed=2" }, .numerics = round_ex2 },
    { .name = NULL },
};
