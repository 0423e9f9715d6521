/* SPDX-License-Identifier: MIT */
/* The relations between two runs that dense and grouped GEMMs have in common: an
 * operation gives the views of its GEMMs, and its hooks call these. */
#ifndef ASSAY_VERIFY_OPERATION_FP8_GEMM_NT_FP8_GEMM_RELATION_H
#define ASSAY_VERIFY_OPERATION_FP8_GEMM_NT_FP8_GEMM_RELATION_H

#include "verify/operation/fp8_gemm_nt/fp8_gemm_view.h"
#include "verify/operation/property.h"

struct assay_gemm_place { /* of an element of d; group -1: it is nobody's */
    int group;
    int64_t row, column; /* in the group */
};

/* How an operation shows its GEMMs. */
struct assay_gemm_views {
    int (*count)(const void *problem);
    void (*open)(const struct assay_property_run *run, int group,
                 struct assay_gemm_view *view);
    struct assay_gemm_place (*place)(const struct assay_property_run *run,
                                     int64_t element);
    int64_t (*element)(const struct assay_property_run *run,
                       const struct assay_gemm_place *place);
};

/* Copies all inputs; both runs have the same shapes. */
void assay_gemm_copy_inputs(const struct assay_property_run *first,
                            const struct assay_property_run *second);

/* Copies the inputs, then changes each GEMM. */
void assay_gemm_change_all(const struct assay_gemm_views *views,
                           const struct assay_property_run *first,
                           const struct assay_property_run *second,
                           void (*change)(const struct assay_gemm_view *view));

/* Bits of an element of d after assay_gemm_double, _negate, _reverse_rows, _take_rows:
 * expect hooks of relations. */
bool assay_gemm_expect_double(const struct assay_gemm_views *views,
                              const struct assay_property_run *first, int output,
                              int64_t element, uint32_t *bits);
bool assay_gemm_expect_negated(const struct assay_property_run *first, int output,
                               int64_t element, uint32_t *bits);
bool assay_gemm_expect_reversed(const struct assay_gemm_views *views,
                                const struct assay_property_run *first, int output,
                                int64_t element, uint32_t *bits);
bool assay_gemm_expect_taken(const struct assay_gemm_views *views,
                             const struct assay_property_run *first,
                             const struct assay_property_run *second, int output,
                             int64_t element, uint32_t *bits);

#endif
