/* SPDX-License-Identifier: MIT */
/* A few heads of an attention problem as a problem of their own. */
#ifndef ASSAY_VERIFY_OPERATION_MLA_NARROW_H
#define ASSAY_VERIFY_OPERATION_MLA_NARROW_H

#include "ref/tensor.h"

/* Which dimension of which tensor counts query heads; closed by a NULL name. Tensors that
 * are not there are passed over. */
struct assay_mla_head_dimension {
    const char *name;
    int dimension;
};
extern const struct assay_mla_head_dimension assay_mla_decode_heads[],
    assay_mla_prefill_heads[];

/* Windows on the same memory that keep the first of each @step heads. */
void assay_mla_narrow_heads(const struct assay_mla_head_dimension *heads, int64_t step,
                            const struct assay_tensors *tensors,
                            struct assay_tensors *windows);

#endif
