/* SPDX-License-Identifier: MIT */
/* Sparse MLA decode over FP8 and FP4 caches. Modelled: equal to recorded H200 outputs of
 * FlashMLA 9241ae3 to the bit for v32 and model1; the v41 formats have no sm_90 kernel
 * upstream and follow model1's rules here. */
#ifndef ASSAY_REF_KERNEL_MLA_SPARSE_DECODE_H
#define ASSAY_REF_KERNEL_MLA_SPARSE_DECODE_H

#include "ref/kernel/mla_attention.h"

/* Computes part @part, with the splits of the plan in the tensors. Slots outside the
 * cache read as zeros. Returns false when memory ran out. */
bool assay_mla_sparse_decode_model(const struct assay_mla_sparse_decode_problem *problem,
                                   const struct assay_mla_numerics *numerics,
                                   const struct assay_tensors *tensors, int64_t part);

#endif
