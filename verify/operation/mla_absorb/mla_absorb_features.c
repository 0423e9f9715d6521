/* SPDX-License-Identifier: MIT */
/* What random cases of mla_absorb vary. */
#include "verify/operation/mla_absorb/mla_absorb.h"

#define EXTENTS(most) "16..32 1|2|3 15..17 31..33 63..65 127..129 1.." most

const struct assay_feature assay_mla_absorb_features[] = {
    { "form", "*" },
    { "out", "bf16 bf16 f32" },
    { "n", "8 1|2|3 4|16|32 2..72 63..65" },
    { "d", EXTENTS("130") },
    { "d_c", EXTENTS("80") },
    { "d_c_q", EXTENTS("80") },
    { "d_h", EXTENTS("72") },
    { "d_r", "2 4|6|8 16 30..34/2 64 2..36/2" },
    { "h_q", "1 2 3 4..8" },
    { "data,weight_exponent",
      "normal,-4..-2 uniform,-4..-2 positive,-6..-4 exact,-3 runs,-4..-2" },
    { "s_q", "1 1 2..5 n" },
    { "as", "- - - f32" },
    { NULL, NULL },
};
