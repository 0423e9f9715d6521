/* SPDX-License-Identifier: MIT */
#include "gpu/gemm/configuration_row.cuh"

const gemm::configuration gemm::kernels_1d1d[] = {
    row<shape<64, 64, SCALE_1D1D>>(),
    row<shape<128, 64, SCALE_1D1D>>(),
    row<shape<128, 128, SCALE_1D1D>>(),
    {},
};
