/* SPDX-License-Identifier: MIT */
/* What random cases of mla_sparse_prefill vary. */
#include "verify/operation/mla_sparse_prefill/mla_sparse_prefill.h"

const struct assay_feature assay_mla_sparse_prefill_features[] = {
    { "s_q", "1 1 2 3..6" },
    { "h_q", "64 64 128" },
    { "d_qk", "576 512" },
    { "topk", "128 128 256 384..512/128" },
    { "data", "*" },
    { "topk_length", "- 0|1|63..65|topk-1|topk*s_q 1|2|4|8|16|32|64|128*s_q 0..topk*s_q "
                     "0..topk 0..40*s_q" },
    { "s_kv", "64 1|2 3..63 127..129 65..300 topk..topk+200 1000..3000" },
    { "invalid", "- - 0.1 0.5 0.9 1" },
    { "indices", "*" },
    { "sink", "0 1" },
    { "kv_stride", "- - d_qk+8..d_qk+64/8 d_qk+72..d_qk+512/8" },
    { "softmax_scale", "- - 0.06|0.025|0.072168783648 0.001..0.2/0.001 0.5|1" },
    { "lse", "natural natural base2" },
    { "as", "- - - - - - - flash|naive" },
    { NULL, NULL },
};
