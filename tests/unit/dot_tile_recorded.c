/* SPDX-License-Identifier: MIT */
/* Tiles of dot-adds against wgmma outputs recorded on an H200, with each instruction set
 * that this machine has. */
#include "ref/unit/dot_tile.h"
#include "tests/unit/wgmma_vectors.h"

enum { MAX_STEPS = 36, TILE_OUTPUTS = ROWS * COLUMNS, SERVED_OUTPUTS = 174080 };

/* The recorded order has all rows of a step together: @to has all steps of a row. */
static void gather_rows(unsigned char *to, const unsigned char *from, int rows, int steps)
{
    for (int step = 0; step < steps; step++)
        for (int row = 0; row < rows; row++)
            memcpy(to + (row * steps + step) * STEP_BYTES,
                   from + (step * rows + row) * STEP_BYTES, STEP_BYTES);
}

static void compare_block(const struct group *group, int64_t block)
{
    static unsigned char a[ROWS * MAX_STEPS * STEP_BYTES];
    static unsigned char b[COLUMNS * MAX_STEPS * STEP_BYTES];
    uint32_t accumulator[TILE_OUTPUTS];
    const int64_t bytes = group->steps * STEP_BYTES;
    const int64_t k = group->steps * group->profile.terms;
    gather_rows(a, group->a + block * ROWS * bytes, ROWS, group->steps);
    gather_rows(b, group->b + block * COLUMNS * bytes, COLUMNS, group->steps);
    memcpy(accumulator, group->c + block * TILE_OUTPUTS * 4, sizeof accumulator);

    const struct assay_dot_tile tile = {
        .profile = &group->profile,
        .format_a = group->format_a,
        .format_b = group->format_b,
        .rows = ROWS,
        .columns = COLUMNS,
        .k = k,
        .a = a,
        .b = b,
        .a_stride = { k, 1 },
        .b_stride = { k, 1 },
        .accumulator = accumulator,
        .accumulator_stride = COLUMNS,
    };
    assay_dot_tile(&tile);
    for (int i = 0; i < TILE_OUTPUTS; i++) {
        const uint32_t recorded = word_at(group->d, block * TILE_OUTPUTS + i);
        if (accumulator[i] != recorded)
            ck_abort_msg("%s, %s: output %d of block %lld is %08x, recorded %08x",
                         assay_dot_tile_instruction_set(), group->base, i,
                         (long long)block, accumulator[i], recorded);
    }
}

/* Outputs compared. */
static int64_t compare_groups(const struct vectors *vectors)
{
    int64_t outputs = 0;
    const char *name;
    json_t *entry;
    json_object_foreach(vectors->header, name, entry)
    {
        struct group group;
        if (!is_result(name)) continue;
        open_group(&group, vectors, name);
        if (!assay_dot_tile_serves(&group.profile, group.format_a, group.format_b))
            continue;
        ck_assert_int_le(group.steps, MAX_STEPS);
        for (int64_t block = 0; block < group.blocks; block++)
            compare_block(&group, block);
        outputs += group.blocks * TILE_OUTPUTS;
    }
    return outputs;
}

START_TEST(every_recorded_output_is_reproduced_with_every_instruction_set)
{
    struct vectors vectors = open_vectors();
    const char *const *name = assay_dot_tile_instruction_sets();
    for (; *name; name++)
        if (assay_dot_tile_choose(*name))
            ck_assert_int_eq(compare_groups(&vectors), SERVED_OUTPUTS);
    ck_assert(assay_dot_tile_choose("portable"));
    close_vectors(&vectors);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_recorded_output_is_reproduced_with_every_instruction_set,
        NULL,
    };
    return run_tests("dot_tile_recorded", tests);
}
