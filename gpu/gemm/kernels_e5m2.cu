/* SPDX-License-Identifier: MIT */
/* Operands of e5m2: one tile a form is enough. */
#include "gpu/gemm/configuration_row.cuh"

const gemm::configuration gemm::kernels_e5m2[] = {
    row<shape<128, 128, SCALE_1D2D, ptx::E4M3, ptx::E5M2>>(),
    row<shape<128, 128, SCALE_1D2D, ptx::E5M2, ptx::E4M3>>(),
    row<shape<128, 128, SCALE_1D2D, ptx::E5M2, ptx::E5M2>>(),
    row<shape<128, 64, SCALE_1D1D, ptx::E4M3, ptx::E5M2>>(),
    row<shape<128, 64, SCALE_1D1D, ptx::E5M2, ptx::E4M3>>(),
    row<shape<128, 64, SCALE_1D1D, ptx::E5M2, ptx::E5M2>>(),
    {},
};
