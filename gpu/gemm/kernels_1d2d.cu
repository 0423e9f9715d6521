/* SPDX-License-Identifier: MIT */
#include "gpu/gemm/configuration_row.cuh"

const gemm::configuration gemm::kernels_1d2d[] = {
    row<shape<64, 16, SCALE_1D2D>>(),   row<shape<64, 32, SCALE_1D2D>>(),
    row<shape<64, 64, SCALE_1D2D>>(),   row<shape<64, 128, SCALE_1D2D>>(),
    row<shape<128, 64, SCALE_1D2D>>(),  row<shape<128, 128, SCALE_1D2D>>(),
    row<shape<256, 128, SCALE_1D2D>>(), {},
};
