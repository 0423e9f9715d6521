/* SPDX-License-Identifier: MIT */
/* Splits of a plan through one tile, and what they leave through combine. */
#include "ref/kernel/mla_decode.h"

#include "ref/kernel/mla_combine.h"
#include "ref/kernel/mla_plan.h"

#include <math.h>
#include <stdlib.h>

/* What a split leaves for combine. */
struct partial {
    float oaccum[ASSAY_MLA_ROWS][ASSAY_MLA_D_V];
    float lseaccum[ASSAY_MLA_ROWS];
};

static const struct assay_tensor *plan_tensor(const struct assay_mla_decode *decode,
                                              const char *name)
{
    return assay_tensors_find(decode->tensors, name);
}

/* Splits that combine counts, 0 if it leaves the request alone. */
static int64_t combined_splits(const struct assay_mla_decode *decode)
{
    const struct assay_tensor *const num_splits = plan_tensor(decode, "num_splits");
    const int32_t *const sums = num_splits->data;
    const int64_t count = (int64_t)sums[(decode->request + 1) * num_splits->stride[0]] -
                          sums[decode->request * num_splits->stride[0]];
    if (count <= 1) return 0;
    return count < ASSAY_MLA_MAX_PARTS ? count : ASSAY_MLA_MAX_PARTS;
}

/* Splits that a faulty plan gives nobody count as empty. */
static struct partial *new_partials(int64_t count)
{
    struct partial *const partials = calloc((size_t)count, sizeof(*partials));
    for (int64_t i = 0; partials && i < count; i++)
        for (int row = 0; row < ASSAY_MLA_ROWS; row++)
            partials[i].lseaccum[row] = -INFINITY;
    return partials;
}

static void combine(const struct assay_mla_decode *decode, const struct partial *partials,
                    int64_t count)
{
    const struct assay_mla_query *const query = &decode->query;
    const int64_t stride = sizeof(*partials) / sizeof(float);
    for (int row = 0; row < query->rows; row++)
        assay_mla_combine_row(&query->numerics->combine, count, partials->oaccum[row],
                              stride, &partials->lseaccum[row], stride,
                              query->sink ? &query->sink[row] : NULL, query->is_base_two,
                              query->format, decode->out[row], decode->lse[row]);
}

static bool attend_split(const struct assay_mla_decode *decode,
                         struct assay_mla_tile *tile, const struct assay_mla_split *split,
                         struct partial *partials, int64_t count)
{
    const int64_t end =
        split->end_block < decode->end_block ? split->end_block : decode->end_block;
    if (!assay_mla_tile_attend(tile, split->begin_block, end)) return false;
    if (split->is_whole)
        assay_mla_tile_finish(tile, decode->out, decode->lse, NULL);
    else if (split->split < count)
        assay_mla_tile_finish_split(tile, partials[split->split].oaccum,
                                    partials[split->split].lseaccum);
    return true;
}

bool assay_mla_decode_rows(const struct assay_mla_decode *decode)
{
    struct assay_mla_split splits[ASSAY_MLA_MAX_PARTS];
    const int64_t found = assay_mla_plan_splits(
        plan_tensor(decode, "tile_scheduler_metadata"), plan_tensor(decode, "num_splits"),
        decode->request, decode->blocks, splits, ASSAY_MLA_MAX_PARTS);
    const int64_t count = combined_splits(decode);
    struct assay_mla_tile *const tile = assay_mla_tile_open(&decode->query);
    struct partial *const partials = count ? new_partials(count) : NULL;
    bool has_memory = tile && (partials || !count);

    for (int64_t i = 0; i < found && has_memory; i++)
        has_memory = attend_split(decode, tile, &splits[i], partials, count);
    if (has_memory && count) combine(decode, partials, count);
    free(partials);
    assay_mla_tile_close(tile);
    return has_memory;
}
