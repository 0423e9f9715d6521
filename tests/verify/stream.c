/* SPDX-License-Identifier: MIT */
/* PCG32 against published answers, streams against an independent computation, and the
 * statistics that generated data rely on. */
#include "verify/data/stream.h"

#include "tests/harness.h"
#include "verify/data/kind.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

START_TEST(seed_42_54_gives_the_published_answers)
{
    /* The first round of pcg32-demo, O'Neill 2014. */
    static const uint32_t published[] = { 0xa15c02b7U, 0x7b47f409U, 0xba1d3330U,
                                          0x83d2f293U, 0xbfa4784bU, 0xcbed606eU };
    struct assay_stream stream;
    assay_stream_seed(&stream, 42, 54);
    for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++)
        ck_assert_uint_eq(assay_stream_next(&stream), published[i]);
}
END_TEST

START_TEST(jump_equals_as_many_calls)
{
    struct assay_stream walker;
    assay_stream_seed(&walker, 42, 54);
    const struct assay_stream start = walker;
    for (uint64_t count = 0; count < 3000000; count++) {
        if (count < 5000 || count % 65537 == 0 || (count & (count - 1)) == 0) {
            struct assay_stream jumper = start;
            assay_stream_jump(&jumper, count);
            ck_assert_uint_eq(jumper.state, walker.state);
            ck_assert_uint_eq(jumper.increment, walker.increment);
        }
        assay_stream_next(&walker);
    }
}
END_TEST

START_TEST(far_jumps_equal_the_closed_form)
{
    /* a^n s + c (a^n - 1) / (a - 1) modulo 2^64, computed with Python's integers. */
    static const struct {
        uint64_t count, state;
    } answers[] = {
        { 1ULL << 63, 0x985706b82c2e03f8U },
        { (1ULL << 40) + 5, 0x40fd099fbe80c471U },
        { UINT64_MAX, 0x97 },
        { 123456789012345U, 0xf1d23464b3a402edU },
    };
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct assay_stream stream;
        assay_stream_seed(&stream, 42, 54);
        assay_stream_jump(&stream, answers[i].count);
        ck_assert_uint_eq(stream.state, answers[i].state);
    }
}
END_TEST

START_TEST(jumps_add_up_and_the_period_is_2_to_64)
{
    struct assay_stream chooser;
    assay_stream_seed(&chooser, 1, 1);
    for (int i = 0; i < 1000; i++) {
        const uint64_t a = (uint64_t)assay_stream_next(&chooser) << (i % 33);
        const uint64_t b = (uint64_t)assay_stream_next(&chooser) << (i % 29);
        struct assay_stream once, twice;
        assay_stream_seed(&once, a, b);
        twice = once;
        const uint64_t start = once.state;
        assay_stream_jump(&once, a + b);
        assay_stream_jump(&twice, a);
        assay_stream_jump(&twice, b);
        ck_assert_uint_eq(once.state, twice.state);
        assay_stream_jump(&twice, -(a + b));
        ck_assert_uint_eq(twice.state, start);
    }
}
END_TEST

START_TEST(version_1_streams_keep_their_values)
{
    /* Computed by another program (Python) from the description in stream.h. */
    static const struct {
        uint64_t seed;
        const char *tensor, *kind;
        int64_t row;
        uint32_t draw[3];
    } answers[] = {
        { 7, "a", "normal", 0, { 0xd65340a4U, 0x199f037dU, 0x9c35dbc2U } },
        { 7, "a", "normal", 1, { 0x3e68eaa4U, 0x60ea8835U, 0x155c760aU } },
        { 7, "b", "normal", 0, { 0xa233ed0cU, 0x9851002aU, 0xc5476ea3U } },
        { 7, "a", "wide", 0, { 0xd0723898U, 0x51feae54U, 0x30bda0ebU } },
        { UINT64_MAX,
          "sfb",
          "cancel",
          (1LL << 62) + 12345,
          { 0x3ec7f77fU, 0x8567b220U, 0x8652fc4eU } },
        { 0, "block_table", "exact", -1, { 0x7065d3b7U, 0x822d2eb7U, 0xd99c5e02U } },
    };
    ck_assert_int_eq(ASSAY_DATA_VERSION, 1);
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct assay_stream stream;
        assay_stream_open(&stream, answers[i].seed, answers[i].tensor, answers[i].kind,
                          answers[i].row);
        for (int j = 0; j < 3; j++)
            ck_assert_uint_eq(assay_stream_next(&stream), answers[i].draw[j]);
    }

    struct assay_stream stream;
    assay_stream_open(&stream, 7, "a", "normal", 0);
    ck_assert(assay_stream_normal(&stream) == -0x1.6219ea8e5915ep-1);
    ck_assert(assay_stream_normal(&stream) == -0x1.705979f066c52p-2);
    assay_stream_open(&stream, 7, "a", "normal", 0);
    ck_assert(assay_stream_unit(&stream) == 0x1.aca68148p-1);
    ck_assert(assay_stream_unit(&stream) == 0x1.99f037dp-4);
}
END_TEST

static int compare_words(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t first_two_draws(uint64_t seed, const char *tensor, const char *kind,
                                int64_t row)
{
    struct assay_stream stream;
    assay_stream_open(&stream, seed, tensor, kind, row);
    const uint64_t high = assay_stream_next(&stream);
    return high << 32 | assay_stream_next(&stream);
}

START_TEST(no_two_of_180000_neighbouring_streams_begin_alike)
{
    /* A random function would give about 1e-9 pairs among 64-bit words. */
    static const char *const tensors[] = { "a", "b",  "sfa", "sfb", "c",
                                           "q", "kv", "ab",  "ba" };
    enum { TENSORS = sizeof(tensors) / sizeof(tensors[0]), KINDS = 10, SEEDS = 20 };
    enum { ROWS = 100, COUNT = TENSORS * KINDS * SEEDS * ROWS };
    static uint64_t draws[COUNT];
    size_t count = 0;
    for (int tensor = 0; tensor < TENSORS; tensor++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int i = 0; i < SEEDS * ROWS; i++)
                draws[count++] = first_two_draws((uint64_t)(i / ROWS), tensors[tensor],
                                                 assay_data_kinds[kind].name, i % ROWS);
    ck_assert_uint_eq(count, COUNT);
    qsort(draws, COUNT, sizeof(draws[0]), compare_words);
    int alike = 0;
    for (size_t i = 1; i < COUNT; i++)
        alike += draws[i] == draws[i - 1];
    ck_assert_int_eq(alike, 0);
}
END_TEST

START_TEST(names_are_kept_apart)
{
    ck_assert_uint_ne(first_two_draws(1, "ab", "c", 0), first_two_draws(1, "a", "bc", 0));
    ck_assert_uint_ne(first_two_draws(1, "a", "b", 0), first_two_draws(1, "b", "a", 0));
    ck_assert_uint_ne(first_two_draws(1, "a", "b", 0), first_two_draws(0, "a", "b", 1));
    ck_assert_uint_ne(first_two_draws(1, "", "a", 0), first_two_draws(1, "a", "", 0));
}
END_TEST

/* Sum of (seen - expected)^2 / expected; mean buckets - 1, deviation sqrt(2 buckets). */
static double chi_square(const uint32_t *seen, int buckets, double expected)
{
    double sum = 0;
    for (int i = 0; i < buckets; i++)
        sum += (seen[i] - expected) * (seen[i] - expected) / expected;
    return sum;
}

enum { BUCKETS = 256 };

static void assert_is_even(const uint32_t *seen, double draws, const char *what)
{
    const double chi = chi_square(seen, BUCKETS, draws / BUCKETS);
    ck_assert_msg(chi > 255 - 5 * sqrt(510) && chi < 255 + 5 * sqrt(510),
                  "%s: chi square %g of 255 degrees", what, chi);
}

START_TEST(first_draws_of_neighbouring_rows_are_even_in_every_byte)
{
    enum { ROWS = 200000 };
    static uint32_t seen[4][BUCKETS], changes[4][BUCKETS];
    uint32_t previous = 0;
    for (int row = 0; row < ROWS; row++) {
        struct assay_stream stream;
        assay_stream_open(&stream, 3, "a", "uniform", row);
        const uint32_t draw = assay_stream_next(&stream);
        for (int byte = 0; byte < 4; byte++) {
            seen[byte][draw >> 8 * byte & 0xFF]++;
            changes[byte][(draw ^ previous) >> 8 * byte & 0xFF]++;
        }
        previous = draw;
    }
    for (int byte = 0; byte < 4; byte++) {
        assert_is_even(seen[byte], ROWS, "draws");
        assert_is_even(changes[byte], ROWS, "changes");
    }
}
END_TEST

START_TEST(unit_is_even_and_below_one)
{
    enum { DRAWS = 1 << 20 };
    static uint32_t seen[BUCKETS], pairs[BUCKETS];
    struct assay_stream stream;
    assay_stream_open(&stream, 5, "a", "uniform", 0);
    double sum = 0, largest = 0;
    int previous = 0;
    for (int i = 0; i < DRAWS; i++) {
        const double unit = assay_stream_unit(&stream);
        largest = fmax(largest, unit);
        sum += unit;
        seen[(int)(unit * BUCKETS)]++;
        const int sixteenth = (int)(unit * 16);
        pairs[16 * previous + sixteenth]++;
        previous = sixteenth;
    }
    ck_assert(largest > 0.99999 && largest < 1);
    assert_is_even(seen, DRAWS, "units");
    assert_is_even(pairs, DRAWS, "pairs of units");
    ck_assert(fabs(sum / DRAWS - 0.5) < 5 * sqrt(1.0 / 12 / DRAWS));
}
END_TEST

START_TEST(unit_and_normal_take_one_and_four_draws)
{
    struct assay_stream stream, reference;
    assay_stream_seed(&stream, 8, 9);
    reference = stream;
    assay_stream_unit(&stream);
    assay_stream_jump(&reference, 1);
    ck_assert_uint_eq(stream.state, reference.state);
    assay_stream_normal(&stream);
    assay_stream_jump(&reference, 4);
    ck_assert_uint_eq(stream.state, reference.state);
}
END_TEST

START_TEST(normal_has_the_moments_of_four_uniform_draws)
{
    enum { DRAWS = 1 << 20 };
    struct assay_stream stream;
    assay_stream_open(&stream, 5, "a", "normal", 0);
    double sum[5] = { 0 }, largest = 0;
    for (int i = 0; i < DRAWS; i++) {
        const double value = assay_stream_normal(&stream);
        double power = 1;
        for (int j = 1; j <= 4; j++)
            sum[j] += power *= value;
        largest = fmax(largest, fabs(value));
    }
    /* Moments 0, 1, 0 and 3 - 6 / (5 * 4); tolerances of five deviations of the mean. */
    ck_assert(fabs(sum[1] / DRAWS) < 5 / sqrt(DRAWS));
    ck_assert(fabs(sum[2] / DRAWS - 1) < 5 * sqrt(1.7 / DRAWS));
    ck_assert(fabs(sum[3] / DRAWS) < 5 * sqrt(13.0 / DRAWS));
    ck_assert(fabs(sum[4] / DRAWS - 2.7) < 5 * sqrt(50.0 / DRAWS));
    ck_assert(largest > 3 && largest < 3.4642);
}
END_TEST

START_TEST(below_is_in_range_and_without_bias)
{
    struct assay_stream stream;
    assay_stream_seed(&stream, 11, 12);
    for (uint32_t i = 0; i < 100000; i++) {
        const uint32_t bound = i < 1000 ? i + 1 : UINT32_MAX >> i % 32;
        ck_assert_uint_lt(assay_stream_below(&stream, bound), bound);
    }
    ck_assert_uint_eq(assay_stream_below(&stream, 1), 0);

    /* Remainders of 2^32 by 3 * 2^30 fall into the lowest third half of the time. */
    enum { DRAWS = 300000 };
    int third[3] = { 0 };
    for (int i = 0; i < DRAWS; i++)
        third[assay_stream_below(&stream, 3U << 30) >> 30]++;
    for (int i = 0; i < 3; i++)
        ck_assert_int_lt(abs(third[i] - DRAWS / 3), 1300); /* five deviations */
}
END_TEST

START_TEST(every_power_of_two_is_exact)
{
    for (int exponent = -1074; exponent <= 1023; exponent++) {
        char text[16];
        snprintf(text, sizeof(text), "0x1p%d", exponent);
        const double expected = strtod(text, NULL), value = assay_power_of_two(exponent);
        ck_assert_int_eq(memcmp(&value, &expected, sizeof(value)), 0);
        ck_assert(value > 0 && value < (double)INFINITY);
    }
}
END_TEST

START_TEST(every_data_kind_has_a_name_and_a_meaning)
{
    static const char *const names[] = { "normal",   "uniform",   "wide",    "outlier",
                                         "cancel",   "subnormal", "special", "ties",
                                         "positive", "exact",     "runs",    "zero",
                                         "needle",   "recorded" };
    ck_assert_uint_eq(sizeof(names) / sizeof(names[0]), ASSAY_DATA_KIND_COUNT);
    for (int i = 0; i < ASSAY_DATA_KIND_COUNT; i++) {
        ck_assert_str_eq(assay_data_kinds[i].name, names[i]);
        ck_assert_uint_gt(strlen(assay_data_kinds[i].meaning), 10);
    }
    ck_assert_ptr_null(assay_data_kinds[ASSAY_DATA_KIND_COUNT].name);
}
END_TEST

int main(void)
{
    return run_tests("stream",
                     (const TTest *const[]){
                         seed_42_54_gives_the_published_answers,
                         jump_equals_as_many_calls,
                         far_jumps_equal_the_closed_form,
                         jumps_add_up_and_the_period_is_2_to_64,
                         version_1_streams_keep_their_values,
                         no_two_of_180000_neighbouring_streams_begin_alike,
                         names_are_kept_apart,
                         first_draws_of_neighbouring_rows_are_even_in_every_byte,
                         unit_is_even_and_below_one,
                         unit_and_normal_take_one_and_four_draws,
                         normal_has_the_moments_of_four_uniform_draws,
                         below_is_in_range_and_without_bias,
                         every_power_of_two_is_exact,
                         every_data_kind_has_a_name_and_a_meaning,
                         NULL,
                     });
}
