/* SPDX-License-Identifier: MIT */
/* The kernels there are, and which one a problem gets. */
#ifndef ASSAY_GPU_GEMM_CONFIGURATION_H
#define ASSAY_GPU_GEMM_CONFIGURATION_H

#include "gpu/gemm/problem.h"

namespace gemm {

struct configuration {
    int block_m, block_n, threads, shared_bytes;
    scale_form form;
    bool a_is_e5m2, b_is_e5m2;
    void (*kernel)(arguments);
};

/* Closed by a row without a kernel. */
extern const configuration kernels_1d2d[], kernels_1d1d[], kernels_e5m2[];

struct choice {
    const configuration *kernel; /* NULL: none there is */
    int cluster, band;
};

/* How a problem is cut into tiles for so many multiprocessors. Whatever is chosen, the
 * bits are the same. The estimate, in cycles: tiles that one multiprocessor gets, times
 * the blocks of K, times the slowest of three: tensor core (4096 multiply-adds a cycle)
 * or shared memory (128 bytes), and the additions of a warpgroup, which nothing hides; L2
 * (48 bytes; a tile of a that a cluster shares counts once); a warpgroup's own chain (its
 * products, their addition, 250 of waiting). And 2000 a tile. Candidates are those whose
 * form and formats fit. */
choice choose(const problem &of, int multiprocessors);

/* The kernel that the options tile=MxN and cluster=1 or 2 ask for, in place of it. */
bool choose_asked(const assay_call *call, const problem &of, int multiprocessors,
                  choice *chosen);

} // namespace gemm

#endif
