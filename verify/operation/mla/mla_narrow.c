/* SPDX-License-Identifier: MIT */
#include "verify/operation/mla/mla_narrow.h"

#include <string.h>

const struct assay_mla_head_dimension assay_mla_decode_heads[] = {
    { "q", 2 }, { "attn_sink", 0 }, { "out", 2 }, { "lse", 1 }, { NULL, 0 }
};
const struct assay_mla_head_dimension assay_mla_prefill_heads[] = {
    { "q", 1 },   { "attn_sink", 0 },  { "out", 1 },
    { "lse", 1 }, { "max_logits", 1 }, { NULL, 0 }
};

void assay_mla_narrow_heads(const struct assay_mla_head_dimension *heads, int64_t step,
                            const struct assay_tensors *tensors,
                            struct assay_tensors *windows)
{
    *windows = *tensors;
    for (int i = 0; i < windows->count; i++)
        for (const struct assay_mla_head_dimension *head = heads; head->name; head++) {
            struct assay_tensor *const window = &windows->item[i];
            if (strcmp(window->name, head->name) != 0) continue;
            window->shape[head->dimension] /= step;
            window->stride[head->dimension] *= step;
        }
}
