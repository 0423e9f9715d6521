/* SPDX-License-Identifier: MIT */
/* The purse against schedules recorded on an H200, and plans worked out by hand. */
#include "ref/oracle/mla_plan.h"

#include "ref/mla_problem.h"
#include "tests/harness.h"
#include "tests/recorded_plans.h"

#include <math.h>
#include <string.h>

static struct assay_mla_plan_problem problem;
static int32_t lengths[ASSAY_MLA_MAX_REQUESTS], extra_lengths[ASSAY_MLA_MAX_REQUESTS];
static double metadata[ASSAY_MLA_MAX_PARTS][ASSAY_PLAN_FIELDS];
static double num_splits[ASSAY_MLA_MAX_REQUESTS + 1];

static void ask(int64_t block_keys, int64_t overhead)
{
    const struct assay_mla_plan_rules rules = { block_keys, overhead };
    const int64_t b = problem.b;
    const struct assay_tensors tensors = {
        .count = 2,
        .item = { { problem.is_sparse ? "topk_length" : "cache_seqlens",
                    ASSAY_I32,
                    false,
                    1,
                    { b },
                    { 1 },
                    lengths },
                  { "extra_topk_length",
                    ASSAY_I32,
                    false,
                    1,
                    { b },
                    { 1 },
                    extra_lengths } },
    };
    memset(metadata, 0x5A, sizeof(metadata));
    memset(num_splits, 0x5A, sizeof(num_splits));
    assay_mla_plan_oracle(&problem, &rules, &tensors, metadata[0], num_splits);
}

static void ask_dense(int64_t parts, int64_t b, const int32_t *values, int64_t block_keys,
                      int64_t overhead)
{
    problem = (struct assay_mla_plan_problem){ .b = b, .num_sm_parts = parts };
    memcpy(lengths, values, (size_t)b * sizeof(*values));
    ask(block_keys, overhead);
}

static void check_recorded(const struct recorded_plan *row)
{
    problem = (struct assay_mla_plan_problem){
        .b = row->b,
        .num_sm_parts = row->parts,
        .is_sparse = row->is_sparse,
        .topk = row->topk,
        .extra_topk = row->extra_topk,
        .has_topk_length = row->is_sparse && row->length[1] != 0,
        .has_extra_topk_length = row->extra_topk > 0,
    };
    memcpy(lengths, row->length, sizeof(row->length));
    memcpy(extra_lengths, row->extra_length, sizeof(row->extra_length));
    ask(64, 5);
    for (int i = 0; i <= row->b; i++)
        ck_assert(num_splits[i] == row->num_splits[i]);
    for (int part = 0; part < row->parts; part++) {
        const bool is_busy = part < row->busy;
        for (int field = 0; field < ASSAY_PLAN_PAD; field++) {
            const double value = metadata[part][field];
            if (is_busy)
                ck_assert_msg(value == row->record[part][field],
                              "%s, part %d, field %d: %g", row->name, part, field, value);
            else if (field > ASSAY_PLAN_END_REQ)
                ck_assert(isnan(value));
        }
        ck_assert(isnan(metadata[part][ASSAY_PLAN_PAD]));
        if (is_busy) continue;
        ck_assert(metadata[part][ASSAY_PLAN_BEGIN_REQ] == row->b);
        ck_assert(metadata[part][ASSAY_PLAN_END_REQ] == row->b - 1);
    }
}

START_TEST(recorded_schedules_are_repeated_field_by_field)
{
    for (size_t i = 0; i < sizeof(recorded_plans) / sizeof(recorded_plans[0]); i++)
        check_recorded(&recorded_plans[i]);
}
END_TEST

START_TEST(mixed_lengths_give_the_plans_worked_out_by_hand)
{
    static const double records[3][7] = { { 0, 1, 0, 1, 0, 0, 0 },
                                          { 2, 2, 0, 9, 0, 1, 1 },
                                          { 2, 2, 9, 16, 1, 1, 1 } };
    ask_dense(66, 3, (const int32_t[]){ 100, 0, 4096 }, 64, 5);
    ck_assert(num_splits[1] == 1 && num_splits[2] == 2 && num_splits[3] == 34);
    ask_dense(4, 3, (const int32_t[]){ 130, 64, 1000 }, 64, 5);
    ck_assert(num_splits[1] == 1 && num_splits[2] == 2 && num_splits[3] == 4);
    for (int part = 0; part < 3; part++)
        ck_assert_mem_eq(metadata[part], records[part], sizeof(records[part]));
    ck_assert(metadata[3][ASSAY_PLAN_BEGIN_REQ] == 3);
}
END_TEST

START_TEST(requests_without_keys_end_at_block_0)
{
    ask_dense(2, 3, (const int32_t[]){ 0, 0, 0 }, 64, 5);
    ck_assert(metadata[0][ASSAY_PLAN_END_REQ] == 1);
    ck_assert(metadata[0][ASSAY_PLAN_END_BLOCK] == 0);
    ck_assert(metadata[0][ASSAY_PLAN_LAST_SPLIT] == 0);
    ck_assert(metadata[1][ASSAY_PLAN_BEGIN_REQ] == 2);
    ck_assert(num_splits[3] == 3);
}
END_TEST

/* Payload 1 with one nominal block each; nothing would be paid for without them. */
START_TEST(requests_without_keys_have_one_block)
{
    ask_dense(3, 3, (const int32_t[]){ 0, 0, 0 }, 64, 0);
    for (int part = 0; part < 3; part++) {
        ck_assert(metadata[part][ASSAY_PLAN_BEGIN_REQ] == part);
        ck_assert(metadata[part][ASSAY_PLAN_END_REQ] == part);
    }
    ck_assert(num_splits[3] == 3);
}
END_TEST

START_TEST(rules_change_the_price_and_the_size_of_a_block)
{
    ask_dense(4, 1, (const int32_t[]){ 512 }, 64, 0);
    ck_assert(num_splits[1] == 4 && metadata[3][ASSAY_PLAN_BEGIN_BLOCK] == 6);
    ask_dense(4, 1, (const int32_t[]){ 512 }, 64, 3);
    ck_assert(num_splits[1] == 3 && metadata[0][ASSAY_PLAN_END_BLOCK] == 3);
    ask_dense(4, 1, (const int32_t[]){ 512 }, 128, 0);
    ck_assert(num_splits[1] == 4 && metadata[3][ASSAY_PLAN_BEGIN_BLOCK] == 3);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        recorded_schedules_are_repeated_field_by_field,
        mixed_lengths_give_the_plans_worked_out_by_hand,
        requests_without_keys_end_at_block_0,
        requests_without_keys_have_one_block,
        rules_change_the_price_and_the_size_of_a_block,
        NULL,
    };
    return run_tests("mla_plan", tests);
}
