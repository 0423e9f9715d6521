/* SPDX-License-Identifier: MIT */
/* Tests of the plans that decode operations are given: each covers every block once. */
#include "tests/harness.h"
#include "verify/operation/mla/mla_data.h"

#include <stdio.h>
#include <string.h>

enum { MAX_B = 12 };

struct planned {
    int32_t lengths[MAX_B], metadata[ASSAY_MLA_MAX_PARTS][ASSAY_PLAN_FIELDS];
    int32_t num_splits[MAX_B + 1];
    struct assay_tensors tensors;
    struct assay_mla_plan_problem problem;
};

static void add(struct assay_tensors *tensors, const char *name, int rank, int64_t rows,
                void *data)
{
    tensors->item[tensors->count++] =
        (struct assay_tensor){ .name = name,
                               .format = ASSAY_I32,
                               .rank = rank,
                               .shape = { rows, ASSAY_PLAN_FIELDS },
                               .stride = { rank == 2 ? ASSAY_PLAN_FIELDS : 1, 1 },
                               .data = data };
}

static void plan(struct planned *planned, int64_t b, const int32_t *lengths,
                 int64_t parts, bool is_sparse, enum assay_mla_plan_choice choice,
                 uint64_t seed)
{
    planned->problem = (struct assay_mla_plan_problem){ .b = b,
                                                        .num_sm_parts = parts,
                                                        .overhead = 5,
                                                        .is_sparse = is_sparse,
                                                        .topk = 4096,
                                                        .has_topk_length = is_sparse };
    memcpy(planned->lengths, lengths, (size_t)b * sizeof(*lengths));
    memset(planned->metadata, 0x55, sizeof(planned->metadata));
    memset(planned->num_splits, 0x55, sizeof(planned->num_splits));
    planned->tensors.count = 0;
    add(&planned->tensors, is_sparse ? "topk_length" : "cache_seqlens", 1, b,
        planned->lengths);
    add(&planned->tensors, "tile_scheduler_metadata", 2, parts, planned->metadata);
    add(&planned->tensors, "num_splits", 1, b + 1, planned->num_splits);
    assay_mla_fill_plan(&planned->problem, choice, seed, &planned->tensors);
}

/* Of a dense request of length 0 nobody may look at a block; others have one at least. */
static int32_t blocks_of(const struct planned *planned, int32_t request)
{
    const int32_t length = planned->lengths[request];
    return length == 0 && planned->problem.is_sparse ? 1 : (length + 63) / 64;
}

struct share { /* of a request, that a part makes */
    int32_t begin, end, split;
    bool is_split;
};

static struct share share_of(const struct planned *planned, int64_t part, int32_t request)
{
    const int32_t *const record = planned->metadata[part];
    const bool is_first = request == record[ASSAY_PLAN_BEGIN_REQ];
    const bool is_last = request == record[ASSAY_PLAN_END_REQ];
    return (struct share){
        .begin = is_first ? record[ASSAY_PLAN_BEGIN_BLOCK] : 0,
        .end = is_last ? record[ASSAY_PLAN_END_BLOCK] : blocks_of(planned, request),
        .split = is_first ? record[ASSAY_PLAN_BEGIN_SPLIT] : 0,
        .is_split = is_first  ? record[ASSAY_PLAN_FIRST_SPLIT] != 0
                    : is_last ? record[ASSAY_PLAN_LAST_SPLIT] != 0
                              : false,
    };
}

/* Walks over the parts as a kernel does and counts who attends to each block. */
static void check_coverage(const struct planned *planned, const char *what)
{
    static int covered[MAX_B][200];
    int splits[MAX_B] = { 0 };
    const int64_t b = planned->problem.b;
    memset(covered, 0, sizeof(covered));
    for (int64_t part = 0; part < planned->problem.num_sm_parts; part++) {
        const int32_t *const record = planned->metadata[part];
        if (record[ASSAY_PLAN_BEGIN_REQ] == b) continue;
        if (record[ASSAY_PLAN_BEGIN_REQ] == record[ASSAY_PLAN_END_REQ])
            ck_assert_int_eq(record[ASSAY_PLAN_FIRST_SPLIT],
                             record[ASSAY_PLAN_LAST_SPLIT]);
        for (int32_t i = record[ASSAY_PLAN_BEGIN_REQ]; i <= record[ASSAY_PLAN_END_REQ];
             i++) {
            const struct share share = share_of(planned, part, i);
            const int32_t owned = planned->num_splits[i + 1] - planned->num_splits[i];
            ck_assert_msg(share.split == splits[i] && share.is_split == (owned > 1),
                          "%s: part %lld request %d", what, (long long)part, i);
            splits[i]++;
            for (int32_t block = share.begin; block < share.end; block++)
                covered[i][block]++;
        }
    }
    for (int32_t i = 0; i < b; i++) {
        ck_assert_int_eq(splits[i], planned->num_splits[i + 1] - planned->num_splits[i]);
        for (int32_t block = 0; block < 200; block++)
            ck_assert_msg(covered[i][block] == (block < blocks_of(planned, i)),
                          "%s: request %d block %d", what, i, block);
    }
}

START_TEST(every_plan_is_legal)
{
    struct planned *const planned = malloc(sizeof(*planned));
    ck_assert_ptr_nonnull(planned);
    for (int i = 0; i < 4000; i++) {
        struct assay_stream stream;
        int32_t lengths[MAX_B];
        char what[80];
        assay_stream_open(&stream, 1, "plans", "test", i);
        const int64_t b = 1 + assay_stream_below(&stream, MAX_B);
        const int64_t parts = 1 + assay_stream_below(&stream, i % 2 ? 160 : 8);
        const int choice = i / 2 % 4;
        for (int64_t request = 0; request < b; request++)
            lengths[request] = assay_stream_below(&stream, 3)
                                   ? (int32_t)assay_stream_below(&stream, 3000)
                                   : (int32_t)(64 * assay_stream_below(&stream, 4));
        plan(planned, b, lengths, parts, i % 3 == 0, (enum assay_mla_plan_choice)choice,
             (uint64_t)i);
        snprintf(what, sizeof(what), "%s %d", assay_mla_plan_choices[choice].name, i);
        check_coverage(planned, what);
        struct assay_message message = { "" };
        ck_assert_msg(assay_mla_check_plan(&planned->problem, &planned->tensors,
                                           &message) == ASSAY_RAN,
                      "%s: %s", what, message.text);
    }
    free(planned);
}
END_TEST

START_TEST(plans_split_as_they_promise)
{
    static const int32_t lengths[] = { 100, 0, 4096 };
    struct planned *const planned = malloc(sizeof(*planned));
    ck_assert_ptr_nonnull(planned);
    plan(planned, 3, lengths, 66, false, ASSAY_MLA_PLAN_SCHEDULER, 1);
    ck_assert_int_eq(planned->num_splits[1], 1);
    ck_assert_int_eq(planned->num_splits[2], 2);
    ck_assert_int_eq(planned->num_splits[3], 34);
    for (int64_t parts = 1; parts < 5; parts++) {
        plan(planned, 3, lengths, parts, false, ASSAY_MLA_PLAN_WHOLE, 1);
        for (int i = 0; i <= 3; i++)
            ck_assert_int_eq(planned->num_splits[i], i);
    }
    plan(planned, 3, lengths, 160, false, ASSAY_MLA_PLAN_BLOCKS, 1);
    ck_assert_int_eq(planned->num_splits[3], 2 + 1 + 64);
    plan(planned, 3, lengths, 16, false, ASSAY_MLA_PLAN_BLOCKS, 1);
    ck_assert_int_ge(planned->num_splits[3], 16);
    for (int part = 0; part < 16; part++)
        ck_assert_int_lt(planned->metadata[part][ASSAY_PLAN_BEGIN_REQ], 3);
    struct planned *const other = malloc(sizeof(*other));
    ck_assert_ptr_nonnull(other);
    plan(planned, 3, lengths, 16, false, ASSAY_MLA_PLAN_RANDOM, 1);
    plan(other, 3, lengths, 16, false, ASSAY_MLA_PLAN_RANDOM, 2);
    ck_assert(memcmp(planned->metadata, other->metadata, sizeof(other->metadata)) != 0);
    free(other);
    free(planned);
}
END_TEST

START_TEST(a_faulty_plan_is_refused_with_its_request)
{
    static const int32_t lengths[] = { 100, 640 };
    struct assay_message message = { "" };
    struct planned *const planned = malloc(sizeof(*planned));
    ck_assert_ptr_nonnull(planned);
    plan(planned, 2, lengths, 4, false, ASSAY_MLA_PLAN_BLOCKS, 1);
    planned->metadata[3][ASSAY_PLAN_END_BLOCK]--;
    ck_assert_int_eq(assay_mla_check_plan(&planned->problem, &planned->tensors, &message),
                     ASSAY_REFUSED);
    ck_assert_msg(strstr(message.text, "tile_scheduler_metadata") &&
                      strstr(message.text, "request 1"),
                  "%s", message.text);
    free(planned);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_plan_is_legal,
        plans_split_as_they_promise,
        a_faulty_plan_is_refused_with_its_request,
        NULL,
    };
    return run_tests("mla_plan_input", tests);
}
