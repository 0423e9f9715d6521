/* SPDX-License-Identifier: MIT */
/* The dot-add's answers worked out by hand or published, and its table of profiles. */
#include "ref/format/minifloat.h"
#include "ref/unit/dot_add.h"
#include "tests/harness.h"

#include <math.h>
#include <string.h>

struct product {
    int k; /* first position; @count positions from there on */
    uint32_t a, b;
    int count;
};
struct known {
    const char *profile;
    enum assay_format format_a, format_b;
    uint32_t accumulator;
    struct product product[3];
    uint32_t result;
};

static void clear(const struct assay_dot_add *profile, struct assay_operand *operands)
{
    for (int k = 0; k < profile->terms; k++)
        operands[k] = assay_operand_decode(profile, profile->operands[0], 0);
}

static void check_known(const struct known *row, int count)
{
    for (int i = 0; i < count; i++, row++) {
        const struct assay_dot_add *const profile = assay_dot_add_find(row->profile);
        struct assay_operand a[ASSAY_DOT_ADD_MAX_TERMS], b[ASSAY_DOT_ADD_MAX_TERMS];
        clear(profile, a);
        clear(profile, b);
        for (const struct product *p = row->product; p < row->product + 3; p++)
            for (int k = p->k; k < p->k + p->count; k++) {
                a[k] = assay_operand_decode(profile, row->format_a, p->a);
                b[k] = assay_operand_decode(profile, row->format_b, p->b);
            }
        const uint32_t got = assay_dot_add(profile, row->accumulator, a, b);
        ck_assert_msg(got == row->result, "row %d, %s: %08x, expected %08x", i,
                      row->profile, got, row->result);
    }
}

#define FP8(name)    name, ASSAY_E4M3, ASSAY_E4M3
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
/* e4m3: 0x38 is 1, 0x3F 1.875, 0x7E 448, 0x20 0.125, 0x50 8, 0x58 16, 0x08 2^-6; 0x04 is
 * 2^-7, 0x02 2^-8, 0x01 2^-9, subnormal. */

START_TEST(hopper_fp8_gives_the_published_answers)
{
    static const struct known table[] = {
        { FP8("hopper-fp8"),
          0,
          { { 0, 0x38, 0x38, 1 }, { 1, 0x08, 0x02, 31 } },
          0x3F800000 },
        { FP8("hopper-fp8"),
          0,
          { { 0, 0x38, 0x38, 1 }, { 1, 0x88, 0x02, 31 } },
          0x3F800000 },
        { FP8("hopper-fp8"),
          0,
          { { 0, 0x38, 0x38, 1 }, { 1, 0x08, 0x04, 1 } },
          0x3F800400 },
        { FP8("hopper-fp8"),
          0,
          { { 0, 0x3F, 0x3F, 1 }, { 1, 0x08, 0x04, 1 } },
          0x40610000 },
        { FP8("hopper-fp8"),
          0,
          { { 0, 0x3F, 0x3F, 1 }, { 1, 0x08, 0x04, 2 } },
          0x40610400 },
        { FP8("hopper-fp8"),
          0,
          { { 0, 0x7E, 0x7E, 1 }, { 1, 0xFE, 0x7E, 1 }, { 2, 0x20, 0x38, 1 } },
          0x00000000 },
        { FP8("hopper-fp8"),
          0,
          { { 0, 0x7E, 0x7E, 1 }, { 1, 0xFE, 0x7E, 1 }, { 2, 0x50, 0x38, 1 } },
          0x41000000 },
        { FP8("hopper-fp8"), 0x3F800400, { { 0, 0x08, 0x08, 1 } }, 0x3F800C00 },
        { FP8("hopper-fp8"), 0x3F800400, { { 0, 0x58, 0x38, 1 } }, 0x41880000 },
    };
    check_known(table, COUNT(table));
}
END_TEST

/* 256 * 256 is 2^16 and 2^-9 * 2^-9 is 2^-18: in one group with 2^16 it is lost even
 * where 2^16 cancels; in a later one it is all there is. */
START_TEST(groups_add_one_after_another_in_their_order)
{
    static const struct known table[] = {
        { FP8("hopper-mma-fp8"),
          0,
          { { 0, 0x78, 0x78, 1 }, { 5, 0xF8, 0x78, 1 }, { 2, 0x01, 0x01, 1 } },
          0x36800000 },
        { FP8("hopper-mma-fp8"),
          0,
          { { 0, 0x78, 0x78, 1 }, { 5, 0xF8, 0x78, 1 }, { 4, 0x01, 0x01, 1 } },
          0x00000000 },
        { FP8("hopper-mma-fp8"),
          0,
          { { 2, 0x78, 0x78, 1 }, { 31, 0xF8, 0x78, 1 }, { 1, 0x01, 0x01, 1 } },
          0x00000000 },
        { FP8("ada-fp8"),
          0,
          { { 0, 0x78, 0x78, 1 }, { 15, 0xF8, 0x78, 1 }, { 16, 0x01, 0x01, 1 } },
          0x36800000 },
        { FP8("ada-fp8"),
          0,
          { { 0, 0x78, 0x78, 1 }, { 16, 0xF8, 0x78, 1 }, { 17, 0x01, 0x01, 1 } },
          0x00000000 },
    };
    check_known(table, COUNT(table));
}
END_TEST

/* A unit in the last place of 64 is 2^-17: 2^-18 and 3 * 2^-18 are ties. In the last two
 * rows +-2^-9 * 2^15 (e5m2 0x78) leaves 2^-9 * 2^-10 (0x14) only if 2^-9 was normal. */
START_TEST(mma_fp8_rounds_the_accumulator_last_and_reads_codes_as_f16)
{
    static const struct known table[] = {
        { FP8("hopper-mma-fp8"), 0x42800000, { { 0, 0x01, 0x01, 1 } }, 0x42800000 },
        { FP8("hopper-mma-fp8"), 0x42800000, { { 0, 0x01, 0x01, 3 } }, 0x42800002 },
        { FP8("hopper-mma-fp8"), 0x80000000, { { 0, 0x80, 0x80, 1 } }, 0x00000000 },
        { "hopper-mma-fp8",
          ASSAY_E4M3,
          ASSAY_E5M2,
          0,
          { { 0, 0x01, 0x78, 1 }, { 1, 0x81, 0x78, 1 }, { 4, 0x01, 0x14, 1 } },
          0x36000000 },
        { "blackwell-fp8",
          ASSAY_E4M3,
          ASSAY_E5M2,
          0,
          { { 0, 0x01, 0x78, 1 }, { 1, 0x81, 0x78, 1 }, { 4, 0x01, 0x14, 1 } },
          0x00000000 },
    };
    check_known(table, COUNT(table));
}
END_TEST

#define BF16 "hopper-bf16", ASSAY_BF16, ASSAY_BF16
#define F16  "hopper-f16", ASSAY_F16, ASSAY_F16
#define TF32 "hopper-tf32", ASSAY_TF32, ASSAY_TF32

START_TEST(special_values_and_range_ends_follow_rule_one_and_five)
{
    static const struct known table[] = {
        /* NaN code; infinity * 0; infinities of both signs, from products and from c */
        { FP8("hopper-fp8"), 0, { { 31, 0x7F, 0x00, 1 } }, 0x7FFFFFFF },
        { F16, 0, { { 3, 0x7C00, 0x8000, 1 } }, 0x7FFFFFFF },
        { F16, 0, { { 3, 0x7C00, 0x3C00, 1 }, { 9, 0x3C00, 0xFC00, 1 } }, 0x7FFFFFFF },
        { F16, 0xFF800000, { { 3, 0x7C00, 0x3C00, 1 } }, 0x7FFFFFFF },
        { F16, 0xFFC12345, { { 3, 0x7C00, 0x3C00, 1 } }, 0x7FFFFFFF },
        /* infinities of one sign; overflow by truncation, just not and just */
        { F16, 0, { { 3, 0xFC00, 0x3C00, 1 }, { 9, 0x7BFF, 0x7BFF, 1 } }, 0xFF800000 },
        { F16, 0xFF800000, { { 3, 0x7BFF, 0x7BFF, 16 - 3 } }, 0xFF800000 },
        { BF16, 0x7F7FFFFF, { { 0, 0x3F80, 0x7280, 1 } }, 0x7F7FFFFF },
        { BF16, 0xFF7FFFFF, { { 0, 0xBF80, 0x7380, 1 } }, 0xFF800000 },
        /* -0 never comes out; subnormal results stay; below 2^-149 is +0 */
        { BF16, 0x80000000, { { 0, 0x8000, 0x3F80, 1 } }, 0x00000000 },
        { BF16, 0x80000001, { { 0, 0x0000, 0x3F80, 1 } }, 0x80000001 },
        { BF16, 0, { { 0, 0x1F80, 0x9500, 1 } }, 0x80000001 },
        { BF16, 0, { { 0, 0x1F80, 0x9480, 1 } }, 0x00000000 },
        { BF16, 0, { { 0, 0x1F80, 0x9480, 3 } }, 0x80000001 },
        /* tf32: the low 13 bits are not there, nor is a NaN made of them */
        { TF32, 0, { { 0, 0x3F801FFF, 0x3F801FFF, 1 } }, 0x3F800000 },
        { TF32, 0, { { 0, 0x7F801FFF, 0x3F800000, 1 } }, 0x7F800000 },
        { TF32, 0, { { 0, 0x00001FFF, 0x7F800000, 1 } }, 0x7FFFFFFF },
    };
    check_known(table, COUNT(table));
}
END_TEST

static struct assay_operand power(const struct assay_dot_add *profile, double value)
{
    const enum assay_format format = profile->operands[0];
    const uint32_t code =
        assay_minifloat_encode(assay_minifloat(format), value, ASSAY_OVERFLOW_SATURATES);
    return assay_operand_decode(profile, format,
                                format == ASSAY_TF32 ? code << 13 : code);
}

/* What the unit makes of 2^16 + @sign * 2^16 + 2^small, all in one group. */
static double sum_with(const struct assay_dot_add *profile, double sign, int small)
{
    const bool is_interleaved = profile->group_order == ASSAY_GROUPS_INTERLEAVED;
    const int last = is_interleaved ? 4 : 2;
    struct assay_operand a[ASSAY_DOT_ADD_MAX_TERMS], b[ASSAY_DOT_ADD_MAX_TERMS];
    clear(profile, a);
    clear(profile, b);
    a[0] = b[0] = b[1] = power(profile, 256.0);
    a[1] = power(profile, sign * 256.0);
    a[last] = power(profile, 0.5);
    b[last] = power(profile, ldexp(2.0, small));

    const uint32_t bits = assay_dot_add(profile, 0, a, b);
    float sum;
    memcpy(&sum, &bits, sizeof sum);
    return (double)sum;
}

START_TEST(published_constants_decide_what_a_unit_keeps)
{
    static const struct {
        const char *name;
        int terms, groups, align_bits, result_bits;
    } table[] = {
        { "hopper-fp8", 32, 1, 13, 13 },     { "hopper-bf16", 16, 1, 25, 23 },
        { "hopper-f16", 16, 1, 25, 23 },     { "hopper-tf32", 8, 1, 25, 23 },
        { "hopper-mma-fp8", 32, 2, 25, 23 }, { "blackwell-fp8", 32, 1, 25, 23 },
        { "ada-fp8", 32, 2, 13, 13 },        { "ada-f16", 16, 2, 24, 23 },
        { "ada-bf16", 16, 2, 24, 23 },       { "ampere-f16", 16, 2, 24, 23 },
        { "ampere-bf16", 16, 2, 24, 23 },    { "volta-f16", 4, 1, 23, 23 },
    };
    for (int i = 0; i < COUNT(table); i++) {
        const struct assay_dot_add *const profile = assay_dot_add_find(table[i].name);
        const int kept = 16 - table[i].align_bits, last = 17 - table[i].result_bits;
        ck_assert_int_eq(profile->terms, table[i].terms);
        ck_assert_int_eq(profile->groups, table[i].groups);
        ck_assert_double_eq(sum_with(profile, -1.0, kept), ldexp(1.0, kept));
        ck_assert_double_eq(sum_with(profile, -1.0, kept - 1), 0.0);
        ck_assert_double_eq(sum_with(profile, 1.0, last), 0x1p17 + ldexp(1.0, last));
        ck_assert_double_eq(sum_with(profile, 1.0, last - 1), 0x1p17);
        ck_assert_ptr_eq(profile, &assay_dot_adds[i]);
    }
    ck_assert_ptr_null(assay_dot_adds[COUNT(table)].name);
}
END_TEST

START_TEST(profiles_have_unique_names_and_legal_constants)
{
    for (const struct assay_dot_add *row = assay_dot_adds; row->name; row++) {
        ck_assert_ptr_eq(assay_dot_add_find(row->name), row);
        ck_assert(row->instructions && row->source && row->operands[0]);
        ck_assert_int_le(row->terms, ASSAY_DOT_ADD_MAX_TERMS);
        ck_assert_int_eq(row->terms % (row->groups * 2), 0);
        ck_assert(row->align_bits >= row->result_bits && row->align_bits <= 40);
        ck_assert(row->result_bits >= 1 && row->result_bits <= 23);
        ck_assert_int_eq(row->is_measured,
                         strstr(row->source, "measured on H200") != NULL);
    }
    ck_assert_ptr_null(assay_dot_add_find("hopper"));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        hopper_fp8_gives_the_published_answers,
        groups_add_one_after_another_in_their_order,
        mma_fp8_rounds_the_accumulator_last_and_reads_codes_as_f16,
        special_values_and_range_ends_follow_rule_one_and_five,
        published_constants_decide_what_a_unit_keeps,
        profiles_have_unique_names_and_legal_constants,
        NULL,
    };
    return run_tests("dot_add_known", tests);
}
