/* SPDX-License-Identifier: MIT */
/* Which dense GEMM each row of a grouped FP8 GEMM is, by the mathematics: a row belongs
 * to the group it is labelled with, whatever tile it lies in. */
#ifndef ASSAY_REF_ORACLE_FP8_GEMM_GROUPED_H
#define ASSAY_REF_ORACLE_FP8_GEMM_GROUPED_H

#include "ref/fp8_gemm_grouped_problem.h"

/* A run of rows of one part that are defined and belong to one group: the dense problem
 * of @gemm.m = @rows rows and the part's columns, on tensors of its own. */
struct assay_grouped_rows {
    struct assay_fp8_gemm_problem gemm;
    struct assay_tensors tensors; /* a, sfa, b, sfb, c if has_c, d */
    int64_t first, rows;          /* inside the part's region */
    bool keeps_c;                 /* d is c itself: nothing is added */
};

/* Finds the next run of part @part at or behind row @from of its region; false if there
 * is none. The columns of the run are those of the part. */
bool assay_grouped_rows_next(const struct assay_fp8_gemm_grouped_problem *problem,
                             const struct assay_tensors *tensors, int64_t part,
                             int64_t from, struct assay_grouped_rows *run);

#endif
