/* SPDX-License-Identifier: MIT */
/* The reader of plans, and what it finds wrong with them: legal plans, and thousands of
 * damaged ones, judged by a check that marks every block. */
#include "tests/harness.h"
#include "tests/kernel/plan_fixture.h"

static uint64_t state;

static uint32_t below(uint32_t limit)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)((state >> 32) * limit >> 32);
}

/* Whether the kernels compute every request right from this plan: each block of a request
 * is visited once, each split writes a slot of its own, and a result goes where the
 * combine kernel, which leaves out requests of one split, looks for it. */
static bool is_sound(const struct plan *plan)
{
    enum { MOST_BLOCKS = 200 };
    const int64_t b = plan->problem.b;
    static uint8_t visits[64][MOST_BLOCKS];
    int64_t splits[64] = { 0 };
    memset(visits, 0, sizeof(visits));
    if (plan->num_splits[0] != 0) return false;
    for (int64_t part = 0; part < plan->problem.num_sm_parts; part++) {
        const int32_t *const r = plan->metadata + 8 * part;
        if (r[0] >= b) continue;
        if (r[0] < 0 || r[1] < r[0] || r[1] >= b) return false;
        for (int64_t i = r[0]; i <= r[1]; i++) {
            const int64_t blocks =
                assay_mla_plan_blocks(&plan->problem, &plan->tensors, i);
            const int64_t owned = (int64_t)plan->num_splits[i + 1] - plan->num_splits[i];
            int64_t from = 0, to = blocks, split = 0;
            bool is_split = false;
            if (i == r[1]) to = r[3], is_split = r[6];
            if (i == r[0]) from = r[2], split = r[4], is_split = r[5];
            if (from < 0 || from >= blocks || to < from || to > blocks) return false;
            if (split != splits[i]++ || is_split == (owned == 1)) return false;
            for (int64_t at = from; at < to; at++)
                if (visits[i][at]++) return false;
        }
    }
    for (int64_t i = 0; i < b; i++) {
        const int64_t blocks = assay_mla_plan_blocks(&plan->problem, &plan->tensors, i);
        const bool is_empty =
            plan->length && !plan->problem.is_sparse && plan->length[i] == 0;
        if (splits[i] == 0 ||
            splits[i] != (int64_t)plan->num_splits[i + 1] - plan->num_splits[i])
            return false;
        for (int64_t at = 0; at < blocks && !is_empty; at++)
            if (!visits[i][at]) return false;
    }
    return true;
}

/* Lengths give 100 blocks at most. */
static void open_random(struct plan *plan)
{
    const bool is_sparse = below(2);
    open_plan(plan, &(struct assay_mla_plan_problem){
                        .b = 1 + below(12),
                        .num_sm_parts = 1 + below(below(2) ? 12 : 160),
                        .overhead = below(4) ? 5 : below(9),
                        .is_sparse = is_sparse,
                        .topk = 64 * (1 + below(40)),
                        .extra_topk = is_sparse && below(2) ? 64 * (1 + below(40)) : 0,
                        .has_topk_length = is_sparse && below(2),
                        .has_extra_topk_length = false });
    for (int64_t i = 0; i < plan->problem.b && plan->length; i++)
        plan->length[i] = below(5) == 0 ? 0 : (int32_t)below(below(2) ? 70 : 2560);
}

/* Cuts every request at random: a legal plan that no scheduler makes. Parts are dealt
 * out in order, one to three splits of different requests each. */
static void cut_at_random(struct plan *plan)
{
    const int64_t parts = plan->problem.num_sm_parts, b = plan->problem.b;
    int64_t part = 0, request = 0, block = 0, split = 0;
    for (; part < parts; part++) {
        int32_t *const r = plan->metadata + 8 * part;
        int64_t more = part == parts - 1 ? b : below(3);
        r[0] = (int32_t)request;
        r[2] = (int32_t)block;
        r[4] = (int32_t)split;
        r[5] = block > 0;
        if (request == b) continue;
        while (true) {
            const int64_t blocks =
                assay_mla_plan_blocks(&plan->problem, &plan->tensors, request);
            const int64_t rest = blocks - block;
            const int64_t take = part == parts - 1 ? rest
                                 : below(3)        ? rest
                                                   : 1 + below((uint32_t)rest);
            r[1] = (int32_t)request;
            block += take;
            r[3] = (int32_t)block;
            r[6] = block < blocks;
            split++;
            if (block < blocks) break;
            plan->num_splits[request + 1] = plan->num_splits[request] + (int32_t)split;
            request++;
            block = split = 0;
            if (request == b || more-- == 0) break;
        }
        if (r[0] == r[1]) r[5] = r[6] = r[5] | r[6];
    }
}

START_TEST(every_plan_of_the_scheduler_is_sound)
{
    state = 1;
    for (int i = 0; i < 20000; i++) {
        struct plan plan;
        int64_t request;
        open_random(&plan);
        schedule(&plan);
        if (!is_sound(&plan)) ck_abort_msg("plan %d", i);
        if (fault_of(&plan, &request)) ck_abort_msg("plan %d", i);
        close_plan(&plan);
    }
}
END_TEST

START_TEST(plans_cut_at_random_are_accepted_and_read_back)
{
    state = 2;
    int64_t several = 0;
    for (int i = 0; i < 20000; i++) {
        struct plan plan;
        int64_t request;
        open_random(&plan);
        plan.num_splits[0] = 0;
        cut_at_random(&plan);
        const char *const fault = fault_of(&plan, &request);
        if (fault || !is_sound(&plan)) ck_abort_msg("plan %d: %s", i, fault);
        for (request = 0; request < plan.problem.b; request++) {
            struct assay_mla_split splits[ASSAY_MLA_MAX_PARTS];
            const int64_t blocks =
                assay_mla_plan_blocks(&plan.problem, &plan.tensors, request);
            const int64_t count = splits_of(&plan, request, splits, ASSAY_MLA_MAX_PARTS);
            int64_t block = 0;
            several += count > 1;
            if (count != plan.num_splits[request + 1] - plan.num_splits[request])
                ck_abort_msg("plan %d: %lld splits", i, (long long)count);
            for (int64_t at = 0; at < count; at++) {
                if (splits[at].begin_block != block || splits[at].split != at ||
                    splits[at].is_whole != (count == 1))
                    ck_abort_msg("plan %d: split %lld", i, (long long)at);
                block = splits[at].end_block;
            }
            if (block != blocks) ck_abort_msg("plan %d: %lld", i, (long long)block);
        }
        close_plan(&plan);
    }
    ck_assert_int_gt(several, 10000);
}
END_TEST

static int32_t random_word(void)
{
    static const int32_t extremes[] = { INT32_MIN, INT32_MAX, -1, 1 << 30 };
    const uint32_t how = below(8);
    if (how == 0) return extremes[below(4)];
    if (how == 1) return (int32_t)(below(0xFFFFFFFF));
    return (int32_t)below(how < 5 ? 3 : 14) - (how == 7);
}

/* A few words are overwritten, two records swapped, or all words are noise. */
static void damage(struct plan *plan)
{
    const uint32_t words = 8 * (uint32_t)plan->problem.num_sm_parts;
    const uint32_t ends = (uint32_t)plan->problem.b + 1;
    const uint32_t how = below(16);
    if (how == 0) {
        for (uint32_t i = 0; i < words; i++)
            plan->metadata[i] = random_word();
        for (uint32_t i = 0; i < ends; i++)
            plan->num_splits[i] = random_word();
    } else if (how < 4) {
        int32_t record[8];
        int32_t *const a = plan->metadata + 8 * below(words / 8);
        int32_t *const b = plan->metadata + 8 * below(words / 8);
        memcpy(record, a, sizeof(record));
        memmove(a, b, sizeof(record));
        memcpy(b, record, sizeof(record));
        if (how == 1) a[ASSAY_PLAN_BEGIN_SPLIT] = (int32_t)below(3);
        if (how == 1) b[ASSAY_PLAN_BEGIN_SPLIT] = (int32_t)below(3);
    } else {
        for (uint32_t count = 1 + below(2); count > 0; count--) {
            const uint32_t at = below(words < 64 ? words + ends : 64);
            if (at < words)
                plan->metadata[at] = random_word();
            else
                plan->num_splits[at - words] = random_word();
        }
    }
}

START_TEST(a_damaged_plan_is_accepted_if_and_only_if_marking_every_block_finds_it_sound)
{
    int64_t accepted = 0, refused = 0;
    state = 3;
    for (int i = 0; i < 60000; i++) {
        struct plan plan;
        int64_t request = -1;
        open_random(&plan);
        if (below(2)) {
            schedule(&plan);
        } else {
            plan.num_splits[0] = 0;
            cut_at_random(&plan);
        }
        damage(&plan);
        const char *const fault = fault_of(&plan, &request);
        if (is_sound(&plan) != !fault) ck_abort_msg("plan %d: %s", i, fault);
        accepted += !fault;
        refused += fault != NULL;
        close_plan(&plan);
    }
    ck_assert_int_gt(accepted, 3000);
    ck_assert_int_gt(refused, 30000);
}
END_TEST

START_TEST(any_plan_is_read_without_leaving_the_blocks_or_the_splits)
{
    state = 4;
    int64_t read = 0;
    for (int i = 0; i < 60000; i++) {
        struct plan plan;
        open_random(&plan);
        schedule(&plan);
        damage(&plan);
        for (int64_t request = 0; request < plan.problem.b; request++) {
            const int64_t blocks =
                assay_mla_plan_blocks(&plan.problem, &plan.tensors, request);
            const int64_t owned =
                (int64_t)plan.num_splits[request + 1] - plan.num_splits[request];
            const int64_t capacity = below(4) ? ASSAY_MLA_MAX_PARTS : below(3);
            struct assay_mla_split splits[ASSAY_MLA_MAX_PARTS + 1];
            memset(splits, 0x77, sizeof(splits));
            const int64_t count = splits_of(&plan, request, splits, capacity);
            if (count > capacity || splits[count].split != 0x7777777777777777)
                ck_abort_msg("plan %d: wrote beyond", i);
            for (int64_t at = 0; at < count; at++) {
                const struct assay_mla_split *const one = &splits[at];
                if (one->begin_block < 0 || one->begin_block > one->end_block ||
                    one->end_block > blocks || one->split < 0 ||
                    one->split >= (owned > 0 ? owned : 1))
                    ck_abort_msg("plan %d: request %lld", i, (long long)request);
            }
            read += count;
        }
        close_plan(&plan);
    }
    ck_assert_int_gt(read, 100000);
}
END_TEST

/* One request of two blocks and one of 130, in two parts and an idle one. */
static void open_small(struct plan *plan)
{
    static const int32_t records[3][8] = { { 0, 1, 0, 70, 0, 0, 1, 0 },
                                           { 1, 1, 70, 130, 1, 1, 1, 0 },
                                           { 2, 1, 0, 0, 0, 0, 0, 0 } };
    static const int32_t ends[] = { 0, 1, 3 };
    open_dense(plan, 3, 2, (const int32_t[]){ 128, 8320 });
    memcpy(plan->metadata, records, sizeof(records));
    memcpy(plan->num_splits, ends, sizeof(ends));
}

START_TEST(faults_say_what_is_wrong_and_with_which_request)
{
    static const struct {
        int at, value; /* words of the metadata, then of num_splits */
        const char *clause;
        int64_t request;
    } rows[] = {
        { 8, -1, "begins a part at a request below 0", -1 },
        { 9, 0, "ends a part before its first request", 1 },
        { 1, 2, "or after the last one", 0 },
        { 2, 2, "begins a split outside the blocks", 0 },
        { 2, -1, "begins a split outside the blocks", 0 },
        { 3, -1, "ends a split outside the blocks", 1 },
        { 11, 131, "ends a split outside the blocks", 1 },
        { 10, 69, "gives blocks of the request to two splits", 1 },
        { 10, 71, "leaves blocks of the request to nobody", 1 },
        { 2, 1, "leaves blocks of the request to nobody", 0 },
        { 16, 0, "gives blocks of the request to two splits", 0 },
        { 12, 0, "does not number the splits", 1 },
        { 4, 1, "does not number the splits", 0 },
        { 5, 1, "takes the only split of the request for one of several", 0 },
        { 13, 0, "takes one of several splits of the request for all of it", 1 },
        { 6, 0, "takes one of several splits of the request for all of it", 1 },
        { 24, 1, "does not begin num_splits with 0", 0 },
        { 25, 2, "does not count the splits of the request", 0 },
        { 26, 4, "does not count the splits of the request", 1 },
        { 26, INT32_MIN, "does not count the splits of the request", 1 },
        { 8, 2, "leaves blocks of the request to nobody", 1 },
        { 0, 1, "leaves blocks of the request to nobody", 0 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct plan plan;
        int64_t request = -7;
        open_small(&plan);
        ck_assert_ptr_null(fault_of(&plan, &request));
        if (rows[i].at < 24)
            plan.metadata[rows[i].at] = rows[i].value;
        else
            plan.num_splits[rows[i].at - 24] = rows[i].value;
        const char *const fault = fault_of(&plan, &request);
        ck_assert_msg(fault && strstr(fault, rows[i].clause), "row %zu: %s", i, fault);
        ck_assert_msg(request == rows[i].request, "row %zu: %lld", i, (long long)request);
        close_plan(&plan);
    }
}
END_TEST

START_TEST(records_that_begin_outside_the_batch_are_idle)
{
    static const int32_t outside[] = { -1, INT32_MIN, 2, INT32_MAX };
    for (int i = 0; i < 4; i++) {
        struct plan plan;
        struct assay_mla_split splits[ASSAY_MLA_MAX_PARTS];
        open_small(&plan);
        plan.metadata[8] = outside[i];
        ck_assert_int_eq(splits_of(&plan, 0, splits, ASSAY_MLA_MAX_PARTS), 1);
        ck_assert_int_eq(splits_of(&plan, 1, splits, ASSAY_MLA_MAX_PARTS), 1);
        ck_assert_int_eq(splits[0].end_block, 70);
        close_plan(&plan);
    }
}
END_TEST

/* Upstream makes neither, but its kernels compute both right. */
START_TEST(splits_may_be_empty_and_out_of_order)
{
    static const int32_t bounds[6][3][2] = {
        { { 0, 6 }, { 3, 3 }, { 6, 10 } }, { { 3, 3 }, { 0, 6 }, { 6, 10 } },
        { { 6, 10 }, { 0, 6 }, { 8, 8 } }, { { 9, 10 }, { 4, 9 }, { 0, 4 } },
        { { 0, 0 }, { 0, 10 }, { 0, 0 } }, { { 5, 5 }, { 5, 5 }, { 0, 10 } },
    };
    for (int i = 0; i < 6; i++) {
        struct plan plan;
        int64_t request;
        open_dense(&plan, 3, 1, (const int32_t[]){ 640 });
        plan.num_splits[0] = 0;
        plan.num_splits[1] = 3;
        for (int32_t part = 0; part < 3; part++) {
            const int32_t record[8] = {
                0, 0, bounds[i][part][0], bounds[i][part][1], part, 1, 1
            };
            memcpy(plan.metadata + 8 * part, record, sizeof(record));
        }
        ck_assert(is_sound(&plan));
        ck_assert_msg(!fault_of(&plan, &request), "plan %d", i);
        close_plan(&plan);
    }
}
END_TEST

START_TEST(a_request_without_keys_may_have_no_block_but_has_a_split)
{
    static const int32_t records[2][8] = { { 0, 0, 0, 0, 0, 0, 0, 0 },
                                           { 1, 1, 0, 2, 0, 0, 0, 0 } };
    static const int32_t ends[] = { 0, 1, 2 };
    struct plan plan;
    int64_t request;
    open_dense(&plan, 2, 2, (const int32_t[]){ 0, 128 });
    memcpy(plan.metadata, records, sizeof(records));
    memcpy(plan.num_splits, ends, sizeof(ends));
    ck_assert_ptr_null(fault_of(&plan, &request));
    plan.metadata[ASSAY_PLAN_END_BLOCK] = 1;
    ck_assert_ptr_null(fault_of(&plan, &request));
    plan.metadata[ASSAY_PLAN_BEGIN_REQ] = 2;
    ck_assert_ptr_nonnull(fault_of(&plan, &request));
    ck_assert_int_eq(request, 0);
    plan.num_splits[1] = 0;
    plan.num_splits[2] = 1;
    ck_assert_str_eq(fault_of(&plan, &request), "has no split of the request");
    close_plan(&plan);
}
END_TEST

/* All parts on all requests: the slowest plan to refuse, with the most splits. */
START_TEST(a_plan_in_which_every_part_claims_everything_is_refused)
{
    static const int32_t lengths[ASSAY_MLA_MAX_REQUESTS];
    struct plan plan;
    struct assay_mla_split splits[ASSAY_MLA_MAX_PARTS];
    int64_t request;
    open_dense(&plan, ASSAY_MLA_MAX_PARTS, ASSAY_MLA_MAX_REQUESTS, lengths);
    memset(plan.num_splits, 0, (ASSAY_MLA_MAX_REQUESTS + 1) * sizeof(int32_t));
    for (int part = 0; part < ASSAY_MLA_MAX_PARTS; part++) {
        int32_t *const record = plan.metadata + 8 * part;
        memset(record, 0, 8 * sizeof(int32_t));
        record[ASSAY_PLAN_END_REQ] = ASSAY_MLA_MAX_REQUESTS - 1;
    }
    ck_assert_ptr_nonnull(fault_of(&plan, &request));
    ck_assert_int_eq(splits_of(&plan, 100, splits, ASSAY_MLA_MAX_PARTS),
                     ASSAY_MLA_MAX_PARTS);
    ck_assert_int_eq(splits[ASSAY_MLA_MAX_PARTS - 1].split, 0);
    close_plan(&plan);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_plan_of_the_scheduler_is_sound,
        plans_cut_at_random_are_accepted_and_read_back,
        a_damaged_plan_is_accepted_if_and_only_if_marking_every_block_finds_it_sound,
        any_plan_is_read_without_leaving_the_blocks_or_the_splits,
        faults_say_what_is_wrong_and_with_which_request,
        records_that_begin_outside_the_batch_are_idle,
        splits_may_be_empty_and_out_of_order,
        a_request_without_keys_may_have_no_block_but_has_a_split,
        a_plan_in_which_every_part_claims_everything_is_refused,
        NULL,
    };
    return run_tests("mla_plan_reader", tests);
}
