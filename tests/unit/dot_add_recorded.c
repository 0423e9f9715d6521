/* SPDX-License-Identifier: MIT */
/* The measured dot-adds against wgmma outputs recorded on an H200
 * (corpus/units/README.md). */
#include "tests/unit/wgmma_vectors.h"

static void decode_step(const struct group *group, enum assay_format format,
                        const unsigned char *bytes, struct assay_operand *operands)
{
    const size_t size = assay_format_bytes(format);
    for (int k = 0; k < group->profile.terms; k++) {
        uint32_t code = 0;
        memcpy(&code, bytes + (size_t)k * size, size);
        operands[k] = assay_operand_decode(&group->profile, format, code);
    }
}

static uint32_t chain(const struct group *group, int64_t output)
{
    struct assay_operand a[ASSAY_DOT_ADD_MAX_TERMS], b[ASSAY_DOT_ADD_MAX_TERMS];
    const int64_t first_step = output / (ROWS * COLUMNS) * group->steps;
    const int64_t row = output / COLUMNS % ROWS, column = output % COLUMNS;
    uint32_t accumulator = word_at(group->c, output);
    for (int64_t step = first_step; step < first_step + group->steps; step++) {
        decode_step(group, group->format_a, group->a + (step * ROWS + row) * STEP_BYTES,
                    a);
        decode_step(group, group->format_b,
                    group->b + (step * COLUMNS + column) * STEP_BYTES, b);
        accumulator = assay_dot_add(&group->profile, accumulator, a, b);
    }
    return accumulator;
}

/* Outputs of the group that differ from the recorded ones; *first is one of them. */
static int count_differences(const struct group *group, int64_t *first)
{
    int differences = 0;
    for (int64_t output = group->blocks * ROWS * COLUMNS; output-- > 0;)
        if (chain(group, output) != word_at(group->d, output)) {
            *first = output;
            differences++;
        }
    return differences;
}

/* --- tests ------------------------------------------------------------------------ */

START_TEST(every_recorded_output_is_reproduced_to_the_bit)
{
    struct vectors vectors = open_vectors();
    int64_t outputs = 0;
    const char *name;
    json_t *entry;
    json_object_foreach(vectors.header, name, entry)
    {
        if (!is_result(name)) continue;
        struct group group;
        int64_t first = 0;
        open_group(&group, &vectors, name);
        const int differences = count_differences(&group, &first);
        ck_assert_msg(differences == 0,
                      "%s: %d outputs differ; output %lld is %08x, recorded %08x", name,
                      differences, (long long)first, chain(&group, first),
                      word_at(group.d, first));
        outputs += group.blocks * ROWS * COLUMNS;
    }
    ck_assert_int_eq(outputs, OUTPUTS);
    ck_assert_uint_eq(json_object_size(vectors.header), TENSORS + 1);
    close_vectors(&vectors);
}
END_TEST

/* Differences over all groups of @profile_name with its constants changed. */
static int differences_with(const struct vectors *vectors, const char *profile_name,
                            int align_bits, int result_bits)
{
    int differences = 0;
    const char *name;
    json_t *entry;
    json_object_foreach(vectors->header, name, entry)
    {
        struct group group;
        int64_t first;
        if (!is_result(name)) continue;
        open_group(&group, vectors, name);
        if (strcmp(group.profile.name, profile_name) != 0) continue;
        group.profile.align_bits = align_bits;
        group.profile.result_bits = result_bits;
        differences += count_differences(&group, &first);
    }
    return differences;
}

START_TEST(recorded_outputs_refute_the_neighbouring_constants)
{
    static const char *const names[] = { "hopper-fp8", "hopper-bf16", "hopper-f16",
                                         "hopper-tf32" };
    struct vectors vectors = open_vectors();
    for (int i = 0; i < 4; i++) {
        const struct assay_dot_add *const row = assay_dot_add_find(names[i]);
        for (int change = -1; change <= 1; change += 2) {
            ck_assert_int_gt(differences_with(&vectors, row->name,
                                              row->align_bits + change, row->result_bits),
                             0);
            if (row->result_bits + change > 23) continue;
            ck_assert_int_gt(differences_with(&vectors, row->name, row->align_bits,
                                              row->result_bits + change),
                             0);
        }
    }
    close_vectors(&vectors);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_recorded_output_is_reproduced_to_the_bit,
        recorded_outputs_refute_the_neighbouring_constants,
        NULL,
    };
    return run_tests("dot_add_recorded", tests);
}
