/* SPDX-License-Identifier: MIT */
/* What random cases of the grouped FP8 GEMMs vary. */
#include "verify/operation/fp8_gemm_grouped/fp8_gemm_grouped.h"

#define FORMATS_AND_DATA                                                                 \
  { "a_format", "e4m3 e4m3 e5m2" }, { "b_format", "e4m3 e4m3 e5m2" }, { "data", "*" },   \
  {                                                                                      \
    NULL, NULL                                                                           \
  }

const struct assay_feature assay_m_grouped_fp8_gemm_nt_contiguous_features[] = {
    { "group_m", "1..40 0|1|1..20*2..4 1..64*2..4 1|63..65|63..65|0*2..4 "
                 "127..129 1..20|127..129|0*2..3 1|128|256|0*2..4 1|1..20|0*5..12 "
                 "200..600" },
    { "n", "8 16..64/8 8|16|24|32|40|48|0 56|64|72 120|128|136 8..200/8 248|256|264" },
    { "k", "16 32|48|64 16|0|32|48 112|128|144 240|256|272 16..640/16 384|512|640" },
    { "out", "bf16 f32" },
    FORMATS_AND_DATA,
};

const struct assay_feature assay_m_grouped_fp8_gemm_nt_masked_features[] = {
    { "groups", "1 2 3..4 5..8" },
    { "m_max", "128 256 384" },
    { "n", "8 16..64/8 8|16|24|32|40|48|0 56|64|72 120|128|136 8..200/8 248|256|264" },
    { "k", "16 32|48|64 16|0|32|48 112|128|144 240|256|272 16..640/16 384|512|640" },
    { "masked_m", "1..64*groups 1..8|1..8|0*groups 1|2|3|0*groups 1..16*groups "
                  "63..65|0|1|1..8*groups 127..129|0|1|1..8*groups "
                  "m_max|m_max-1|1*groups 1..m_max*groups 1..4*groups" },
    { "out", "bf16 f32" },
    FORMATS_AND_DATA,
};

const struct assay_feature assay_k_grouped_features[] = {
    { "m", "128 128 256 384" },
    { "ks", "128 128..512/128 128..384/128*2..4 0|128*2..8 0|256|512*2..3 0*1..3 "
            "640..1280/128" },
    { "n", "8 16..64/8 8|16|24|32|40|48|0 56|64|72 120|128|136 8..200/8 248|256|264" },
    FORMATS_AND_DATA,
};
