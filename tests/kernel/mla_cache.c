/* SPDX-License-Identifier: MIT */
/* Quantisers on every amax and every element, and whole caches both ways, against
 * arithmetic written anew. */
#include "ref/kernel/mla_cache.h"

#include "ref/kernel/mla_attention.h"
#include "tests/harness.h"
#include "tests/kernel/cache_values.h"

enum { GUARD = 0xA5, LARGEST_BF16 = 0x7F7F };

static const struct assay_mla_cache_numerics quant = {
    .stage = { assay_mla_cache_amax, assay_mla_cache_scale, assay_mla_cache_payload },
};

/* --- quantisation: one tile ------------------------------------------------------- */

struct result {
    uint32_t scale;
    float divisor;
    uint8_t code[128];
};

static struct result tile_of(enum assay_mla_kv kv, bool is_power,
                             const struct assay_mla_cache_numerics *numerics,
                             const uint16_t *x)
{
    struct result result;
    struct assay_mla_cache_tile tile = { .layout = &assay_mla_token_layouts[kv],
                                         .numerics = numerics,
                                         .has_power_of_two_scale = is_power,
                                         .x = x,
                                         .code = result.code };
    numerics->stage.amax(&tile);
    numerics->stage.scale(&tile);
    numerics->stage.payload(&tile);
    result.scale = tile.scale;
    result.divisor = tile.divisor;
    return result;
}

/* Exponent of the smallest power of two that is not below max(amax / 448, 1e-4), by exact
 * comparisons. */
static int exponent_of(double amax)
{
    int exponent = -140;
    while (ldexp(448, exponent) < amax || ldexp(1, exponent) < (double)1e-4f)
        exponent++;
    return exponent;
}

START_TEST(power_of_two_scale_of_every_amax_is_right_in_every_layout)
{
    for (int reciprocal = 0; reciprocal < 2; reciprocal++)
        for (uint16_t amax = 0; amax <= LARGEST_BF16; amax++) {
            struct assay_mla_cache_numerics numerics = quant;
            uint16_t x[128] = { [9] = (uint16_t)(amax | 0x8000) };
            const int exponent = exponent_of((double)float_of((uint32_t)amax << 16));
            const uint32_t code = (uint32_t)(exponent + 127);
            numerics.reciprocal = reciprocal;
            if (tile_of(ASSAY_MLA_V32, true, &numerics, x).scale != code << 23 ||
                tile_of(ASSAY_MLA_MODEL1, true, &numerics, x).scale != code ||
                tile_of(ASSAY_MLA_V41_FP8, true, &numerics, x).scale != code)
                ck_abort_msg("amax 0x%04x", amax);
        }
}
END_TEST

/* Upstream rounds up by ceil(log2) in f32, which would go wrong within some units of f32
 * above a power of two. No amax of bf16 comes that close: even a logarithm that is 64
 * units off gives the same. */
START_TEST(a_logarithm_in_f32_gives_every_amax_the_same_scale)
{
    for (uint16_t amax = 0; amax <= LARGEST_BF16; amax++) {
        const float value = float_of((uint32_t)amax << 16);
        const float raw = fmaxf(value / 448.0f, 1e-4f);
        const float logarithm = (float)log2((double)raw);
        const int right = exponent_of((double)value);
        ck_assert_int_eq((int)ceilf(logarithm), right);
        if (raw == ldexpf(1, right)) continue; /* log2f is exact there */
        const float units = 64 * (nextafterf(fabsf(logarithm), 1e9f) - fabsf(logarithm));
        ck_assert_int_eq((int)ceilf(logarithm - units), right);
        ck_assert_int_eq((int)ceilf(logarithm + units), right);
    }
}
END_TEST

/* Nearest of all codes from 2^-9 to 448 to amax / 6, compared as |6 code - amax|, which
 * doubles hold exactly; ties go to the even code. */
static uint32_t fp4_scale_of(double amax)
{
    uint32_t best = 1;
    for (uint32_t code = 2; code <= 0x7E; code++) {
        const double is_now = fabs(6 * e4m3((int)code) - amax);
        const double was = fabs(6 * e4m3((int)best) - amax);
        if (is_now < was || (is_now == was && code % 2 == 0)) best = code;
    }
    return best;
}

START_TEST(fp4_scale_of_every_amax_is_the_nearest_code)
{
    for (uint16_t amax = 0; amax <= LARGEST_BF16; amax++) {
        uint16_t x[16] = { [3] = amax };
        const uint32_t right = fp4_scale_of((double)float_of((uint32_t)amax << 16));
        for (int reciprocal = 0; reciprocal < 2; reciprocal++) {
            struct assay_mla_cache_numerics numerics = quant;
            numerics.reciprocal = reciprocal;
            const uint32_t scale = tile_of(ASSAY_MLA_V41_FP4, true, &numerics, x).scale;
            if (scale != right) ck_abort_msg("amax 0x%04x: 0x%02x", amax, scale);
        }
    }
}
END_TEST

START_TEST(f32_scale_of_every_amax_is_its_quotient_and_at_least_1e_minus_4)
{
    const float inverse = (float)(1 / 448.0);
    for (uint16_t amax = 0; amax <= LARGEST_BF16; amax++) {
        uint16_t x[128] = { [127] = amax };
        const float value = float_of((uint32_t)amax << 16);
        const float right[3] = {
            fmaxf((float)((double)value / 448), 1e-4f),
            fmaxf((float)((double)value * (double)inverse), 1e-4f),
            (float)(fmax((double)value, (double)1e-4f) / 448),
        };
        for (int i = 0; i < 3; i++) {
            struct assay_mla_cache_numerics numerics = quant;
            numerics.reciprocal = i == 1;
            numerics.floor = i == 2 ? ASSAY_MLA_FLOOR_AMAX : ASSAY_MLA_FLOOR_SCALE;
            const struct result got = tile_of(ASSAY_MLA_V32, false, &numerics, x);
            if (got.scale != bits_of(right[i]) || got.divisor != right[i])
                ck_abort_msg("amax 0x%04x, %d", amax, i);
        }
    }
}
END_TEST

static uint8_t nearest_code(enum assay_mla_kv kv, float value)
{
    const bool is_fp4 = kv == ASSAY_MLA_V41_FP4;
    const int codes = is_fp4 ? 8 : 0x7F;
    double (*const decode)(int) = is_fp4 ? e2m1 : e4m3;
    int best = 0;
    if (isnan(value)) return is_fp4 ? 0 : 0x7F;
    for (int code = 1; code < codes; code++) {
        const double is_now = fabs(decode(code) - fabs((double)value));
        const double was = fabs(decode(best) - fabs((double)value));
        if (is_now < was || (is_now == was && code % 2 == 0)) best = code;
    }
    if (isinf(value)) best = codes - 1;
    return (uint8_t)(signbit(value) ? best | (is_fp4 ? 8 : 0x80) : best);
}

/* With the largest code in each tile the scale is 1 and the payload is x itself. */
START_TEST(every_bf16_becomes_its_nearest_code)
{
    for (int kv = ASSAY_MLA_V32; kv <= ASSAY_MLA_V41_FP4; kv++) {
        const int count = assay_mla_token_layouts[kv].scale_dims;
        const float largest = kv == ASSAY_MLA_V41_FP4 ? 6 : 448;
        for (uint32_t first = 0; first < 1 << 16; first += (uint32_t)count - 1) {
            uint16_t x[128] = { (uint16_t)(bits_of(largest) >> 16) };
            for (int i = 1; i < count; i++) {
                const uint32_t next = first + (uint32_t)i - 1;
                const float value = float_of(next << 16);
                x[i] = (uint16_t)(next < 1 << 16 && fabsf(value) <= largest ? next : 0);
            }
            for (int payload = 0; payload < 2; payload++) {
                struct assay_mla_cache_numerics numerics = quant;
                numerics.payload = payload;
                const struct result got =
                    tile_of((enum assay_mla_kv)kv, true, &numerics, x);
                ck_assert(got.divisor == 1.0f);
                for (int i = 0; i < count; i++)
                    if (got.code[i] != nearest_code((enum assay_mla_kv)kv,
                                                    float_of((uint32_t)x[i] << 16)))
                        ck_abort_msg("kv %d, x 0x%04x", kv, x[i]);
            }
        }
    }
}
END_TEST

/* transformers issue 47030: payload by the raw scale, then the scale is rounded up. */
START_TEST(the_scale_is_rounded_up_before_the_payload_is_divided_by_it)
{
    uint16_t x[128];
    for (int i = 0; i < 128; i++)
        x[i] = 0x4396; /* 300 */
    const struct result got = tile_of(ASSAY_MLA_V32, true, &quant, x);
    ck_assert_uint_eq(got.scale, 0x3F800000);
    ck_assert_uint_eq(got.code[0], 0x79); /* 288 */
}
END_TEST

START_TEST(infinity_and_nan_spoil_their_tile)
{
    static const uint16_t spoilers[3] = { 0x7F80, 0xFF80, 0x7FC0 };
    static const uint32_t nan_scale[4] = { 0x7FFFFFFF, 0xFF, 0xFF, 0x7F };
    for (int kv = ASSAY_MLA_V32; kv <= ASSAY_MLA_V41_FP4; kv++)
        for (int i = 0; i < 3; i++) {
            const bool is_fp4 = kv == ASSAY_MLA_V41_FP4, is_nan = i == 2;
            const uint16_t x[128] = { 0x3F80, spoilers[i], 0xBF80 };
            const struct result got = tile_of((enum assay_mla_kv)kv, true, &quant, x);
            const bool is_infinite = kv == ASSAY_MLA_V32 && !is_nan;
            ck_assert_uint_eq(got.scale, is_infinite ? 0x7F800000 : nan_scale[kv]);
            ck_assert_uint_eq(got.code[0], is_nan && !is_fp4 ? 0x7F : 0);
            ck_assert_uint_eq(got.code[1], is_fp4 ? 0 : 0x7F);
            ck_assert_uint_eq(got.code[2], is_fp4 ? 0 : is_nan ? 0x7F : 0x80);
        }
}
END_TEST

START_TEST(an_ignored_nan_spoils_only_itself)
{
    const uint16_t x[128] = { 0x43E0 /* 448 */, 0x7FC0, 0x4000 };
    struct assay_mla_cache_numerics numerics = quant;
    numerics.nan = ASSAY_MLA_AMAX_IGNORES_NAN;
    const struct result got = tile_of(ASSAY_MLA_V41_FP8, true, &numerics, x);
    ck_assert_uint_eq(got.scale, 127);
    ck_assert_uint_eq(got.code[0], 0x7E);
    ck_assert_uint_eq(got.code[1], 0x7F);
    ck_assert_uint_eq(got.code[2], 0x40);
}
END_TEST

START_TEST(fp4_codes_saturate_and_scales_are_clamped)
{
    const uint16_t huge[16] = { 0x7F00, 0xFF00, 0x4500 /* 2048 */ };
    const uint16_t tiny[16] = { 0x3A80 /* 2^-10 */, 0x3B00 /* 2^-9 */, 0xBA80 };
    const struct result large = tile_of(ASSAY_MLA_V41_FP4, true, &quant, huge);
    const struct result small = tile_of(ASSAY_MLA_V41_FP4, true, &quant, tiny);
    ck_assert_uint_eq(large.scale, 0x7E);
    ck_assert_uint_eq(large.code[0], 7);
    ck_assert_uint_eq(large.code[1], 15);
    ck_assert_uint_eq(large.code[2], 6); /* 4.57 */
    ck_assert_uint_eq(small.scale, 0x01);
    ck_assert_uint_eq(small.code[0], 1);
    ck_assert_uint_eq(small.code[1], 2);
    ck_assert_uint_eq(small.code[2], 9);
}
END_TEST

/* --- quantisation and dequantisation: whole caches -------------------------------- */

enum { MOST_TOKENS = 11, MOST_PAGE_BYTES = 656 * 4 + 40, MOST_PAGES = 6 };

static struct fixture {
    struct assay_mla_cache_problem problem;
    struct assay_tensors tensors; /* x, k_cache, key */
    uint16_t x[MOST_TOKENS * ASSAY_MLA_MAX_D_QK], key[MOST_TOKENS * ASSAY_MLA_MAX_D_QK];
    uint8_t cache[MOST_PAGES * MOST_PAGE_BYTES], right[MOST_PAGES * MOST_PAGE_BYTES];
} fixture;

static struct assay_tensor matrix(const char *name, enum assay_format format,
                                  int64_t rows, int64_t columns, int64_t stride,
                                  void *data)
{
    return (struct assay_tensor){ .name = name,
                                  .format = format,
                                  .rank = 2,
                                  .shape = { rows, columns },
                                  .stride = { stride, 1 },
                                  .data = data };
}

static void set_up(enum assay_mla_kv kv, int tokens, int page_size, int padding)
{
    const int64_t page_bytes = assay_mla_token_layouts[kv].token_bytes * page_size;
    const int64_t d_qk = assay_mla_d_qk(kv);
    fixture.problem =
        (struct assay_mla_cache_problem){ kv,   tokens, page_size, page_bytes + padding,
                                          true, false };
    const int64_t pages = assay_mla_cache_pages(&fixture.problem);
    fixture.tensors.count = 3;
    fixture.tensors.item[0] = matrix("x", ASSAY_BF16, tokens, d_qk, d_qk, fixture.x);
    fixture.tensors.item[1] = matrix("k_cache", ASSAY_U8, pages, page_bytes,
                                     page_bytes + padding, fixture.cache);
    fixture.tensors.item[2] = matrix("key", ASSAY_BF16, tokens, d_qk, d_qk, fixture.key);
    memset(fixture.cache, GUARD, sizeof(fixture.cache));
    memset(fixture.right, GUARD, sizeof(fixture.right));
    for (int64_t i = 0; i < tokens * d_qk; i++)
        fixture.x[i] = (uint16_t)((draw() & 0x807F) | (110 + draw() % 24) << 7);
}

static float plain_scale(float amax, const struct assay_mla_cache_numerics *numerics)
{
    const bool is_raw =
        fixture.problem.kv == ASSAY_MLA_V32 && !fixture.problem.has_power_of_two_scale;
    if (fixture.problem.kv == ASSAY_MLA_V41_FP4)
        return (float)e4m3((int)fp4_scale_of((double)amax));
    const float inverse = 1.0f / 448.0f;
    const bool is_floor_of_amax = numerics->floor == ASSAY_MLA_FLOOR_AMAX;
    if (is_floor_of_amax) amax = fmaxf(amax, 1e-4f);
    float scale = numerics->reciprocal ? amax * inverse : amax / 448.0f;
    if (!is_floor_of_amax) scale = fmaxf(scale, 1e-4f);
    return is_raw ? scale : exp2f(ceilf(log2f(scale)));
}

/* The token once more, in plain float arithmetic. */
static struct assay_mla_token plain_token(int64_t token,
                                          const struct assay_mla_cache_numerics *numerics)
{
    const enum assay_mla_kv kv = fixture.problem.kv;
    const struct assay_mla_token_layout *const layout = &assay_mla_token_layouts[kv];
    const uint16_t *const x = fixture.x + token * layout->d_qk;
    struct assay_mla_token result;
    for (int tile = 0; tile < layout->scales; tile++) {
        const int first = tile * layout->scale_dims, end = first + layout->scale_dims;
        float amax = 0;
        for (int i = first; i < end; i++)
            amax = fmaxf(amax, fabsf(float_of((uint32_t)x[i] << 16)));
        const float scale = plain_scale(amax, numerics);
        for (int i = first; i < end; i++) {
            const float value = float_of((uint32_t)x[i] << 16);
            result.code[i] =
                nearest_code(kv, numerics->payload ? value * (1 / scale) : value / scale);
        }
        result.scale[tile] = bits_of(scale);
        if (layout->scale == ASSAY_UE8M0) result.scale[tile] >>= 23;
        if (layout->scale == ASSAY_E4M3) result.scale[tile] = fp4_scale_of((double)amax);
    }
    memcpy(result.rope, x + layout->coded_dims, (size_t)layout->rope_dims * 2);
    return result;
}

static void check_cache(const struct assay_mla_cache_numerics *numerics)
{
    const struct assay_mla_cache_problem *const p = &fixture.problem;
    for (int64_t part = 0; part < assay_mla_cache_pages(p); part++)
        assay_mla_cache_quantise_model(p, numerics, &fixture.tensors, part);
    for (int64_t i = 0; i < p->tokens; i++) {
        const struct assay_mla_token token = plain_token(i, numerics);
        assay_mla_token_pack(&assay_mla_token_layouts[p->kv], p->page_size,
                             i % p->page_size, &token,
                             fixture.right + i / p->page_size * p->page_stride);
    }
    ck_assert_msg(memcmp(fixture.cache, fixture.right, sizeof(fixture.cache)) == 0,
                  "kv %d, %d tokens, pages of %d", (int)p->kv, (int)p->tokens,
                  (int)p->page_size);
}

START_TEST(whole_caches_equal_plain_arithmetic_and_leave_the_rest_alone)
{
    for (int kv = ASSAY_MLA_V32; kv <= ASSAY_MLA_V41_FP4; kv++)
        for (int page_size = 1; page_size <= 4; page_size++)
            for (int flags = 0; flags < 16; flags++) {
                struct assay_mla_cache_numerics numerics = quant;
                const int tokens =
                    page_size == 1 ? MOST_PAGES : 1 + (int)(draw() % MOST_TOKENS);
                numerics.reciprocal = flags & 1;
                numerics.payload = flags >> 1 & 1;
                numerics.floor = flags >> 2 & 1;
                set_up((enum assay_mla_kv)kv, tokens, page_size, flags * 2);
                fixture.problem.has_power_of_two_scale = kv || flags >> 3;
                check_cache(&numerics);
            }
}
END_TEST

START_TEST(whole_caches_are_dequantised_token_by_token)
{
    for (int kv = ASSAY_MLA_V32; kv <= ASSAY_MLA_V41_FP4; kv++) {
        const struct assay_mla_token_layout *const layout = &assay_mla_token_layouts[kv];
        const struct assay_mla_cache_problem *const p = &fixture.problem;
        set_up((enum assay_mla_kv)kv, 7, 3, 16);
        struct assay_mla_token token[7];
        for (int i = 0; i < 7; i++) {
            token[i] = plain_token(i, &quant);
            assay_mla_token_pack(layout, 3, i % 3, &token[i],
                                 fixture.cache + i / 3 * p->page_stride);
        }
        for (int64_t part = 0; part < 3; part++)
            assay_mla_cache_dequantise_model(p, ASSAY_MLA_SCALE_TO_BF16, &fixture.tensors,
                                             part);
        for (int i = 0; i < 7; i++) {
            uint16_t key[ASSAY_MLA_MAX_D_QK];
            assay_mla_dequantise(layout, ASSAY_MLA_SCALE_TO_BF16, &token[i], key);
            ck_assert_mem_eq(fixture.key + i * layout->d_qk, key,
                             (size_t)layout->d_qk * 2);
        }
    }
}
END_TEST

static void halve_the_divisor(struct assay_mla_cache_tile *tile)
{
    assay_mla_cache_scale(tile);
    tile->divisor /= 2;
}

START_TEST(a_replaced_stage_is_the_one_that_runs)
{
    struct assay_mla_cache_numerics numerics = quant;
    set_up(ASSAY_MLA_V41_FP8, 1, 1, 0);
    for (int i = 0; i < 512; i++)
        fixture.x[i] = 0x4320; /* 160 */
    numerics.stage.scale = halve_the_divisor;
    assay_mla_cache_quantise_model(&fixture.problem, &numerics, &fixture.tensors, 0);
    ck_assert_uint_eq(fixture.cache[0], 0x7E); /* 160 / 0.25, saturated */
    ck_assert_uint_eq(fixture.cache[512], 126);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        power_of_two_scale_of_every_amax_is_right_in_every_layout,
        a_logarithm_in_f32_gives_every_amax_the_same_scale,
        fp4_scale_of_every_amax_is_the_nearest_code,
        f32_scale_of_every_amax_is_its_quotient_and_at_least_1e_minus_4,
        every_bf16_becomes_its_nearest_code,
        the_scale_is_rounded_up_before_the_payload_is_divided_by_it,
        infinity_and_nan_spoil_their_tile,
        an_ignored_nan_spoils_only_itself,
        fp4_codes_saturate_and_scales_are_clamped,
        whole_caches_equal_plain_arithmetic_and_leave_the_rest_alone,
        whole_caches_are_dequantised_token_by_token,
        a_replaced_stage_is_the_one_that_runs,
        NULL,
    };
    return run_tests("mla_cache", tests);
}
