/* SPDX-License-Identifier: MIT */
/* Scale layouts against byte addresses written out in the test, with every byte that is
 * not a scale poisoned. */
#include "ref/layout/scale_layout.h"

#include "tests/harness.h"

#include <math.h>
#include <string.h>

enum { POISON = 0xDB, PADDING = 0xFF, LARGEST = 1 << 20 };
enum { K_MAJOR = ASSAY_SCALE_K_MAJOR, MN_MAJOR, PACKED, LAYOUTS };

static unsigned char sf_bytes[LARGEST], out_bytes[LARGEST], other_bytes[LARGEST];
static const struct assay_scale_layout_numerics low_first = { ASSAY_SCALE_LOW_FIRST };

static const struct assay_scale_layout_problem problems[] = {
    { .groups = 0, .mn = 1, .k = 1 },      { .groups = 0, .mn = 4, .k = 128 },
    { .groups = 0, .mn = 5, .k = 129 },    { .groups = 1, .mn = 63, .k = 1152 },
    { .groups = 2, .mn = 65, .k = 640 },   { .groups = 3, .mn = 130, .k = 384 },
    { .groups = 0, .mn = 66, .k = 33001 }, { .groups = 2, .mn = 3, .k = 65536 },
};
enum { PROBLEMS = sizeof(problems) / sizeof(problems[0]) };

static struct assay_scale_layout_problem problem_at(int i, int from, int to)
{
    struct assay_scale_layout_problem problem = problems[i];
    problem.gran_mn = 1;
    problem.gran_k = 128;
    problem.from = (enum assay_scale_layout)from;
    problem.to = (enum assay_scale_layout)to;
    return problem;
}

static int64_t groups_of(const struct assay_scale_layout_problem *problem)
{
    return problem->groups ? problem->groups : 1;
}

/* First byte of a scale: the layouts' definition. */
static int64_t address(int layout, int64_t rows, int64_t k_blocks, int64_t group,
                       int64_t row, int64_t k)
{
    const int64_t padded = (rows + 3) / 4 * 4, words = (k_blocks + 3) / 4;
    if (layout == K_MAJOR) return 4 * ((group * rows + row) * k_blocks + k);
    if (layout == MN_MAJOR) return 4 * (padded * (group * k_blocks + k) + row);
    return 4 * (padded * (group * words + k / 4) + row) + k % 4;
}

static int64_t bytes_of(int layout, int64_t rows, int64_t k_blocks, int64_t groups)
{
    return address(layout, rows, k_blocks, groups, 0, 0);
}

/* An f32 power of two, or the code of one, that depends on all three coordinates. */
static uint32_t exponent_at(int64_t group, int64_t row, int64_t k)
{
    return 1 + (uint32_t)((group * 101 + row * 37 + k * 59) % 254);
}

static void put(unsigned char *bytes, int layout, int64_t at, uint32_t exponent)
{
    const uint32_t bits = exponent << 23;
    if (layout == PACKED)
        bytes[at] = (unsigned char)exponent;
    else
        memcpy(bytes + at, &bits, sizeof(bits));
}

static void fill(unsigned char *bytes, int layout,
                 const struct assay_scale_layout_problem *problem, int poison)
{
    const int64_t rows = layout == PACKED
                             ? problem->mn
                             : (problem->mn + problem->gran_mn - 1) / problem->gran_mn;
    const int64_t k_blocks = (problem->k + problem->gran_k - 1) / problem->gran_k;
    memset(bytes, poison, LARGEST);
    ck_assert_int_le(bytes_of(layout, rows, k_blocks, groups_of(problem)), LARGEST);
    for (int64_t group = 0; group < groups_of(problem); group++)
        for (int64_t row = 0; row < rows; row++)
            for (int64_t k = 0; k < k_blocks; k++) {
                const int64_t source_row =
                    layout == PACKED ? row / problem->gran_mn : row;
                put(bytes, layout, address(layout, rows, k_blocks, group, row, k),
                    exponent_at(group, source_row, k));
            }
}

/* Missing blocks of the last word are 0. */
static void clear_missing(unsigned char *bytes,
                          const struct assay_scale_layout_problem *problem)
{
    const int64_t k_blocks = (problem->k + problem->gran_k - 1) / problem->gran_k;
    for (int64_t group = 0; group < groups_of(problem); group++)
        for (int64_t row = 0; row < problem->mn; row++)
            for (int64_t k = k_blocks; k % 4; k++)
                bytes[address(PACKED, problem->mn, k_blocks, group, row, k)] = 0;
}

static void convert(const struct assay_scale_layout_problem *problem,
                    const struct assay_scale_layout_numerics *numerics,
                    unsigned char *from, unsigned char *to)
{
    struct assay_tensors tensors = { .count = 2 };
    tensors.item[0] = assay_scale_layout_tensor(problem, problem->from, "sf");
    tensors.item[1] = assay_scale_layout_tensor(problem, problem->to, "out");
    tensors.item[0].data = from;
    tensors.item[1].data = to;
    ck_assert_int_le(assay_tensor_bytes(&tensors.item[0]), LARGEST);
    ck_assert_int_le(assay_tensor_bytes(&tensors.item[1]), LARGEST);
    for (int64_t part = 0; part < assay_scale_layout_parts(problem); part++)
        assay_scale_layout_model(problem, numerics, &tensors, part);
}

START_TEST(shapes_and_strides_are_upstream_s)
{
    struct assay_scale_layout_problem problem = {
        .groups = 0, .mn = 5, .k = 1100, .gran_mn = 1, .gran_k = 128
    };
    const struct {
        enum assay_format format;
        int64_t shape[2], stride[2];
    } expected[LAYOUTS] = {
        { ASSAY_F32, { 5, 9 }, { 9, 1 } },
        { ASSAY_F32, { 9, 5 }, { 8, 1 } },
        { ASSAY_I32, { 3, 5 }, { 8, 1 } },
    };
    for (int layout = 0; layout < LAYOUTS; layout++)
        for (int groups = 0; groups <= 6; groups += 6) {
            problem.groups = groups;
            const struct assay_tensor tensor = assay_scale_layout_tensor(
                &problem, (enum assay_scale_layout)layout, "sf");
            const int first = groups ? 1 : 0;
            ck_assert_int_eq(tensor.format, expected[layout].format);
            ck_assert_int_eq(tensor.rank, first + 2);
            for (int i = 0; i < 2; i++) {
                ck_assert_int_eq(tensor.shape[first + i], expected[layout].shape[i]);
                ck_assert_int_eq(tensor.stride[first + i], expected[layout].stride[i]);
            }
            if (!groups) continue;
            ck_assert_int_eq(tensor.shape[0], 6);
            ck_assert_int_eq(tensor.stride[0],
                             expected[layout].shape[0] * expected[layout].stride[0]);
        }
    problem.gran_mn = 128;
    problem.groups = 0;
    problem.mn = 300;
    ck_assert_int_eq(
        assay_scale_layout_tensor(&problem, ASSAY_SCALE_K_MAJOR, "sf").shape[0], 3);
    ck_assert_int_eq(
        assay_scale_layout_tensor(&problem, ASSAY_SCALE_PACKED_UE8M0, "sf").shape[1],
        300);
}
END_TEST

/* The whole memory is compared: scales in their places, padding still poison. */
START_TEST(every_conversion_moves_every_scale_and_leaves_padding_alone)
{
    for (int i = 0; i < PROBLEMS; i++)
        for (int from = 0; from < LAYOUTS; from++)
            for (int to = 0; to < LAYOUTS; to++) {
                if (from == to) continue;
                const struct assay_scale_layout_problem problem = problem_at(i, from, to);
                fill(sf_bytes, from, &problem, PADDING);
                fill(other_bytes, to, &problem, POISON);
                if (to == PACKED) clear_missing(other_bytes, &problem);
                memset(out_bytes, POISON, LARGEST);
                convert(&problem, &low_first, sf_bytes, out_bytes);
                ck_assert_msg(memcmp(out_bytes, other_bytes, LARGEST) == 0,
                              "problem %d from %d to %d", i, from, to);
            }
}
END_TEST

/* Arbitrary bits, NaN payloads and signs included, survive what has room for them. */
START_TEST(f32_layouts_keep_every_bit)
{
    const struct assay_scale_layout_problem there = problem_at(4, K_MAJOR, MN_MAJOR);
    const struct assay_scale_layout_problem back = problem_at(4, MN_MAJOR, K_MAJOR);
    const size_t bytes = 4 * 2 * 65 * 5;
    for (size_t i = 0; i < bytes; i++)
        sf_bytes[i] = (unsigned char)(i * 167 + (i >> 8) * 59 + 0x7f);
    memset(out_bytes, POISON, LARGEST);
    memset(other_bytes, POISON, LARGEST);
    convert(&there, &low_first, sf_bytes, out_bytes);
    convert(&back, &low_first, out_bytes, other_bytes);
    ck_assert_mem_eq(sf_bytes, other_bytes, bytes);
    ck_assert_mem_ne(sf_bytes, out_bytes, bytes);
}
END_TEST

START_TEST(packed_scales_come_back_to_the_same_bytes)
{
    for (int i = 0; i < PROBLEMS; i++)
        for (int via = K_MAJOR; via <= MN_MAJOR; via++) {
            const struct assay_scale_layout_problem there = problem_at(i, PACKED, via);
            const struct assay_scale_layout_problem back = problem_at(i, via, PACKED);
            fill(sf_bytes, PACKED, &there, POISON);
            clear_missing(sf_bytes, &there);
            memset(out_bytes, PADDING, LARGEST);
            memset(other_bytes, POISON, LARGEST);
            convert(&there, &low_first, sf_bytes, out_bytes);
            convert(&back, &low_first, out_bytes, other_bytes);
            ck_assert_msg(memcmp(sf_bytes, other_bytes, LARGEST) == 0, "problem %d", i);
        }
}
END_TEST

START_TEST(packing_repeats_a_scale_for_all_of_its_rows)
{
    for (int i = 0; i < PROBLEMS; i++)
        for (int from = K_MAJOR; from <= MN_MAJOR; from++) {
            struct assay_scale_layout_problem problem = problem_at(i, from, PACKED);
            problem.gran_mn = 128;
            problem.gran_k = i % 2 ? 32 : 128;
            fill(sf_bytes, from, &problem, PADDING);
            fill(other_bytes, PACKED, &problem, POISON);
            clear_missing(other_bytes, &problem);
            memset(out_bytes, POISON, LARGEST);
            convert(&problem, &low_first, sf_bytes, out_bytes);
            ck_assert_msg(memcmp(out_bytes, other_bytes, LARGEST) == 0, "problem %d", i);
        }
}
END_TEST

/* Each scale another power of two: equal ones are blind to this (pytorch/ao PR 4229). */
START_TEST(lowest_block_is_in_the_least_significant_byte)
{
    const struct assay_scale_layout_problem problem = {
        .mn = 1, .k = 896, .gran_mn = 1, .gran_k = 128, .to = ASSAY_SCALE_PACKED_UE8M0
    };
    const float scales[] = { 1, 2, 4, 8, 0.5f, 0.25f, 0x1p127f };
    uint32_t words[8] = { 0 };
    memcpy(sf_bytes, scales, sizeof(scales));
    convert(&problem, &low_first, sf_bytes, (unsigned char *)words);
    ck_assert_uint_eq(words[0], 0x8281807F);
    ck_assert_uint_eq(words[4], 0x00FE7D7E);

    const struct assay_scale_layout_numerics high_first = { ASSAY_SCALE_HIGH_FIRST };
    convert(&problem, &high_first, sf_bytes, (unsigned char *)words);
    ck_assert_uint_eq(words[0], 0x7F808182);
    ck_assert_uint_eq(words[4], 0x7E7DFE00);
}
END_TEST

/* Scales on the wrong rows pass with constant data (ThunderKittens issue 88). */
START_TEST(one_changed_scale_changes_its_own_places_only)
{
    for (int from = 0; from < LAYOUTS; from++)
        for (int to = 0; to < LAYOUTS; to++) {
            if (from == to) continue;
            const struct assay_scale_layout_problem problem = problem_at(5, from, to);
            for (int64_t row = 0; row < 130; row += 43) {
                fill(sf_bytes, from, &problem, PADDING);
                memset(out_bytes, POISON, LARGEST);
                memset(other_bytes, POISON, LARGEST);
                convert(&problem, &low_first, sf_bytes, out_bytes);
                put(sf_bytes, from, address(from, 130, 3, 2, row, 1),
                    exponent_at(2, row, 1) ^ 0x80);
                convert(&problem, &low_first, sf_bytes, other_bytes);
                put(out_bytes, to, address(to, 130, 3, 2, row, 1),
                    exponent_at(2, row, 1) ^ 0x80);
                ck_assert_mem_eq(out_bytes, other_bytes, LARGEST);
            }
        }
}
END_TEST

/* Seen wrong: 134 was NaN and 255 infinity (sglang PR 25519), 0 was zero
 * (TransformerEngine PR 3262). */
START_TEST(every_code_unpacks_to_its_power_of_two)
{
    for (uint32_t code = 0; code < 256; code++) {
        const uint32_t bits = assay_scale_unpacked(code);
        float value;
        memcpy(&value, &bits, sizeof(value));
        if (code == 255)
            ck_assert_uint_eq(bits, 0x7FFFFFFF);
        else
            ck_assert(value == ldexpf(1, (int)code - 127));
    }
    ck_assert_uint_eq(assay_scale_unpacked(134), 0x43000000);
    ck_assert_uint_eq(assay_scale_unpacked(0), 0x00400000);
}
END_TEST

START_TEST(only_exponent_bits_can_be_packed)
{
    for (uint32_t exponent = 0; exponent < 256; exponent++) {
        ck_assert(assay_scale_is_packable(exponent << 23));
        ck_assert(!assay_scale_is_packable(exponent << 23 | 0x80000000));
        for (int bit = 0; bit < 23; bit++)
            ck_assert(!assay_scale_is_packable(exponent << 23 | 1u << bit));
    }
}
END_TEST

/* What DeepGEMM traps on and a case may insist on: the exponent field is moved. */
START_TEST(packing_takes_the_exponent_field_of_any_scale)
{
    const struct assay_scale_layout_problem problem = {
        .mn = 1, .k = 512, .gran_mn = 1, .gran_k = 128, .to = ASSAY_SCALE_PACKED_UE8M0
    };
    const uint32_t bits[4] = { 0xBE99999A, 0x7FC00000, 0x00012345, 0x80000000 };
    uint32_t words[4] = { 0 };
    memcpy(sf_bytes, bits, sizeof(bits));
    convert(&problem, &low_first, sf_bytes, (unsigned char *)words);
    ck_assert_uint_eq(words[0], 0x0000FF7D);
}
END_TEST

START_TEST(empty_problems_have_no_parts)
{
    struct assay_scale_layout_problem problem = problem_at(1, K_MAJOR, PACKED);
    problem.k = 0;
    ck_assert_int_eq(assay_scale_layout_parts(&problem), 0);
    problem.k = 1;
    problem.mn = 0;
    ck_assert_int_eq(assay_scale_layout_parts(&problem), 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        shapes_and_strides_are_upstream_s,
        every_conversion_moves_every_scale_and_leaves_padding_alone,
        f32_layouts_keep_every_bit,
        packed_scales_come_back_to_the_same_bytes,
        packing_repeats_a_scale_for_all_of_its_rows,
        lowest_block_is_in_the_least_significant_byte,
        one_changed_scale_changes_its_own_places_only,
        every_code_unpacks_to_its_power_of_two,
        only_exponent_bits_can_be_packed,
        packing_takes_the_exponent_field_of_any_scale,
        empty_problems_have_no_parts,
        NULL,
    };
    return run_tests("scale_layout", tests);
}
