/* SPDX-License-Identifier: MIT */
/* What random cases of mla_sparse_decode vary. */
#include "verify/operation/mla_sparse_decode/mla_sparse_decode.h"

const struct assay_feature assay_mla_sparse_decode_features[] = {
    { "kv", "*" },
    { "b", "1 1 2 3..8" },
    { "h_q", "64 64 128" },
    { "s_q", "1 1 2 3" },
    { "extra_topk", "- - 64 128..192/64" },
    { "topk", "64 64 128 192..384/64" },
    { "data", "*" },
    { "topk_length", "- - 0|1|63..65|topk-1|topk*b 0..topk*b 0..topk" },
    { "s_kv", "- - 1|2 3..topk topk+1..topk+300" },
    { "page_size", "64 64 1|2|3 53|61|69 63|65 128" },
    { "page_padding", "- - - 16..640/16" },
    { "pages", "- - - 1..12" },
    { "extra_kv", "same v41_fp4" },
    { "extra_s_kv", "- - 1|2 3..extra_topk extra_topk+1..extra_topk+300" },
    { "extra_page_size", "- - 2|53|61 64|69" },
    { "extra_topk_length", "- - 0|1|63..65|extra_topk*b 0..extra_topk*b" },
    { "invalid", "- - 0.1 0.5 0.9 1" },
    { "indices", "*" },
    { "sink", "0 1" },
    { "tables", "0 0 1" },
    { "scales", "*" },
    { "plan", "whole scheduler blocks random" },
    { "sms", "132 78 8 1..4" },
    { "softmax_scale", "- - 0.030322684|0.041666668 0.1|0.5" },
    { "lse", "natural natural base2" },
    { "as", "- - - - - - - flash|naive" },
    { NULL, NULL },
};
