/* SPDX-License-Identifier: MIT */
/* What random cases of mla_dense_decode vary. */
#include "verify/operation/mla_dense_decode/mla_dense_decode.h"

const struct assay_feature assay_mla_dense_decode_features[] = {
    { "b,s_k", "1,1 1,1 2,1 3,1 4..9,1 20..40,0" },
    { "h_q,h_k", "1..4,1 5|9|16,1 63..65,1 128,1 1..20,1 2|4|18,2 6|21|63,3 4|8|16,4" },
    { "s_q", "1 1 2 3..4 5..8" },
    { "format", "bf16 bf16 f16" },
    { "data", "*" },
    { "s_k", "1|2|3|4..8|9..60 1|2|4*b 1|1..8|1..64*b 1..4|63..65*b 127..129 "
             "1|2|4|8|16|32|64|128|256*b 127..129|0|1|2*b 1..8|1..64*b "
             "191..193|255..257|1|2*b 1..300|1..8*b 320..600 "
             "0|0|0|0|0|0|0|0|0|0|1..8|1..64*b" },
    { "causal", "0 1" },
    { "plan", "whole scheduler blocks random" },
    { "sms", "132 132 1..8 16|78|114 160" },
    { "softmax_scale", "- - 0.05|0.025|0.072168783648 0.001..0.2/0.001 0.5|1|2" },
    { "lse", "natural natural natural base2" },
    { "pages", "- - - 1..12 10..40" },
    { "table_columns", "- - - 1..6 7..20" },
    { "as", "- - - - flash naive" },
    { NULL, NULL },
};
