/* SPDX-License-Identifier: MIT */
/* What random cases of mla_combine vary. */
#include "verify/operation/mla_combine/mla_combine.h"

const struct assay_feature assay_mla_combine_features[] = {
    { "b", "1 2 3..4 5..8 20..40" },
    { "s_q", "1 2 3..4" },
    { "h_q", "1..4 7..9 15..17 63..65 128" },
    { "splits",
      "2 1|2|2|2|3|3*b 2..12 1..12*b 31..33 2|3|31..33*b 63..65|96|160 2|3|64|65|160*b" },
    { "sink", "0 1" },
    { "format", "*" },
    { "data", "*" },
    { "empty", "- - 0.1..0.5/0.1 0.6..0.9/0.1 1" },
    { "as", "- - - exact-functions" },
    { NULL, NULL },
};
