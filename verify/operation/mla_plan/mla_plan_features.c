/* SPDX-License-Identifier: MIT */
/* What random cases of mla_plan vary. */
#include "verify/operation/mla_plan/mla_plan.h"

const struct assay_feature assay_mla_plan_features[] = {
    { "attention,s_k,topk", "dense,1,- sparse,-,64" },
    { "b", "1 2 3 4..40 64 128 200..250" },
    { "s_q", "1 2 3..4" },
    { "h_q,h_k", "128,1 64,1 1|3|9,1 16|63|65,1 8|126|128,2 63|126,3 8|64,8" },
    { "s_k", "1..100 - 0|1|63..65|128|129*b 0..1000*b 0..5000*b 0..70000*b 1000..70000" },
    { "topk", "- 64 128|192 512|576 2048" },
    { "topk_length", "- - 0..topk*b 0|1|63|64|topk-1|topk*b 0..topk" },
    { "extra_topk", "- - 64 128|192 512|576|2048" },
    { "extra_topk_length", "- - 0..extra_topk*b 0|1|63|64|extra_topk*b 0..extra_topk" },
    { "sms", "132 114 78 144 1..8 200..300" },
    { "parts", "- - - 1|2|3 4..160" },
    { "overhead", "5 5 5 0 1..12 100..1024" },
    { "data", "*" },
    { NULL, NULL },
};
