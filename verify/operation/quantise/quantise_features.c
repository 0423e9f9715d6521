/* SPDX-License-Identifier: MIT */
/* What random cases of quantise vary. */
#include "verify/operation/quantise/quantise.h"

const struct assay_feature assay_quantise_features[] = {
    { "m", "2..16 0|1|2|3 31..33 63..65|96 127..129 1..300 255..257 1024|1025|1152" },
    { "k", "16..128 0|1|2|3 31..33 63..65|96 127..129 255..257 1..2100 1024|1025|1152 "
           "2048..7168/128" },
    { "granularity", "*" },
    { "gran_k", "128 32" },
    { "x_format", "*" },
    { "scale", "*" },
    { "x_stride", "- - - k+1..k+40" },
    { "q_stride", "- - - k+1..k+40" },
    { "data", "normal uniform wide outlier subnormal special ties positive exact runs" },
    { "as", "- - deepgemm-reciprocal pytorch-cuda" },
    { NULL, NULL },
};
