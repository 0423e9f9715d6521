/* SPDX-License-Identifier: MIT */
/* The special-function unit and the conversions against pairs recorded on an H200. */
#include "tests/harness.h"
#include "tests/unit/unary_functions.h"

#include <math.h>
#include <stdio.h>
#include <zstd.h>

enum { SAMPLES_OF_EACH_FUNCTION = 7087, MAX_COMPRESSED_BYTES = 1 << 20 };

/* The whole file, decompressed and NUL-terminated; to be freed. */
static char *read_samples(void)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/units/unary_samples.csv.zst", corpus_folder());
    FILE *const file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    void *const compressed = malloc(MAX_COMPRESSED_BYTES);
    ck_assert_ptr_nonnull(compressed);
    const size_t size = fread(compressed, 1, MAX_COMPRESSED_BYTES, file);
    fclose(file);

    const unsigned long long length = ZSTD_getFrameContentSize(compressed, size);
    ck_assert_msg(length < 1 << 24, "%s is no zstd file of known length", path);
    char *const text = malloc((size_t)length + 1);
    ck_assert_ptr_nonnull(text);
    const size_t written = ZSTD_decompress(text, (size_t)length, compressed, size);
    ck_assert_msg(!ZSTD_isError(written), "%s: %s", path, ZSTD_getErrorName(written));
    text[written] = '\0';
    free(compressed);
    return text;
}

START_TEST(every_recorded_sample_is_reproduced)
{
    char *const text = read_samples();
    int seen[UNARY_FUNCTIONS] = { 0 };
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        const int function = unary_function_find(line, strcspn(line, ","));
        if (function < 0) continue;
        uint32_t input, recorded;
        if (sscanf(strchr(line, ','), ",%x,%x", &input, &recorded) != 2)
            ck_abort_msg("\"%s\" is no function,input,result", line);
        const uint32_t computed = unary_apply(&unary_functions[function], input);
        if (computed != recorded)
            ck_abort_msg("%s of %08x: computed %08x, recorded %08x",
                         unary_functions[function].name, input, computed, recorded);
        seen[function]++;
    }
    free(text);
    for (int i = 0; i < UNARY_FUNCTIONS; i++)
        ck_assert_int_eq(seen[i], SAMPLES_OF_EACH_FUNCTION);
}
END_TEST

START_TEST(special_arguments_give_the_results_of_the_ptx_manual)
{
    static const struct {
        uint32_t input, ex2, lg2, rcp, rsqrt;
    } rows[] = {
        { 0x00000000, 0x3F800000, 0xFF800000, 0x7F800000, 0x7F800000 }, /* +0 */
        { 0x80000000, 0x3F800000, 0xFF800000, 0xFF800000, 0xFF800000 }, /* -0 */
        { 0x007FFFFF, 0x3F800000, 0xFF800000, 0x7F800000, 0x7F800000 }, /* subnormal */
        { 0x807FFFFF, 0x3F800000, 0xFF800000, 0xFF800000, 0xFF800000 },
        { 0x3F800000, 0x40000000, 0x00000000, 0x3F800000, 0x3F800000 }, /* 1 */
        { 0x40800000, 0x41800000, 0x40000000, 0x3E800000, 0x3F000000 }, /* 4 */
        { 0xC0000000, 0x3E800000, 0x7FFFFFFF, 0xBF000000, 0x7FFFFFFF }, /* -2 */
        { 0x43800000, 0x7F800000, 0x41000000, 0x3B800000, 0x3D800000 }, /* 256 */
        { 0xC2FE0000, 0x00000000, 0x7FFFFFFF, 0xBC010204, 0x7FFFFFFF }, /* -127 */
        { 0x7F800000, 0x7F800000, 0x7F800000, 0x00000000, 0x00000000 }, /* +inf */
        { 0xFF800000, 0x00000000, 0x7FFFFFFF, 0x80000000, 0x7FFFFFFF }, /* -inf */
        { 0x7F800001, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF }, /* NaN */
        { 0xFFFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ck_assert_uint_eq(assay_ex2_approx_ftz(rows[i].input), rows[i].ex2);
        ck_assert_uint_eq(assay_lg2_approx_ftz(rows[i].input), rows[i].lg2);
        ck_assert_uint_eq(assay_rcp_approx_ftz(rows[i].input), rows[i].rcp);
        ck_assert_uint_eq(assay_rsqrt_approx_ftz(rows[i].input), rows[i].rsqrt);
    }
}
END_TEST

static double unit_in_the_last_place(double value)
{
    return ldexp(1.0, ilogb(value) - 23);
}

static double units_between(uint32_t bits, double exact)
{
    const double distance = fabs((double)assay_f32_from_bits(bits) - exact);
    return distance / unit_in_the_last_place(exact);
}

/* A linear congruential generator (Knuth's MMIX constants), upper half. */
static uint32_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 32);
}

/* The PTX manual: rcp 1 ulp, div 2 ulp; for |b| in (2^126, 2^128) a finite a gives 0. */
START_TEST(quotients_are_within_two_units_and_vanish_for_the_largest_divisors)
{
    uint64_t state = 1;
    for (int i = 0; i < 1000000; i++) {
        const uint32_t a = (draw(&state) & 0x8FFFFFFF) | 0x30000000;
        const uint32_t b = (draw(&state) & 0x8FFFFFFF) | 0x30000000;
        const double divisor = (double)assay_f32_from_bits(b);
        const double exact = (double)assay_f32_from_bits(a) / divisor;
        const uint32_t reciprocal = assay_rcp_approx_ftz(b);
        const uint32_t quotient = assay_div_approx_ftz(a, b);
        if (units_between(reciprocal, 1.0 / divisor) > 1.0)
            ck_abort_msg("1 / %08x: %08x", b, reciprocal);
        if (units_between(quotient, exact) > 2.0)
            ck_abort_msg("%08x / %08x: %08x", a, b, quotient);

        const uint32_t huge = (b & 0x807FFFFF) | (i % 2 ? 0x7E800001 : 0x7F000001);
        const uint32_t vanished = assay_div_approx_ftz(a, huge);
        if (vanished != ((a ^ huge) & 0x80000000))
            ck_abort_msg("%08x / %08x: %08x", a, huge, vanished);
    }
}
END_TEST

START_TEST(quotients_of_special_operands_follow_the_ptx_manual)
{
    static const struct {
        uint32_t a, b, quotient;
    } rows[] = {
        { 0x00000000, 0x00000000, 0x7FFFFFFF }, /* 0 / 0 */
        { 0x7F800000, 0x7F800000, 0x7FFFFFFF }, /* inf / inf */
        { 0x7F800000, 0x7F000001, 0x7FFFFFFF }, /* inf times a flushed reciprocal */
        { 0x3F800000, 0x80000000, 0xFF800000 }, /* 1 / -0 */
        { 0x3F800000, 0x007FFFFF, 0x7F800000 }, /* 1 / subnormal */
        { 0x807FFFFF, 0x3F800000, 0x80000000 }, /* subnormal / 1 */
        { 0x00800000, 0x40000000, 0x00000000 }, /* 2^-126 / 2 */
        { 0xFFC00000, 0x3F800000, 0x7FFFFFFF }, /* NaN / 1 */
        { 0x3F800000, 0x7FC00001, 0x7FFFFFFF }, /* 1 / NaN */
        { 0x40C00000, 0x40000000, 0x40400000 }, /* 6 / 2 */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_uint_eq(assay_div_approx_ftz(rows[i].a, rows[i].b), rows[i].quotient);
}
END_TEST

int main(void)
{
    return run_tests(
        "special_function",
        (const TTest *const[]){
            every_recorded_sample_is_reproduced,
            special_arguments_give_the_results_of_the_ptx_manual,
            quotients_are_within_two_units_and_vanish_for_the_largest_divisors,
            quotients_of_special_operands_follow_the_ptx_manual,
            NULL,
        });
}
