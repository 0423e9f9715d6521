/* SPDX-License-Identifier: MIT */
/* What random cases of scale_layout vary. */
#include "verify/operation/scale_layout/scale_layout.h"

const struct assay_feature assay_scale_layout_features[] = {
    { "groups", "- 1 2 3..5" },
    { "mn", "4..16 1|2|3|0|4|5 3..5 63..65 127..129 1..400 255..257 1000..3000" },
    { "k", "128 1|2|3|0|4..32|33..64 127..129 512 500..516 640..1024/128 1..3000 "
           "4096..7168/128" },
    { "from,to", "k_major,mn_major mn_major,k_major k_major,packed_ue8m0 "
                 "mn_major,packed_ue8m0 packed_ue8m0,k_major packed_ue8m0,mn_major" },
    { "gran_mn", "1 128" },
    { "gran_k", "128 32" },
    { "data", "normal uniform wide outlier subnormal special positive exact runs" },
    { NULL, NULL },
};
