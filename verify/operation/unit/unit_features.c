/* SPDX-License-Identifier: MIT */
/* What random cases of the units vary. */
#include "verify/operation/unit/unit.h"

#define COUNTS "64..200 1..63 63..65 127..129 500..1500 4095..4097 5000..10000"

const struct assay_feature assay_wgmma_features[] = {
    { "blocks", "1 2 3 4..6" },
    { "steps", "1 2 3|4 8 5..12 16|36 64..128" },
    { "n", "8 16 24..56/8 64 72..256/8" },
    { "a_format,b_format",
      "e4m3,e4m3 e4m3,e5m2 e5m2,e4m3 e5m2,e5m2 bf16,bf16 f16,f16 tf32,tf32" },
    { "data", "*" },
    { "as", "- - - hopper-mma" },
    { NULL, NULL },
};

const struct assay_feature assay_sfu_features[] = {
    { "function", "*" },
    { "count", COUNTS },
    { "data", "normal uniform wide outlier subnormal special positive exact runs" },
    { NULL, NULL },
};

const struct assay_feature assay_convert_features[] = {
    { "to", "*" },
    { "count", COUNTS },
    { "data", "normal uniform wide outlier subnormal special ties positive exact runs" },
    { NULL, NULL },
};
