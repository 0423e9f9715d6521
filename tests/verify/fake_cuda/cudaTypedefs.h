/* SPDX-License-Identifier: MIT */
/* The type of the one driver function that gpu/ calls, for tests without CUDA. */
#ifndef ASSAY_TESTS_VERIFY_FAKE_CUDA_CUDATYPEDEFS_H
#define ASSAY_TESTS_VERIFY_FAKE_CUDA_CUDATYPEDEFS_H

#include <cuda.h>

using PFN_cuTensorMapEncodeTiled_v12000 = decltype(&cuTensorMapEncodeTiled);

#endif
