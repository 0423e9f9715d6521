/* SPDX-License-Identifier: MIT */
/* A GEMM as the host sees it, and what has to be true of it before a launch. */
#ifndef ASSAY_GPU_GEMM_PROBLEM_H
#define ASSAY_GPU_GEMM_PROBLEM_H

#include "gpu/gemm/arguments.h"

#include <assay_plugin_cuda.h>

namespace gemm {

struct problem {
    enum kind kind;
    scale_form form;
    bool a_is_e5m2, b_is_e5m2, d_is_f32;
    int64_t m, n, k; /* of one group; CONTIGUOUS: m of all; K_GROUPED: k of all */
    int64_t groups;
    int64_t a_stride, b_stride, d_stride; /* elements from row to row */
    int64_t valid_m;                      /* rows that count, all groups; an estimate */
};

/* What the tensors of a call are. */
problem problem_of(const assay_call *call, kind kind, scale_form form);

/* ASSAY_PLUGIN_OK, or one sentence about what no kernel here can do: sizes and strides
 * that tensor maps do not take, formats, extents beyond 32 bits, tensors that lie in
 * memory otherwise than the kernels read them. */
int check(const assay_call *call, const problem &of);

} // namespace gemm

#endif
