/* SPDX-License-Identifier: MIT */
/* Putting the splits of a request together as FlashMLA's combine kernel does. Modelled:
 * equal to recorded H200 outputs to the bit, through the decode operations. */
#ifndef ASSAY_REF_KERNEL_MLA_COMBINE_H
#define ASSAY_REF_KERNEL_MLA_COMBINE_H

#include "ref/kernel/mla_attention.h"

/* One row: @count >= 1 splits (at most ASSAY_MLA_MAX_PARTS, asserted), split i's 512
 * outputs at oaccum + i * oaccum_stride and its lse, in base 2, at
 * lseaccum[i * lseaccum_stride]. @sink NULL: none. @out gets 512 codes of @format,
 * @lse the natural (or, with is_base_two, base 2) logarithm without the sink. In order:
 *
 *   max    of the lse of 32 lanes, lane i those of splits i, i + 32 ...; -infinity: 0
 *   sum    of ex2(lse - max): a lane's own ascending, then lanes 16, 8, 4, 2, 1 apart
 *   G      lg2(sum) + max, +infinity if the sum is 0; from it lse
 *   sink   G += lg2(1 + ex2(fma(sink, log2 e, -G))); if G is +infinity, it becomes
 *          sink * log2 e unless the sink is -infinity
 *   out    sum of ex2(lse of split i - G) * oaccum of split i by fma, i ascending */
void assay_mla_combine_row(const struct assay_mla_combine_numerics *numerics,
                           int64_t count, const float *oaccum, int64_t oaccum_stride,
                           const float *lseaccum, int64_t lseaccum_stride,
                           const float *sink, bool is_base_two, enum assay_format format,
                           uint16_t *out, float *lse);

/* Number of splits request @request owns, the first in @first; 0 when num_splits say what
 * cannot be: a range outside [0, splits], or of more than ASSAY_MLA_MAX_PARTS. */
int64_t assay_mla_combine_splits(const struct assay_mla_combine_problem *problem,
                                 const struct assay_tensor *num_splits, int64_t request,
                                 int64_t *first);

/* Part @part of the operation. Requests of one split, and of none, are not touched. */
void assay_mla_combine_model(const struct assay_mla_combine_problem *problem,
                             const struct assay_mla_combine_numerics *numerics,
                             const struct assay_tensors *tensors, int64_t part);

#endif
