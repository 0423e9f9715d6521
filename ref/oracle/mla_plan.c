/* SPDX-License-Identifier: MIT */
/* First who buys what, as a list of purchases; then records, counted from the list. */
#include "ref/oracle/mla_plan.h"

#include "ref/mla_problem.h"

#include <assert.h>
#include <math.h>
#include <string.h>

struct purchase { /* blocks [first, end) of a request, by one part */
    int64_t part, request, first, end;
};

struct market {
    int64_t requests, parts, overhead, payload;
    int64_t length[ASSAY_MLA_MAX_REQUESTS], blocks[ASSAY_MLA_MAX_REQUESTS];
    int64_t buyers[ASSAY_MLA_MAX_REQUESTS]; /* of blocks of a request */
    int64_t count;
    /* Each closes a request or exhausts a part. */
    struct purchase purchase[ASSAY_MLA_MAX_REQUESTS + ASSAY_MLA_MAX_PARTS];
};

static int64_t value_at(const struct assay_tensors *tensors, const char *name, int64_t i)
{
    int32_t value;
    const uint32_t bits = assay_tensor_bits(assay_tensors_find(tensors, name), i);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Smallest multiple of @unit that is @keys or more. */
static int64_t padded(int64_t keys, int64_t unit)
{
    return (keys + unit - 1) / unit * unit;
}

static int64_t length_of(const struct assay_mla_plan_problem *problem,
                         const struct assay_tensors *tensors, int64_t i, int64_t unit)
{
    if (!problem->is_sparse) return value_at(tensors, "cache_seqlens", i);
    int64_t length =
        problem->has_topk_length ? value_at(tensors, "topk_length", i) : problem->topk;
    if (length == 0) length++;
    if (problem->extra_topk == 0) return length;
    return padded(length, unit) + (problem->has_extra_topk_length
                                       ? value_at(tensors, "extra_topk_length", i)
                                       : problem->extra_topk);
}

static void open_market(struct market *market,
                        const struct assay_mla_plan_problem *problem,
                        const struct assay_mla_plan_rules *rules,
                        const struct assay_tensors *tensors)
{
    int64_t wanted = 0;
    *market = (struct market){ .requests = problem->b,
                               .parts = problem->num_sm_parts,
                               .overhead = rules->overhead };
    assert(market->requests <= ASSAY_MLA_MAX_REQUESTS);
    assert(market->parts <= ASSAY_MLA_MAX_PARTS);
    for (int64_t i = 0; i < market->requests; i++) {
        const int64_t length = length_of(problem, tensors, i, rules->block_keys);
        market->length[i] = length;
        market->blocks[i] =
            length > 0 ? padded(length, rules->block_keys) / rules->block_keys : 1;
        wanted += market->blocks[i] + market->overhead;
    }
    market->payload = padded(wanted, market->parts) / market->parts + market->overhead;
}

/* A request is entered for the overhead, which leaves a coin at least; then each block
 * costs one. Leftovers are lost. */
static void trade(struct market *market)
{
    int64_t request = 0, block = 0;
    for (int64_t part = 0; part < market->parts; part++) {
        int64_t coins = market->payload;
        while (request < market->requests && coins > market->overhead) {
            struct purchase *const bought = &market->purchase[market->count++];
            *bought = (struct purchase){ part, request, block, block };
            market->buyers[request]++;
            for (coins -= market->overhead;
                 coins > 0 && bought->end < market->blocks[request]; coins--)
                bought->end++;
            block = bought->end;
            if (block < market->blocks[request]) break;
            request++;
            block = 0;
        }
    }
}

/* Number of purchases of the same request before this one. */
static int64_t earlier(const struct market *market, const struct purchase *purchase)
{
    int64_t count = 0;
    for (const struct purchase *it = market->purchase; it < purchase; it++)
        count += it->request == purchase->request;
    return count;
}

static void write_record(const struct market *market, int64_t part, double *record)
{
    const struct purchase *first = NULL, *last = NULL;
    for (int64_t i = 0; i < market->count; i++) {
        if (market->purchase[i].part != part) continue;
        if (!first) first = &market->purchase[i];
        last = &market->purchase[i];
    }
    for (int i = 0; i < ASSAY_PLAN_FIELDS; i++)
        record[i] = (double)NAN;
    record[ASSAY_PLAN_BEGIN_REQ] = (double)(first ? first->request : market->requests);
    record[ASSAY_PLAN_END_REQ] = (double)(last ? last->request : market->requests - 1);
    if (!first) return;
    record[ASSAY_PLAN_BEGIN_BLOCK] = (double)first->first;
    record[ASSAY_PLAN_END_BLOCK] =
        market->length[last->request] == 0 ? 0 : (double)last->end;
    record[ASSAY_PLAN_BEGIN_SPLIT] = (double)earlier(market, first);
    record[ASSAY_PLAN_FIRST_SPLIT] = market->buyers[first->request] > 1;
    record[ASSAY_PLAN_LAST_SPLIT] = market->buyers[last->request] > 1;
}

void assay_mla_plan_oracle(const struct assay_mla_plan_problem *problem,
                           const struct assay_mla_plan_rules *rules,
                           const struct assay_tensors *tensors, double *metadata,
                           double *num_splits)
{
    struct market market;
    open_market(&market, problem, rules, tensors);
    trade(&market);
    for (int64_t part = 0; part < market.parts; part++)
        write_record(&market, part, metadata + part * ASSAY_PLAN_FIELDS);
    num_splits[0] = 0;
    for (int64_t i = 0; i < market.requests; i++)
        num_splits[i + 1] = num_splits[i] + (double)market.buyers[i];
}
