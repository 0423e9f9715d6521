/* SPDX-License-Identifier: MIT */
/* Dense MLA decode over pages of 64 keys. Modelled: equal to recorded H200 outputs of
 * FlashMLA 9241ae3 to the bit in bf16; f16 has the same source and no recording. */
#ifndef ASSAY_REF_KERNEL_MLA_DENSE_DECODE_H
#define ASSAY_REF_KERNEL_MLA_DENSE_DECODE_H

#include "ref/kernel/mla_attention.h"

/* Computes part @part, with the splits of the plan in the tensors. Pages outside the
 * cache read as zeros. Returns false when memory ran out. */
bool assay_mla_dense_decode_model(const struct assay_mla_dense_decode_problem *problem,
                                  const struct assay_mla_numerics *numerics,
                                  const struct assay_tensors *tensors, int64_t part);

#endif
