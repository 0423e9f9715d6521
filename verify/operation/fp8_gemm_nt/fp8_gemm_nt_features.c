/* SPDX-License-Identifier: MIT */
/* What random cases of fp8_gemm_nt vary. */
#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt.h"

const struct assay_feature assay_fp8_gemm_nt_features[] = {
    { "m",
      "1..8 0|1|2|3|5 7|15|16|17 31..33 63..65 96|127|128|129 1..160 131|192|255..257 "
      "300..1200" },
    { "n",
      "8 16..64/8 8|16|24|32|40|48|0 56|64|72 120|128|136 8..320/8 88|104|248|256|264 "
      "384..1024/8" },
    { "k", "16 32|48|64 0|16|32 112|128|144 240|256|272 16..640/16 176|208|384|512 "
           "640..2048/16 4096" },
    { "out", "bf16 f32" },
    { "recipe", "1d2d 1d1d tensor mx" },
    { "gran_k", "128 32" },
    { "a_format", "e4m3 e4m3 e5m2 e2m1" },
    { "b_format", "e4m3 e4m3 e5m2 e2m1" },
    { "c", "0 1" },
    { "a_stride", "- - - k+16..k+128/16" },
    { "b_stride", "- - - k+16..k+128/16" },
    { "d_stride", "- - - n+8..n+64/8" },
    { "data", "*" },
    { "as", "- deepgemm-1d1d - cublaslt-promoted - cublaslt-fast - cublaslt-block -" },
    { NULL, NULL },
};
