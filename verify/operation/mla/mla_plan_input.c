/* SPDX-License-Identifier: MIT */
/* Plans as inputs: the scheduler's, and others that are as legal. */
#include "ref/kernel/mla_plan.h"
#include "verify/operation/expectation.h"
#include "verify/operation/mla/mla_data.h"

#include <assert.h>
#include <math.h>
#include <string.h>

const struct assay_choice assay_mla_plan_choices[] = {
    { "scheduler", ASSAY_MLA_PLAN_SCHEDULER, "what upstream's tile scheduler computes" },
    { "whole", ASSAY_MLA_PLAN_WHOLE, "no request is split" },
    { "blocks", ASSAY_MLA_PLAN_BLOCKS, "as many splits as parts allow, of equal size" },
    { "random", ASSAY_MLA_PLAN_RANDOM, "boundaries by the seed" },
    { NULL, 0, NULL },
};

enum { UPSTREAM_BLOCK_KEYS = 64, FROM_PROBLEM = -1 };

struct writer { /* hands out all blocks of all requests in order */
    const struct assay_mla_plan_problem *problem;
    const struct assay_tensors *tensors;
    int32_t *metadata, *num_splits;
    int64_t request, block, split; /* what comes next: the block of the request, and
                                      which of its splits that begins */
};

static int64_t blocks_of(const struct writer *writer, int64_t request)
{
    return assay_mla_plan_blocks(writer->problem, writer->tensors, request);
}

/* Dense requests of length 0 have a nominal block that nobody attends to. */
static bool is_empty(const struct writer *writer, int64_t request)
{
    const struct assay_tensor *const lengths =
        assay_tensors_find(writer->tensors, "cache_seqlens");
    return !writer->problem->is_sparse &&
           (int32_t)assay_tensor_bits(lengths, request) == 0;
}

/* Gives part @part the next @count blocks, or what is left of them. */
static void write_part(struct writer *writer, int64_t part, int64_t count)
{
    const int64_t b = writer->problem->b;
    int32_t *const record = writer->metadata + part * ASSAY_PLAN_FIELDS;
    record[ASSAY_PLAN_BEGIN_REQ] = (int32_t)writer->request;
    record[ASSAY_PLAN_END_REQ] = (int32_t)(b - 1);
    if (writer->request == b || count == 0) {
        record[ASSAY_PLAN_BEGIN_REQ] = (int32_t)b;
        return;
    }
    record[ASSAY_PLAN_BEGIN_BLOCK] = (int32_t)writer->block;
    record[ASSAY_PLAN_BEGIN_SPLIT] = (int32_t)writer->split;
    bool is_first_split = writer->block != 0, is_last_split = false;
    int64_t last = writer->request, end = 0;
    while (count > 0 && writer->request < b) {
        const int64_t blocks = blocks_of(writer, writer->request);
        const int64_t left = blocks - writer->block;
        const int64_t taken = count < left ? count : left;
        last = writer->request;
        count -= taken;
        end = writer->block += taken;
        writer->split++;
        is_last_split = end < blocks;
        writer->num_splits[last + 1] = writer->num_splits[last] + (int32_t)writer->split;
        if (is_last_split) break;
        if (is_empty(writer, last)) end = 0;
        writer->request++;
        writer->block = writer->split = 0;
    }
    const bool is_one = record[ASSAY_PLAN_BEGIN_REQ] == last;
    record[ASSAY_PLAN_END_REQ] = (int32_t)last;
    record[ASSAY_PLAN_END_BLOCK] = (int32_t)end;
    record[ASSAY_PLAN_FIRST_SPLIT] = is_first_split || (is_one && is_last_split);
    record[ASSAY_PLAN_LAST_SPLIT] = is_last_split || (is_one && is_first_split);
}

static int64_t all_blocks(const struct writer *writer)
{
    int64_t total = 0;
    for (int64_t i = 0; i < writer->problem->b; i++)
        total += blocks_of(writer, i);
    return total;
}

/* Requests spread evenly, blocks of a request together. */
static void write_whole(struct writer *writer)
{
    const int64_t b = writer->problem->b;
    const int64_t parts = writer->problem->num_sm_parts;
    const int64_t used = parts < b ? parts : b;
    for (int64_t part = 0; part < parts; part++) {
        int64_t count = 0;
        const int64_t end = part < used ? (part + 1) * b / used : b;
        for (int64_t i = writer->request; i < end; i++)
            count += blocks_of(writer, i);
        write_part(writer, part, count);
    }
}

static void write_blocks(struct writer *writer)
{
    const int64_t parts = writer->problem->num_sm_parts, total = all_blocks(writer);
    const int64_t used = parts < total ? parts : total;
    for (int64_t part = 0; part < parts; part++)
        write_part(writer, part,
                   part < used ? (part + 1) * total / used - part * total / used : 0);
}

/* A part takes up to twice its fair share; the last takes what is left. */
static void write_random(struct writer *writer, uint64_t seed)
{
    const int64_t parts = writer->problem->num_sm_parts;
    int64_t left = all_blocks(writer);
    struct assay_stream stream;
    assay_stream_open(&stream, seed, "tile_scheduler_metadata", "random", 0);
    for (int64_t part = 0; part < parts; part++) {
        const int64_t fair = (left + parts - part - 1) / (parts - part);
        const int64_t drawn =
            1 +
            (int64_t)((uint64_t)assay_stream_next(&stream) * 2 * (uint64_t)fair >> 32);
        const int64_t count = part == parts - 1 || drawn > left ? left : drawn;
        write_part(writer, part, count);
        left -= count;
    }
}

void assay_mla_fill_plan(const struct assay_mla_plan_problem *problem,
                         enum assay_mla_plan_choice choice, uint64_t seed,
                         const struct assay_tensors *tensors)
{
    const struct assay_mla_plan_numerics upstream = { UPSTREAM_BLOCK_KEYS, FROM_PROBLEM };
    const struct assay_tensor *const metadata =
        assay_tensors_find(tensors, "tile_scheduler_metadata");
    const struct assay_tensor *const num_splits =
        assay_tensors_find(tensors, "num_splits");
    struct writer writer = { .problem = problem,
                             .tensors = tensors,
                             .metadata = metadata->data,
                             .num_splits = num_splits->data };
    memset(metadata->data, 0, (size_t)assay_tensor_bytes(metadata));
    memset(num_splits->data, 0, (size_t)assay_tensor_bytes(num_splits));
    switch (choice) {
    case ASSAY_MLA_PLAN_SCHEDULER:
        assay_mla_plan_model(problem, &upstream, tensors);
        return;
    case ASSAY_MLA_PLAN_WHOLE: write_whole(&writer); break;
    case ASSAY_MLA_PLAN_BLOCKS: write_blocks(&writer); break;
    case ASSAY_MLA_PLAN_RANDOM: write_random(&writer, seed); break;
    }
    assert(writer.request == problem->b);
}

enum assay_status assay_mla_check_plan(const struct assay_mla_plan_problem *problem,
                                       const struct assay_tensors *tensors,
                                       struct assay_message *message)
{
    int64_t request = 0;
    const char *const fault = assay_mla_plan_fault(problem, tensors, &request);
    if (!fault) return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED,
                      "the plan in tile_scheduler_metadata and num_splits %s, in request "
                      "%lld; every block must be in one split, in order, or use unsafe=1",
                      fault, (long long)request);
}

void assay_mla_disclaim_faulty_plan(const struct assay_mla_plan_problem *plan,
                                    const struct assay_operation *operation,
                                    const void *problem,
                                    const struct assay_tensors *tensors, int64_t part,
                                    const struct assay_expected *expected)
{
    int64_t request = 0;
    if (!assay_mla_plan_fault(plan, tensors, &request)) return;
    for (int i = 0; i < tensors->count; i++) {
        if (!tensors->item[i].is_output) continue;
        struct assay_region box;
        operation->region(problem, part, i, &box);
        const int64_t count = assay_region_begin(&tensors->item[i], &box).count;
        for (int64_t at = 0; at < count; at++) {
            expected[i].value[at] = 0;
            expected[i].bound[at] = (double)INFINITY;
        }
    }
}
