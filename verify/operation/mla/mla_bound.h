/* SPDX-License-Identifier: MIT */
/* Values and bounds of the attention operations: their oracle hooks. The bounds hold for
 * any order of summation and any plan; derived in mla_bound.c. */
#ifndef ASSAY_VERIFY_OPERATION_MLA_BOUND_H
#define ASSAY_VERIFY_OPERATION_MLA_BOUND_H

#include "verify/operation/operation.h"

/* @numerics is a struct assay_mla_numerics; of the combine operation, a struct
 * assay_mla_combine_numerics. */
enum assay_status assay_mla_dense_decode_expect(const void *problem, const void *numerics,
                                                const struct assay_tensors *tensors,
                                                int64_t part,
                                                const struct assay_expected *expected);
enum assay_status assay_mla_sparse_decode_expect(const void *problem,
                                                 const void *numerics,
                                                 const struct assay_tensors *tensors,
                                                 int64_t part,
                                                 const struct assay_expected *expected);
enum assay_status assay_mla_sparse_prefill_expect(const void *problem,
                                                  const void *numerics,
                                                  const struct assay_tensors *tensors,
                                                  int64_t part,
                                                  const struct assay_expected *expected);
enum assay_status assay_mla_combine_expect(const void *problem, const void *numerics,
                                           const struct assay_tensors *tensors,
                                           int64_t part,
                                           const struct assay_expected *expected);

#endif
