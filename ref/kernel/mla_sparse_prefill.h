/* SPDX-License-Identifier: MIT */
/* Sparse MLA prefill over bf16 keys. Modelled: equal to recorded H200 outputs of FlashMLA
 * 9241ae3 to the bit. */
#ifndef ASSAY_REF_KERNEL_MLA_SPARSE_PREFILL_H
#define ASSAY_REF_KERNEL_MLA_SPARSE_PREFILL_H

#include "ref/kernel/mla_attention.h"

/* Computes part @part. Returns false when memory ran out. */
bool assay_mla_sparse_prefill_model(
    const struct assay_mla_sparse_prefill_problem *problem,
    const struct assay_mla_numerics *numerics, const struct assay_tensors *tensors,
    int64_t part);

#endif
