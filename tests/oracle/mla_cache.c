/* SPDX-License-Identifier: MIT */
/* The oracle of the caches against bytes put in place by hand, searches over all codes
 * and quotients checked by multiplying back. */
#include "ref/oracle/mla_cache.h"

#include "tests/harness.h"

#include <math.h>
#include <string.h>

enum { PAGE = 3, TOKENS = 7, PADDING = 24, MOST_BYTES = 3 * (656 * PAGE + PADDING) };

static const struct assay_mla_cache_rules flashmla;
static const int token_bytes[4] = { 656, 584, 528, 288 };
static const int coded[4] = { 512, 448, 512, 512 }, tile[4] = { 128, 64, 32, 16 };

static struct fixture {
    struct assay_mla_cache_problem problem;
    struct assay_tensors tensors; /* x, k_cache */
    uint16_t x[TOKENS * ASSAY_MLA_MAX_D_QK];
    uint8_t cache[MOST_BYTES];
} fixture;

static uint64_t state;

static uint32_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 32);
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static double bf16_value(uint16_t bits)
{
    return (double)float_of((uint32_t)bits << 16);
}

static void set_up(int kv)
{
    const int64_t stride = token_bytes[kv] * PAGE + PADDING;
    const int64_t d_qk = kv == ASSAY_MLA_V32 ? 576 : 512;
    fixture.problem = (struct assay_mla_cache_problem){
        (enum assay_mla_kv)kv, TOKENS, PAGE, stride, true, false
    };
    fixture.tensors = (struct assay_tensors){
        .count = 2,
        .item = { { .name = "x",
                    .format = ASSAY_BF16,
                    .rank = 2,
                    .shape = { TOKENS, d_qk },
                    .stride = { d_qk, 1 },
                    .data = fixture.x },
                  { .name = "k_cache",
                    .format = ASSAY_U8,
                    .rank = 2,
                    .shape = { 3, stride - PADDING },
                    .stride = { stride, 1 },
                    .data = fixture.cache } },
    };
    memset(fixture.cache, 0xFF, sizeof(fixture.cache));
    memset(fixture.x, 0xFF, sizeof(fixture.x));
}

static double e4m3(int code)
{
    const int magnitude = code & 0x7F;
    double value = 0;
    for (int i = 0; i < magnitude; i++) /* steps of 2^-9, doubling every 8 from 16 on */
        value += i < 16 ? 0x1p-9 : ldexp(0x1p-9, i / 8 - 1);
    if (magnitude == 0x7F) return (double)NAN;
    return code & 0x80 ? -value : value;
}

static double e2m1(int code)
{
    static const double value[16] = { 0.0,  0.5,  1.0,  1.5,  2.0,  3.0,  4.0,  6.0,
                                      -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0 };
    return value[code];
}

static bool is_same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

/* Byte @byte of token @token; model1's scales lie behind the page's records. */
static uint8_t *byte_of(int token, int byte)
{
    const int kv = (int)fixture.problem.kv;
    uint8_t *const page =
        fixture.cache + (token / PAGE) * (token_bytes[kv] * PAGE + PADDING);
    if (kv != ASSAY_MLA_MODEL1) return page + token_bytes[kv] * (token % PAGE) + byte;
    if (byte < 576) return page + 576 * (token % PAGE) + byte;
    return page + 576 * PAGE + 8 * (token % PAGE) + byte - 576;
}

static void check_factors(int token, const double *code, const double *scale)
{
    double got_code[ASSAY_MLA_MAX_D_QK], got_scale[ASSAY_MLA_MAX_D_QK];
    assay_mla_cache_factors(&fixture.problem, &fixture.tensors, token, got_code,
                            got_scale);
    const int64_t d_qk = assay_mla_d_qk(fixture.problem.kv);
    for (int i = 0; i < d_qk; i++)
        if (!is_same(code[i], got_code[i]) || !is_same(scale[i], got_scale[i]))
            ck_abort_msg("kv %d, token %d, element %d", (int)fixture.problem.kv, token,
                         i);
}

/* Puts random codes and scales into all tokens' bytes and asks for their factors. */
static void check_random_tokens(int kv)
{
    static double code[TOKENS][ASSAY_MLA_MAX_D_QK], scale[TOKENS][ASSAY_MLA_MAX_D_QK];
    const bool is_fp4 = kv == ASSAY_MLA_V41_FP4;
    const int behind_codes = is_fp4 ? 256 : coded[kv];
    const int scales = kv == ASSAY_MLA_MODEL1 ? 576 : behind_codes;
    const int rope = kv == ASSAY_MLA_V32 ? 528 : 448;
    set_up(kv);
    for (int token = 0; token < TOKENS; token++) {
        for (int i = 0; i < coded[kv]; i++) {
            const uint8_t byte = (uint8_t)draw();
            if (!is_fp4) *byte_of(token, i) = byte;
            if (!is_fp4) code[token][i] = e4m3(byte);
            if (!is_fp4 || i % 2) continue;
            *byte_of(token, i / 2) = byte;
            code[token][i] = e2m1(byte % 16);
            code[token][i + 1] = e2m1(byte / 16);
        }
        for (int i = 0; i < coded[kv] / tile[kv]; i++) {
            const uint32_t bits = draw();
            double value =
                is_fp4 ? e4m3(bits & 0xFF) : ldexp(1, (int)(bits & 0xFF) - 127);
            if (!is_fp4 && (bits & 0xFF) == 0xFF) value = (double)NAN;
            if (kv == ASSAY_MLA_V32) value = (double)float_of(bits);
            for (int j = 0; j < (kv == ASSAY_MLA_V32 ? 4 : 1); j++)
                *byte_of(token, scales + i * (kv == ASSAY_MLA_V32 ? 4 : 1) + j) =
                    (uint8_t)(bits >> 8 * j);
            for (int j = i * tile[kv]; j < (i + 1) * tile[kv]; j++)
                scale[token][j] = value;
        }
        for (int i = coded[kv]; i < (kv == ASSAY_MLA_V32 ? 576 : 512); i++) {
            const uint16_t bits = (uint16_t)draw();
            *byte_of(token, rope + 2 * (i - coded[kv])) = (uint8_t)bits;
            *byte_of(token, rope + 2 * (i - coded[kv]) + 1) = (uint8_t)(bits >> 8);
            code[token][i] = bf16_value(bits);
            scale[token][i] = 1;
        }
    }
    for (int token = 0; token < TOKENS; token++)
        check_factors(token, code[token], scale[token]);
}

START_TEST(factors_are_those_of_the_bytes)
{
    for (int kv = 0; kv < 4; kv++)
        for (int i = 0; i < 50; i++)
            check_random_tokens(kv);
}
END_TEST

/* --- quantisation ----------------------------------------------------------------- */

static double amax_of(const uint16_t *x, int count)
{
    double amax = 0;
    for (int i = 0; i < count; i++)
        amax = fmax(amax, fabs(bf16_value(x[i])));
    return amax;
}

/* |q * denominator - numerator| is at most half a unit of q: the quotient, rounded once.
 * fma makes the left side exact but for one rounding. */
static bool is_rounded_quotient(double q, double numerator, double denominator)
{
    const double unit = fabs(nextafter(q, (double)INFINITY) - q);
    return fabs(fma(q, denominator, -numerator)) <= unit / 2 * denominator;
}

static double smallest_power(double amax, const struct assay_mla_cache_rules *rules)
{
    const double least = rules->raises_amax ? (double)1e-4f : 0;
    int exponent = rules->raises_amax ? -60 : -13; /* 2^-13 is the first above 1e-4 */
    while (ldexp(448, exponent) < fmax(amax, least))
        exponent++;
    return ldexp(1, exponent);
}

static double nearest_fp4_scale(double amax)
{
    int best = 1;
    for (int code = 2; code < 0x7F; code++) {
        const double is_now = fabs(6 * e4m3(code) - amax);
        const double was = fabs(6 * e4m3(best) - amax);
        if (is_now < was || (is_now == was && code % 2 == 0)) best = code;
    }
    return e4m3(best);
}

static void check_tile(const struct assay_mla_cache_rules *rules, const uint16_t *x,
                       int count, const double *quotient, double scale, bool is_exact)
{
    const bool is_raw =
        fixture.problem.kv == ASSAY_MLA_V32 && !fixture.problem.has_power_of_two_scale;
    const double amax = amax_of(x, count);
    double numerator = 1, denominator = scale;
    if (fixture.problem.kv == ASSAY_MLA_V41_FP4) {
        ck_assert(scale == nearest_fp4_scale(amax));
    } else if (!is_raw) {
        ck_assert(scale == smallest_power(amax, rules));
    } else if (!rules->raises_amax && amax < 448 * (double)1e-4f) {
        ck_assert(scale == (double)1e-4f && is_exact);
    } else {
        numerator = 448;
        denominator = rules->raises_amax ? fmax(amax, (double)1e-4f) : amax;
        ck_assert(is_rounded_quotient(scale, denominator, 448) && !is_exact);
    }
    for (int i = 0; i < count; i++)
        ck_assert(
            is_rounded_quotient(quotient[i], numerator * bf16_value(x[i]), denominator));
}

START_TEST(scales_and_quotients_are_exact_or_rounded_once)
{
    for (int kv = 0; kv < 4; kv++)
        for (int flags = 0; flags < 200; flags++) {
            const struct assay_mla_cache_rules rules = { .raises_amax = flags & 1 };
            set_up(kv);
            fixture.problem.has_power_of_two_scale = kv || flags & 2;
            const int d_qk = kv ? 512 : 576, row = 4 * d_qk;
            for (int i = 0; i < d_qk; i++) {
                const uint32_t exponent = 90 + draw() % 30 + (uint32_t)flags % 60;
                fixture.x[row + i] = (uint16_t)((draw() & 0x807F) | exponent << 7);
            }
            struct assay_mla_cache_quantised got;
            assay_mla_cache_quantised_of(&fixture.problem, &rules, &fixture.tensors, 4,
                                         &got);
            for (int i = 0; i < coded[kv] / tile[kv]; i++)
                check_tile(&rules, fixture.x + row + i * tile[kv], tile[kv],
                           got.quotient + i * tile[kv], got.scale[i],
                           got.is_scale_exact[i]);
            ck_assert_mem_eq(got.rope, fixture.x + row + coded[kv],
                             (size_t)(d_qk - coded[kv]) * 2);
        }
}
END_TEST

START_TEST(fp4_scale_of_every_amax_is_the_nearest)
{
    set_up(ASSAY_MLA_V41_FP4);
    for (uint32_t first = 0; first < 0x7F80; first += 32) {
        struct assay_mla_cache_quantised got;
        memset(fixture.x, 0, sizeof(fixture.x));
        for (uint32_t i = 0; i < 32; i++)
            fixture.x[16 * i + 5] = (uint16_t)(first + i);
        assay_mla_cache_quantised_of(&fixture.problem, &flashmla, &fixture.tensors, 0,
                                     &got);
        for (uint32_t i = 0; i < 32; i++)
            if (got.scale[i] != nearest_fp4_scale(bf16_value((uint16_t)(first + i))))
                ck_abort_msg("amax 0x%04x", first + i);
    }
}
END_TEST

/* Tile 1 has 1, infinity and minus 1, tile 2 has 1, NaN and minus 1; the others stay. */
START_TEST(infinity_and_nan_follow_the_rules)
{
    for (int kv = 0; kv < 4; kv++)
        for (int ignores_nan = 0; ignores_nan < 2; ignores_nan++) {
            const bool is_fp4 = kv == ASSAY_MLA_V41_FP4;
            const struct assay_mla_cache_rules rules = { .ignores_nan = ignores_nan };
            struct assay_mla_cache_quantised got;
            const int n = tile[kv];
            set_up(kv);
            memset(fixture.x, 0, sizeof(fixture.x));
            for (int i = 0; i < 3; i++) {
                fixture.x[i * n] = 0x3F80;
                fixture.x[i * n + 1] = i == 1 ? 0x7F80 : i == 2 ? 0x7FC0 : 0;
                fixture.x[i * n + 2] = 0xBF80;
            }
            assay_mla_cache_quantised_of(&fixture.problem, &rules, &fixture.tensors, 0,
                                         &got);
            const double usual = got.scale[0];
            ck_assert(isfinite(usual) && got.quotient[0] == 1 / usual);
            ck_assert(is_fp4 ? isnan(got.scale[1]) : isinf(got.scale[1]));
            ck_assert(isnan(got.quotient[n + 1]));
            ck_assert(is_fp4 ? isnan(got.quotient[n + 2])
                             : is_same(got.quotient[n + 2], -0.0));
            ck_assert(ignores_nan ? got.scale[2] == usual : isnan(got.scale[2]));
            ck_assert(isnan(got.quotient[2 * n + 1]));
            ck_assert(ignores_nan ? got.quotient[2 * n] == 1 / usual
                                  : isnan(got.quotient[2 * n]));
        }
}
END_TEST

/* --- nearest codes ---------------------------------------------------------------- */

static uint16_t bf16_bits_of(double value)
{
    const float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof(bits));
    ck_assert((double)narrow == value && (bits & 0xFFFF) == 0);
    return (uint16_t)(bits >> 16);
}

START_TEST(nearest_bf16_is_right_at_every_code_and_around_every_tie)
{
    for (uint16_t code = 0; code < 0x7F80; code++) {
        const double low = bf16_value(code);
        const double high = code == 0x7F7F ? 0x1p128 : bf16_value((uint16_t)(code + 1));
        const double tie = (low + high) / 2;
        const uint16_t up = (uint16_t)(code + 1), even = code % 2 ? up : code;
        if (bf16_bits_of(assay_mla_bf16_nearest(low)) != code ||
            bf16_bits_of(assay_mla_bf16_nearest(nextafter(tie, 0))) != code ||
            bf16_bits_of(assay_mla_bf16_nearest(tie)) != even ||
            bf16_bits_of(assay_mla_bf16_nearest(nextafter(tie, 0x1p200))) != up ||
            bf16_bits_of(assay_mla_bf16_nearest(-tie)) != (even | 0x8000))
            ck_abort_msg("code 0x%04x", code);
    }
    ck_assert(isnan(assay_mla_bf16_nearest((double)NAN)));
    ck_assert(assay_mla_bf16_nearest(-1e300) == -(double)INFINITY);
}
END_TEST

static void check_nearest(enum assay_format format, int last, double (*decode)(int))
{
    const uint32_t sign = format == ASSAY_E4M3 ? 0x80 : 8;
    for (int code = 0; code < last; code++) {
        const double low = decode(code), high = decode(code + 1);
        const double tie = (low + high) / 2;
        const uint32_t down = (uint32_t)code, up = down + 1, even = code % 2 ? up : down;
        ck_assert_uint_eq(assay_mla_code_nearest(format, low), down);
        ck_assert_uint_eq(assay_mla_code_nearest(format, nextafter(tie, 0)), down);
        ck_assert_uint_eq(assay_mla_code_nearest(format, tie), even);
        ck_assert_uint_eq(assay_mla_code_nearest(format, nextafter(tie, 1e9)), up);
        ck_assert_uint_eq(assay_mla_code_nearest(format, -low), down | sign);
        ck_assert_uint_eq(assay_mla_code_nearest(format, -tie), even | sign);
    }
    ck_assert_uint_eq(assay_mla_code_nearest(format, decode(last)), (uint32_t)last);
    ck_assert_uint_eq(assay_mla_code_nearest(format, 1e30), (uint32_t)last);
    ck_assert_uint_eq(assay_mla_code_nearest(format, -(double)INFINITY),
                      (uint32_t)last | sign);
    ck_assert_uint_eq(assay_mla_code_nearest(format, (double)NAN),
                      format == ASSAY_E4M3 ? 0x7F : 0);
}

START_TEST(nearest_codes_are_right_at_every_code_and_around_every_tie)
{
    check_nearest(ASSAY_E4M3, 0x7E, e4m3);
    check_nearest(ASSAY_E2M1, 7, e2m1);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        factors_are_those_of_the_bytes,
        scales_and_quotients_are_exact_or_rounded_once,
        fp4_scale_of_every_amax_is_the_nearest,
        infinity_and_nan_follow_the_rules,
        nearest_bf16_is_right_at_every_code_and_around_every_tie,
        nearest_codes_are_right_at_every_code_and_around_every_tie,
        NULL,
    };
    return run_tests("mla_cache", tests);
}
