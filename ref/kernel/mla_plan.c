/* SPDX-License-Identifier: MIT */
/* The tile scheduler, part after part, and what a kernel reads from a plan. */
#include "ref/kernel/mla_plan.h"

#include "ref/mla_problem.h"

#include <assert.h>

static int64_t element(const struct assay_tensor *tensor, int64_t index)
{
    return ((const int32_t *)tensor->data)[index * tensor->stride[0]];
}

static int64_t quotient_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Keys of the request as the kernel counts them. */
static int64_t keys_of(const struct assay_mla_plan_problem *problem,
                       const struct assay_tensors *tensors, int64_t request,
                       int64_t block_keys)
{
    if (!problem->is_sparse)
        return element(assay_tensors_find(tensors, "cache_seqlens"), request);
    const int64_t given =
        problem->has_topk_length
            ? element(assay_tensors_find(tensors, "topk_length"), request)
            : problem->topk;
    const int64_t keys = given == 0 ? 1 : given;
    if (problem->extra_topk == 0) return keys;
    const int64_t extra =
        problem->has_extra_topk_length
            ? element(assay_tensors_find(tensors, "extra_topk_length"), request)
            : problem->extra_topk;
    return block_keys * quotient_up(keys, block_keys) + extra;
}

static int64_t blocks_of(int64_t keys, int64_t block_keys)
{
    return (keys > 1 ? keys - 1 : 0) / block_keys + 1;
}

int64_t assay_mla_plan_blocks(const struct assay_mla_plan_problem *problem,
                              const struct assay_tensors *tensors, int64_t request)
{
    return blocks_of(keys_of(problem, tensors, request, ASSAY_MLA_BLOCK),
                     ASSAY_MLA_BLOCK);
}

/* --- the scheduler ---------------------------------------------------------------- */

struct place { /* where the next part begins */
    int64_t request, block, split;
};

struct scheduler {
    int64_t b, overhead, payload;
    int64_t keys[ASSAY_MLA_MAX_REQUESTS], blocks[ASSAY_MLA_MAX_REQUESTS];
    struct place at;
    int64_t splits; /* of the requests that are closed */
    const struct assay_tensor *metadata, *num_splits;
};

static void put(const struct assay_tensor *tensor, int64_t index, int64_t value)
{
    ((int32_t *)tensor->data)[index * tensor->stride[0]] = (int32_t)value;
}

static void open_scheduler(struct scheduler *scheduler,
                           const struct assay_mla_plan_problem *problem,
                           const struct assay_mla_plan_numerics *numerics,
                           const struct assay_tensors *tensors)
{
    int64_t total = 0;
    assert(problem->b <= ASSAY_MLA_MAX_REQUESTS);
    scheduler->b = problem->b;
    scheduler->overhead = numerics->overhead < 0 ? problem->overhead : numerics->overhead;
    for (int64_t i = 0; i < problem->b; i++) {
        scheduler->keys[i] = keys_of(problem, tensors, i, numerics->block_keys);
        scheduler->blocks[i] = blocks_of(scheduler->keys[i], numerics->block_keys);
        total += scheduler->blocks[i] + scheduler->overhead;
    }
    scheduler->payload = quotient_up(total, problem->num_sm_parts) + scheduler->overhead;
    scheduler->at = (struct place){ 0, 0, 0 };
    scheduler->splits = 0;
    scheduler->metadata = assay_tensors_find(tensors, "tile_scheduler_metadata");
    scheduler->num_splits = assay_tensors_find(tensors, "num_splits");
    put(scheduler->num_splits, 0, 0);
}

/* Spends one part's payload. */
static void advance(struct scheduler *scheduler)
{
    struct place *const at = &scheduler->at;
    int64_t rest = scheduler->payload;
    while (at->request < scheduler->b) {
        const int64_t left = scheduler->blocks[at->request] - at->block;
        if (rest < left + scheduler->overhead) {
            if (rest > scheduler->overhead) {
                at->block += rest - scheduler->overhead;
                at->split++;
            }
            return;
        }
        rest -= left + scheduler->overhead;
        scheduler->splits += at->split + 1;
        *at = (struct place){ at->request + 1, 0, 0 };
        put(scheduler->num_splits, at->request, scheduler->splits);
    }
}

static void plan_part(struct scheduler *scheduler, int64_t part)
{
    const struct place begin = scheduler->at;
    const struct place *const end = &scheduler->at;
    int64_t record[ASSAY_PLAN_FIELDS] = { 0 };
    advance(scheduler);
    const int64_t last = end->block > 0 ? end->request : end->request - 1;
    record[ASSAY_PLAN_BEGIN_REQ] = begin.request;
    record[ASSAY_PLAN_END_REQ] = last;
    if (begin.request < scheduler->b) {
        const int64_t blocks = scheduler->blocks[last], keys = scheduler->keys[last];
        const int64_t end_block = end->block > 0 ? end->block : keys == 0 ? 0 : blocks;
        const bool is_first_split = begin.block != 0;
        const bool is_last_split = end_block != blocks && keys != 0;
        const bool is_either = begin.request == last && (is_first_split || is_last_split);
        record[ASSAY_PLAN_BEGIN_BLOCK] = begin.block;
        record[ASSAY_PLAN_END_BLOCK] = end_block;
        record[ASSAY_PLAN_BEGIN_SPLIT] = begin.split;
        record[ASSAY_PLAN_FIRST_SPLIT] = is_first_split || is_either;
        record[ASSAY_PLAN_LAST_SPLIT] = is_last_split || is_either;
    }
    const struct assay_tensor row = assay_tensor_slice(scheduler->metadata, part);
    for (int64_t i = 0; i < ASSAY_PLAN_FIELDS; i++)
        put(&row, i, record[i]);
}

void assay_mla_plan_model(const struct assay_mla_plan_problem *problem,
                          const struct assay_mla_plan_numerics *numerics,
                          const struct assay_tensors *tensors)
{
    struct scheduler scheduler;
    open_scheduler(&scheduler, problem, numerics, tensors);
    for (int64_t part = 0; part < problem->num_sm_parts; part++)
        plan_part(&scheduler, part);
}

/* --- the reader ------------------------------------------------------------------- */

struct record {
    int64_t field[ASSAY_PLAN_FIELDS];
};

static struct record read_record(const struct assay_tensor *metadata, int64_t part)
{
    const struct assay_tensor row = assay_tensor_slice(metadata, part);
    struct record record;
    for (int64_t i = 0; i < ASSAY_PLAN_FIELDS; i++)
        record.field[i] = element(&row, i);
    return record;
}

/* The split of @request that a part makes, as it is written there; false: none. */
static bool read_split(const struct record *record, int64_t b, int64_t request,
                       int64_t blocks, struct assay_mla_split *split)
{
    const int64_t *const field = record->field;
    const int64_t begin = field[ASSAY_PLAN_BEGIN_REQ], end = field[ASSAY_PLAN_END_REQ];
    if (begin < 0 || begin >= b || request < begin || request > end) return false;
    const bool is_first = request == begin, is_last = request == end;
    const bool is_split = is_first  ? field[ASSAY_PLAN_FIRST_SPLIT] != 0
                          : is_last ? field[ASSAY_PLAN_LAST_SPLIT] != 0
                                    : false;
    *split = (struct assay_mla_split){
        .begin_block = is_first ? field[ASSAY_PLAN_BEGIN_BLOCK] : 0,
        .end_block = is_last ? field[ASSAY_PLAN_END_BLOCK] : blocks,
        .split = is_first ? field[ASSAY_PLAN_BEGIN_SPLIT] : 0,
        .is_whole = !is_split,
    };
    return true;
}

static int64_t cut(int64_t value, int64_t minimum, int64_t maximum)
{
    if (value > maximum) value = maximum;
    return value < minimum ? minimum : value;
}

int64_t assay_mla_plan_splits(const struct assay_tensor *tile_scheduler_metadata,
                              const struct assay_tensor *num_splits, int64_t request,
                              int64_t blocks, struct assay_mla_split *splits,
                              int64_t capacity)
{
    const int64_t b = num_splits->shape[0] - 1;
    const int64_t owned = element(num_splits, request + 1) - element(num_splits, request);
    int64_t count = 0;
    for (int64_t i = 0; i < tile_scheduler_metadata->shape[0] && count < capacity; i++) {
        const struct record record = read_record(tile_scheduler_metadata, i);
        struct assay_mla_split split;
        if (!read_split(&record, b, request, blocks, &split)) continue;
        split.begin_block = cut(split.begin_block, 0, blocks);
        split.end_block = cut(split.end_block, split.begin_block, blocks);
        split.split = cut(split.split, 0, owned - 1);
        splits[count++] = split;
    }
    return count;
}

/* --- what is wrong with a plan ---------------------------------------------------- */

static const char *record_fault(const struct record *record, int64_t b, int64_t *request)
{
    const int64_t begin = record->field[ASSAY_PLAN_BEGIN_REQ];
    const int64_t end = record->field[ASSAY_PLAN_END_REQ];
    *request = begin;
    if (begin < 0) return "begins a part at a request below 0";
    if (begin < b && (end < begin || end >= b))
        return "ends a part before its first request or after the last one";
    return NULL;
}

/* Splits that keep to [0, blocks) without two on one block leave none to nobody if they
 * are as many. A kernel looks up the page of a split's first block even if the split is
 * empty. */
static const char *coverage_fault(const struct assay_mla_split *splits, int64_t count,
                                  int64_t blocks, bool is_empty)
{
    int64_t covered = 0;
    for (int64_t i = 0; i < count; i++) {
        const struct assay_mla_split *const one = &splits[i];
        if (one->begin_block < 0 || one->begin_block >= blocks)
            return "begins a split outside the blocks of the request";
        if (one->end_block < one->begin_block || one->end_block > blocks)
            return "ends a split outside the blocks of the request";
        covered += one->end_block - one->begin_block;
        for (int64_t j = 0; j < i; j++)
            if (one->begin_block < splits[j].end_block &&
                splits[j].begin_block < one->end_block &&
                one->begin_block < one->end_block &&
                splits[j].begin_block < splits[j].end_block)
                return "gives blocks of the request to two splits";
    }
    return covered < blocks && !is_empty ? "leaves blocks of the request to nobody"
                                         : NULL;
}

static const char *numbering_fault(const struct assay_mla_split *splits, int64_t count,
                                   int64_t owned)
{
    if (count == 0) return "has no split of the request";
    if (owned != count) return "does not count the splits of the request in num_splits";
    for (int64_t i = 0; i < count; i++) {
        if (splits[i].split != i)
            return "does not number the splits of the request 0, 1 ... from part to part";
        if (splits[i].is_whole && count > 1)
            return "takes one of several splits of the request for all of it";
        if (!splits[i].is_whole && count == 1)
            return "takes the only split of the request for one of several";
    }
    return NULL;
}

const char *assay_mla_plan_fault(const struct assay_mla_plan_problem *problem,
                                 const struct assay_tensors *tensors, int64_t *request)
{
    const struct assay_tensor *const num_splits =
        assay_tensors_find(tensors, "num_splits");
    const struct assay_tensor *const metadata =
        assay_tensors_find(tensors, "tile_scheduler_metadata");
    const int64_t b = problem->b, parts = problem->num_sm_parts;
    struct record records[ASSAY_MLA_MAX_PARTS];
    const char *fault = NULL;
    assert(parts <= ASSAY_MLA_MAX_PARTS);
    for (int64_t part = 0; part < parts && !fault; part++) {
        records[part] = read_record(metadata, part);
        fault = record_fault(&records[part], b, request);
    }
    if (fault) return fault;
    *request = 0;
    if (element(num_splits, 0) != 0) return "does not begin num_splits with 0";
    for (int64_t i = 0; i < b && !fault; i++) {
        const int64_t blocks = assay_mla_plan_blocks(problem, tensors, i);
        const bool is_empty = keys_of(problem, tensors, i, ASSAY_MLA_BLOCK) == 0;
        struct assay_mla_split splits[ASSAY_MLA_MAX_PARTS];
        int64_t count = 0;
        for (int64_t part = 0; part < parts; part++)
            count += read_split(&records[part], b, i, blocks, &splits[count]);
        fault = coverage_fault(splits, count, blocks, is_empty);
        if (!fault)
            fault = numbering_fault(splits, count,
                                    element(num_splits, i + 1) - element(num_splits, i));
        *request = i;
    }
    return fault;
}
