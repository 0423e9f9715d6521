/* SPDX-License-Identifier: MIT */
/* What both decodes do with the rows of a tile: attend to each split of the request's
 * plan, then put the splits together. Exactness: that of the tile and of combine. */
#ifndef ASSAY_REF_KERNEL_MLA_DECODE_H
#define ASSAY_REF_KERNEL_MLA_DECODE_H

#include "ref/kernel/mla_attention.h"

struct assay_mla_decode {
    struct assay_mla_query query;
    const struct assay_tensors *tensors; /* for the plan */
    int64_t request;
    int64_t blocks;    /* of the request; may be 0 */
    int64_t end_block; /* no split of this tile goes further: causal */
    uint16_t *out[ASSAY_MLA_ROWS];
    float *lse[ASSAY_MLA_ROWS];
};

/* Returns false when memory ran out: beyond a tile some 130 KiB a split. A plan in which
 * nobody finishes the rows leaves them as they are. */
bool assay_mla_decode_rows(const struct assay_mla_decode *decode);

#endif
