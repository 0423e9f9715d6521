/* SPDX-License-Identifier: MIT */
/* Dequantisers on every pair of code and scale, and on 10,000 scales in f32, against
 * products rounded anew. */
#include "ref/kernel/mla_attention.h"
#include "ref/kernel/mla_cache.h"
#include "tests/harness.h"
#include "tests/kernel/cache_values.h"

static double ue8m0(int code)
{
    return code == 255 ? (double)NAN : ldexp(1, code - 127);
}

/* Code of the bf16 nearest to @value: the quotient by its step, ties to even. */
static uint32_t bf16_of(double value)
{
    const uint32_t sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value)) return 0x7FFF;
    if (isinf(value)) return sign | 0x7F80;
    const int exponent = fabs(value) < 0x1p-126 ? -126 : ilogb(value);
    const double steps = rint(ldexp(fabs(value), 7 - exponent));
    const uint32_t code = (uint32_t)steps + ((uint32_t)(exponent + 126) << 7);
    return sign | (code > 0x7F80 ? 0x7F80 : code);
}

/* What every code times the scales in @token becomes. */
static void check_products(const struct assay_mla_token_layout *layout,
                           const struct assay_mla_token *token, int form,
                           double (*code_value)(int), const double *scale)
{
    uint16_t key[ASSAY_MLA_MAX_D_QK];
    assay_mla_dequantise(layout, form, token, key);
    for (int i = 0; i < layout->coded_dims; i++) {
        const double s = scale[i / layout->scale_dims];
        double product = code_value(token->code[i]) * s;
        if (form == ASSAY_MLA_F32_PRODUCT) product = (double)(float)product;
        if (form == ASSAY_MLA_SCALE_TO_BF16 && layout->scale == ASSAY_F32)
            product =
                code_value(token->code[i]) * (double)float_of((uint32_t)bf16_of(s) << 16);
        if (key[i] != bf16_of(product))
            ck_abort_msg("%s, form %d: code 0x%02x, scale %a: 0x%04x, not 0x%04x",
                         layout->name, form, token->code[i], s, key[i], bf16_of(product));
    }
}

START_TEST(every_e4m3_times_every_ue8m0_is_rounded_once)
{
    for (int kv = ASSAY_MLA_MODEL1; kv <= ASSAY_MLA_V41_FP8; kv++)
        for (int scale = 0; scale < 256; scale++)
            for (int first = 0; first < 256; first += 16)
                for (int form = 0; form < 2; form++) {
                    const struct assay_mla_token_layout *const layout =
                        &assay_mla_token_layouts[kv];
                    struct assay_mla_token token = { .rope = { 0 } };
                    double value[32];
                    for (int i = 0; i < layout->coded_dims; i++)
                        token.code[i] = (uint8_t)(first + i % 16);
                    for (int i = 0; i < layout->scales; i++) {
                        token.scale[i] = (uint32_t)(scale + 37 * i) & 0xFF;
                        value[i] = ue8m0((int)token.scale[i]);
                    }
                    check_products(layout, &token, form, e4m3, value);
                }
}
END_TEST

START_TEST(every_e2m1_times_every_e4m3_is_exact)
{
    const struct assay_mla_token_layout *const layout =
        &assay_mla_token_layouts[ASSAY_MLA_V41_FP4];
    for (int first = 0; first < 256; first += 32)
        for (int form = 0; form < 2; form++) {
            struct assay_mla_token token;
            uint16_t key[ASSAY_MLA_MAX_D_QK];
            double value[32];
            for (int i = 0; i < 32; i++) {
                token.scale[i] = (uint32_t)(first + i);
                value[i] = e4m3(first + i);
            }
            for (int i = 0; i < 512; i++)
                token.code[i] = (uint8_t)(i % 16);
            check_products(layout, &token, form, e2m1, value);
            assay_mla_dequantise(layout, form, &token, key);
            for (int i = 0; i < 512; i++) {
                const double exact = e2m1(i % 16) * value[i / 16];
                const double got = (double)float_of((uint32_t)key[i] << 16);
                ck_assert(isnan(exact) ? isnan(got) : got == exact);
            }
        }
}
END_TEST

/* Of random bits; every eighth special. */
static uint32_t random_scale(int number)
{
    static const uint32_t special[] = { 0x00000000, 0x80000000, 0x00000001, 0x007FFFFF,
                                        0x00008000, 0x00018000, 0x7F7F7FFF, 0x7F7F8000,
                                        0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000,
                                        0xFF800001, 0x3F808000, 0x3F818000, 0x3F808001 };
    if (number % 8 == 0) return special[number / 8 % 16];
    if (number % 8 == 1) return draw() & 0x807FFFFF; /* subnormal */
    if (number % 8 == 2) return (draw() & 0xFFFF0000) | 0x8000 | (draw() & 1); /* a tie */
    return draw();
}

START_TEST(every_e4m3_times_10000_f32_rounds_as_each_form_says)
{
    const struct assay_mla_token_layout *const layout =
        &assay_mla_token_layouts[ASSAY_MLA_V32];
    int64_t differ = 0;
    for (int number = 0; number < 10000; number++) {
        const uint32_t bits = random_scale(number);
        for (int first = 0; first < 256; first += 128) {
            struct assay_mla_token token = { .rope = { 0 } };
            double value[4];
            uint16_t key[2][ASSAY_MLA_MAX_D_QK];
            for (int i = 0; i < 512; i++)
                token.code[i] = (uint8_t)(first + i % 128);
            for (int i = 0; i < 4; i++) {
                token.scale[i] = i % 2 ? bits ^ 0x80000000 : bits;
                value[i] = (double)float_of(token.scale[i]);
            }
            for (int form = 0; form < 2; form++) {
                check_products(layout, &token, form, e4m3, value);
                assay_mla_dequantise(layout, form, &token, key[form]);
            }
            for (int i = 0; i < 512; i++)
                differ += key[0][i] != key[1][i];
        }
    }
    /* The forms are not the same. */
    ck_assert_int_gt(differ, 10000 * 1024 / 10);
}
END_TEST

START_TEST(bf16_elements_are_copied_with_all_their_bits)
{
    for (int kv = ASSAY_MLA_V32; kv <= ASSAY_MLA_MODEL1; kv++) {
        const struct assay_mla_token_layout *const layout = &assay_mla_token_layouts[kv];
        struct assay_mla_token token = { .code = { 0 } };
        uint16_t key[ASSAY_MLA_MAX_D_QK];
        for (int first = 0; first < 1 << 16; first += 64) {
            for (int i = 0; i < 64; i++)
                token.rope[i] = (uint16_t)(first + i);
            assay_mla_dequantise(layout, ASSAY_MLA_SCALE_TO_BF16, &token, key);
            ck_assert_mem_eq(key + layout->coded_dims, token.rope, sizeof(token.rope));
        }
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_e4m3_times_every_ue8m0_is_rounded_once,
        every_e2m1_times_every_e4m3_is_exact,
        every_e4m3_times_10000_f32_rounds_as_each_form_says,
        bf16_elements_are_copied_with_all_their_bits,
        NULL,
    };
    return run_tests("mla_cache_dequantise", tests);
}
