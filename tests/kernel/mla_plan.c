/* SPDX-License-Identifier: MIT */
/* The scheduler model against schedules recorded on an H200 and plans worked out by
 * hand. */
#include "tests/harness.h"
#include "tests/kernel/plan_fixture.h"
#include "tests/recorded_plans.h"

static void check_recorded(const struct recorded_plan *row)
{
    struct plan plan;
    const bool has_length = row->is_sparse && row->length[1] != 0;
    open_plan(&plan, &(struct assay_mla_plan_problem){ .b = row->b,
                                                       .num_sm_parts = row->parts,
                                                       .overhead = 5,
                                                       .is_sparse = row->is_sparse,
                                                       .topk = row->topk,
                                                       .extra_topk = row->extra_topk,
                                                       .has_topk_length = has_length,
                                                       .has_extra_topk_length =
                                                           row->extra_topk > 0 });
    for (int i = 0; i < row->b; i++) {
        if (plan.length) plan.length[i] = row->length[i];
        if (plan.extra_length) plan.extra_length[i] = row->extra_length[i];
    }
    schedule(&plan);
    for (int i = 0; i <= row->b; i++)
        ck_assert_int_eq(plan.num_splits[i], row->num_splits[i]);
    for (int part = 0; part < row->parts; part++) {
        const int32_t idle[8] = { row->b, row->b - 1 };
        const bool is_busy = part < row->busy;
        for (int field = 0; field < ASSAY_PLAN_FIELDS; field++) {
            const int32_t expected = field == ASSAY_PLAN_PAD ? 0
                                     : is_busy               ? row->record[part][field]
                                                             : idle[field];
            ck_assert_msg(plan.metadata[8 * part + field] == expected,
                          "%s, part %d, field %d: %d", row->name, part, field,
                          plan.metadata[8 * part + field]);
        }
    }
    int64_t request;
    ck_assert_ptr_null(fault_of(&plan, &request));
    close_plan(&plan);
}

START_TEST(recorded_schedules_are_repeated_field_by_field)
{
    for (size_t i = 0; i < sizeof(recorded_plans) / sizeof(recorded_plans[0]); i++)
        check_recorded(&recorded_plans[i]);
}
END_TEST

START_TEST(one_long_request_is_split_into_pairs_of_blocks)
{
    struct plan plan;
    struct assay_mla_split splits[ASSAY_MLA_MAX_PARTS];
    open_dense(&plan, 66, 1, (const int32_t[]){ 4096 });
    schedule(&plan);
    ck_assert_int_eq(plan.num_splits[1], 32);
    ck_assert_int_eq(splits_of(&plan, 0, splits, ASSAY_MLA_MAX_PARTS), 32);
    for (int64_t i = 0; i < 32; i++) {
        ck_assert_int_eq(splits[i].begin_block, 2 * i);
        ck_assert_int_eq(splits[i].end_block, 2 * i + 2);
        ck_assert_int_eq(splits[i].split, i);
        ck_assert(!splits[i].is_whole);
    }
    close_plan(&plan);
}
END_TEST

START_TEST(mixed_lengths_give_the_plans_worked_out_by_hand)
{
    static const int32_t ends[] = { 0, 1, 2, 34 }, few_ends[] = { 0, 1, 2, 4 };
    static const int32_t records[4][7] = { { 0, 1, 0, 1, 0, 0, 0 },
                                           { 2, 2, 0, 9, 0, 1, 1 },
                                           { 2, 2, 9, 16, 1, 1, 1 },
                                           { 3, 2, 0, 0, 0, 0, 0 } };
    struct plan plan;
    open_dense(&plan, 66, 3, (const int32_t[]){ 100, 0, 4096 });
    schedule(&plan);
    ck_assert_mem_eq(plan.num_splits, ends, sizeof(ends));
    close_plan(&plan);
    open_dense(&plan, 4, 3, (const int32_t[]){ 130, 64, 1000 });
    schedule(&plan);
    ck_assert_mem_eq(plan.num_splits, few_ends, sizeof(few_ends));
    for (int part = 0; part < 4; part++)
        ck_assert_mem_eq(plan.metadata + 8 * part, records[part], sizeof(records[part]));
    close_plan(&plan);
}
END_TEST

START_TEST(sparse_requests_without_lengths_all_have_topk_keys)
{
    struct plan plan;
    struct assay_mla_plan_problem problem = {
        .b = 128, .num_sm_parts = 33, .overhead = 5, .is_sparse = true, .topk = 2048
    };
    open_plan(&plan, &problem);
    schedule(&plan);
    for (int32_t i = 0; i <= 128; i++)
        ck_assert_int_eq(plan.num_splits[i], i);
    for (int32_t part = 0; part < 32; part++) {
        ck_assert_int_eq(plan.metadata[8 * part], 4 * part);
        ck_assert_int_eq(plan.metadata[8 * part + 1], 4 * part + 3);
    }
    close_plan(&plan);
    problem.b = 2;
    open_plan(&plan, &problem);
    schedule(&plan);
    for (int64_t request = 0; request < 2; request++) {
        struct assay_mla_split splits[ASSAY_MLA_MAX_PARTS];
        ck_assert_int_eq(splits_of(&plan, request, splits, ASSAY_MLA_MAX_PARTS), 11);
        for (int64_t i = 0; i < 11; i++) {
            ck_assert_int_eq(splits[i].begin_block, 3 * i);
            ck_assert_int_eq(splits[i].end_block, i < 10 ? 3 * i + 3 : 32);
        }
    }
    close_plan(&plan);
}
END_TEST

START_TEST(blocks_are_counted_as_the_kernels_count_them)
{
    static const struct {
        int32_t length, extra;
        int64_t dense, sparse, with_extra;
    } rows[] = { { 0, 0, 1, 1, 1 },   { 1, 1, 1, 1, 2 },   { 64, 64, 1, 1, 2 },
                 { 65, 65, 2, 2, 4 }, { 128, 0, 2, 2, 2 }, { 4096, 1, 64, 64, 65 },
                 { 1, 129, 1, 1, 4 }, { 0, 128, 1, 1, 3 }, { -5, 0, 1, 1, 1 } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int kind = 0; kind < 3; kind++) {
            struct plan plan;
            const int64_t expected = kind == 0   ? rows[i].dense
                                     : kind == 1 ? rows[i].sparse
                                                 : rows[i].with_extra;
            open_plan(&plan, &(struct assay_mla_plan_problem){
                                 .b = 1,
                                 .num_sm_parts = 1,
                                 .is_sparse = kind > 0,
                                 .topk = 8192,
                                 .extra_topk = kind == 2 ? 8192 : 0,
                                 .has_topk_length = kind > 0,
                                 .has_extra_topk_length = kind == 2 });
            plan.length[0] = rows[i].length;
            if (plan.extra_length) plan.extra_length[0] = rows[i].extra;
            ck_assert_int_eq(assay_mla_plan_blocks(&plan.problem, &plan.tensors, 0),
                             expected);
            close_plan(&plan);
        }
}
END_TEST

/* 8 blocks on 4 parts: payload ceil((8 + F) / 4) + F pays for ceil((8 + F) / 4). */
START_TEST(overhead_and_block_size_are_knobs)
{
    static const struct {
        int block_keys, overhead, splits, blocks;
    } rows[] = { { 64, -1, 2, 4 },
                 { 64, 5, 2, 4 },
                 { 64, 0, 4, 2 },
                 { 64, 3, 3, 3 },
                 { 128, 0, 4, 1 } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct assay_mla_plan_numerics numerics = { rows[i].block_keys,
                                                          rows[i].overhead };
        struct plan plan;
        open_dense(&plan, 4, 1, (const int32_t[]){ 512 });
        assay_mla_plan_model(&plan.problem, &numerics, &plan.tensors);
        ck_assert_int_eq(plan.num_splits[1], rows[i].splits);
        ck_assert_int_eq(plan.metadata[ASSAY_PLAN_END_BLOCK], rows[i].blocks);
        close_plan(&plan);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        recorded_schedules_are_repeated_field_by_field,
        one_long_request_is_split_into_pairs_of_blocks,
        mixed_lengths_give_the_plans_worked_out_by_hand,
        sparse_requests_without_lengths_all_have_topk_keys,
        blocks_are_counted_as_the_kernels_count_them,
        overhead_and_block_size_are_knobs,
        NULL,
    };
    return run_tests("mla_plan", tests);
}
