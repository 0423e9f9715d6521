/* SPDX-License-Identifier: MIT */
/* Tests of runs: what their modes hold, how long and how frequent they are. */
#include "tests/harness.h"
#include "verify/data/runs.h"

#include <math.h>
#include <string.h>

enum { WALK = 200000 };

static struct assay_runs walk_of(int64_t row)
{
    struct assay_stream stream;
    struct assay_runs runs;
    assay_stream_open(&stream, 1, "x", "runs", row);
    assay_runs_begin(&runs, &stream);
    return runs;
}

/* Ranges like those of the operations: all of a format, and a part of it. */
static const struct {
    enum assay_format format;
    double largest, ordinary;
} ranges[] = {
    { ASSAY_E4M3, 0, 112 }, { ASSAY_E5M2, 0, 112 },     { ASSAY_E2M1, 0, 1.5 },
    { ASSAY_BF16, 8, 1 },   { ASSAY_BF16, 0, 1 },       { ASSAY_F16, 4, 2 },
    { ASSAY_TF32, 5, 1 },   { ASSAY_F32, 1 << 20, 64 }, { ASSAY_F32, 127, 4 },
};
enum { RANGES = sizeof(ranges) / sizeof(ranges[0]) };

struct seen { /* of the current run */
    double first, before;
    bool is_begun;
};

static double ulp_of(const struct assay_minifloat *format, double value)
{
    return ldexp(1, ilogb(value) - format->mantissa_bits);
}

static bool is_power_of_two(double value)
{
    int exponent;
    return frexp(value, &exponent) == 0.5;
}

/* Whether @value may come next in a run of the mode. */
static bool fits(const struct assay_run_range *range, enum assay_run_mode mode,
                 const struct seen *seen, double value)
{
    const double size = fabs(value), first = seen->is_begun ? seen->first : value;
    const double largest = assay_minifloat_decode(range->format, range->largest);
    const double smallest = ldexp(1, 1 - range->format->bias);
    switch (mode) {
    case ASSAY_RUN_ZEROS: return size == 0;
    case ASSAY_RUN_LARGEST: return size == largest && value == first;
    case ASSAY_RUN_ALTERNATING:
        return size >= smallest && value == (seen->is_begun ? -seen->before : value);
    case ASSAY_RUN_SMALLEST: return size == smallest;
    case ASSAY_RUN_SUBNORMAL: return size > 0 && size < smallest;
    case ASSAY_RUN_POWERS_OF_TWO: return size >= smallest && is_power_of_two(size);
    case ASSAY_RUN_REPEATED: return size >= smallest && value == first;
    case ASSAY_RUN_FULL_MANTISSA:
        return size >= smallest && is_power_of_two(size + ulp_of(range->format, size));
    default: return size <= 3.5 * range->ordinary;
    }
}

START_TEST(every_element_is_what_the_mode_of_its_run_says)
{
    for (int i = 0; i < RANGES; i++) {
        const struct assay_run_range range =
            assay_run_range(ranges[i].format, ranges[i].largest, ranges[i].ordinary);
        const double largest = assay_minifloat_decode(range.format, range.largest);
        struct assay_runs runs = walk_of(i);
        struct seen seen = { 0 };
        ck_assert(ranges[i].largest == 0 || largest == ranges[i].largest);
        for (int at = 0; at < WALK; at++) {
            if (runs.left == 0) seen.is_begun = false;
            const double value =
                assay_minifloat_decode(range.format, assay_runs_next(&runs, &range));
            ck_assert_msg(fabs(value) <= largest &&
                              fits(&range, (enum assay_run_mode)runs.mode, &seen, value),
                          "range %d, mode %u: %g", i, runs.mode, value);
            if (!seen.is_begun) seen.first = value;
            seen.before = value;
            seen.is_begun = true;
        }
    }
}
END_TEST

/* Runs of one value have either sign, the others about as many of both; values of a mode
 * that has several are several. */
START_TEST(signs_and_values_vary)
{
    for (int i = 0; i < RANGES; i++) {
        const struct assay_run_range range =
            assay_run_range(ranges[i].format, ranges[i].largest, ranges[i].ordinary);
        const uint32_t sign =
            1u << (range.format->exponent_bits + range.format->mantissa_bits);
        double elements[ASSAY_RUN_MODES] = { 0 }, negative[ASSAY_RUN_MODES] = { 0 };
        uint32_t lowest[ASSAY_RUN_MODES], highest[ASSAY_RUN_MODES] = { 0 };
        struct assay_runs runs = walk_of(100 + i);
        memset(lowest, 0xFF, sizeof(lowest));
        for (int at = 0; at < WALK; at++) {
            const uint32_t code = assay_runs_next(&runs, &range);
            const uint32_t magnitude = code & (sign - 1), mode = runs.mode;
            elements[mode]++;
            negative[mode] += (code & sign) != 0;
            if (magnitude < lowest[mode]) lowest[mode] = magnitude;
            if (magnitude > highest[mode]) highest[mode] = magnitude;
        }
        for (int mode = 0; mode < ASSAY_RUN_MODES; mode++) {
            const bool is_one =
                mode <= ASSAY_RUN_LARGEST || mode == ASSAY_RUN_SMALLEST ||
                (mode == ASSAY_RUN_SUBNORMAL && range.format->mantissa_bits == 1);
            ck_assert_msg(fabs(negative[mode] / elements[mode] - 0.5) < 0.08,
                          "range %d, mode %d: %g of %g are negative", i, mode,
                          negative[mode], elements[mode]);
            ck_assert_msg(is_one == (lowest[mode] == highest[mode]), "range %d, mode %d",
                          i, mode);
        }
        ck_assert_uint_eq(highest[ASSAY_RUN_LARGEST], range.largest);
    }
}
END_TEST

START_TEST(modes_are_as_frequent_as_each_other_and_runs_up_to_64_long)
{
    const struct assay_run_range range = assay_run_range(ASSAY_E4M3, 0, 112);
    double share[ASSAY_RUN_MODES] = { 0 };
    int of_length[ASSAY_LONGEST_RUN + 1] = { 0 }, count = 0;
    struct assay_runs runs = walk_of(1000);
    for (int at = 0; at < WALK; at++) {
        if (runs.left == 0) {
            struct assay_runs next = runs;
            assay_runs_next(&next, &range);
            of_length[next.left + 1]++;
            count++;
        }
        assay_runs_next(&runs, &range);
        share[runs.mode] += 1.0 / WALK;
    }
    for (int mode = 0; mode < ASSAY_RUN_MODES; mode++)
        ck_assert_msg(fabs(share[mode] * ASSAY_RUN_MODES - 1) < 0.15, "mode %d: %g", mode,
                      share[mode]);
    ck_assert_int_eq(of_length[0], 0);
    for (int length = 1; length <= ASSAY_LONGEST_RUN; length++)
        ck_assert_msg(abs(of_length[length] - count / ASSAY_LONGEST_RUN) <
                          count / ASSAY_LONGEST_RUN / 2,
                      "length %d: %d", length, of_length[length]);
}
END_TEST

/* Both ends, and powers of two and full mantissas between them. */
START_TEST(scales_come_in_runs_of_four_modes)
{
    static const struct assay_scale_range range = { -40, 20, -12, 4 };
    const uint32_t full = (1u << 23) - 1;
    int smallest = 0, largest = 0, powers[4] = { 0 }, filled[4] = { 0 }, changes = 0;
    struct assay_runs runs = walk_of(2000);
    uint32_t before = 99;
    for (int at = 0; at < WALK; at++) {
        const struct assay_run_scale scale = assay_runs_next_scale(&runs, &range);
        ck_assert(scale.mantissa == 0 || scale.mantissa == full);
        changes += runs.mode != before;
        before = runs.mode;
        if (scale.exponent == range.smallest && scale.mantissa == 0)
            smallest++;
        else if (scale.exponent == range.largest && scale.mantissa == full)
            largest++;
        else {
            ck_assert(scale.exponent >= -12 && scale.exponent <= -9);
            (scale.mantissa ? filled : powers)[scale.exponent + 12]++;
        }
    }
    ck_assert(abs(smallest - WALK / 4) < WALK / 50 &&
              abs(largest - WALK / 4) < WALK / 50);
    for (int i = 0; i < 4; i++)
        ck_assert(abs(powers[i] - WALK / 16) < WALK / 100 &&
                  abs(filled[i] - WALK / 16) < WALK / 100);
    /* Of runs 2.5 long on average one in four has the mode of the run before. */
    ck_assert(fabs(changes * 2.5 / 0.75 / WALK - 1) < 0.05);
}
END_TEST

START_TEST(bits_of_scales_are_those_of_f32)
{
    static const struct {
        int exponent;
        uint32_t mantissa;
        float value;
    } rows[] = {
        { 0, 0, 1 },
        { 20, 0x7FFFFF, 0x1.FFFFFEp20f },
        { 127, 0, 0x1p127f },
        { -126, 0, 0x1p-126f },
        { -127, 0, 0x1p-127f },
        { -149, 0, 0x1p-149f },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const uint32_t bits = assay_run_scale_bits(
            (struct assay_run_scale){ rows[i].exponent, rows[i].mantissa });
        ck_assert_int_eq(memcmp(&bits, &rows[i].value, sizeof(bits)), 0);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_element_is_what_the_mode_of_its_run_says,
        signs_and_values_vary,
        modes_are_as_frequent_as_each_other_and_runs_up_to_64_long,
        scales_come_in_runs_of_four_modes,
        bits_of_scales_are_those_of_f32,
        NULL,
    };
    return run_tests("data_runs", tests);
}
