/* SPDX-License-Identifier: MIT */
/* The relation between two runs of mla_plan: only blocks count, not keys. */
#include "verify/operation/mla/mla_properties.h"
#include "verify/operation/mla_plan/mla_plan.h"

/* The longest length of as many blocks; 0, which is a length of its own, stays. */
static void fill_blocks(const struct assay_property_run *first,
                        const struct assay_property_run *second, const char *name,
                        bool *is_changed)
{
    const struct assay_tensor *const from = assay_tensors_find(first->tensors, name);
    for (int64_t i = 0; from && i < from->shape[0]; i++) {
        const int32_t length = assay_mla_integer(first, name, i);
        const int32_t blocks = (length + ASSAY_MLA_BLOCK - 1) / ASSAY_MLA_BLOCK;
        if (length != blocks * ASSAY_MLA_BLOCK) *is_changed = true;
        assay_mla_set_integer(second, name, i, blocks * ASSAY_MLA_BLOCK);
    }
}

static bool round_lengths(const struct assay_property_run *first,
                          const struct assay_property_run *second)
{
    bool is_changed = false;
    if (!assay_mla_copy_inputs(first, second)) return false;
    fill_blocks(first, second, "cache_seqlens", &is_changed);
    fill_blocks(first, second, "topk_length", &is_changed);
    fill_blocks(first, second, "extra_topk_length", &is_changed);
    return is_changed;
}

const struct assay_property assay_mla_plan_properties[] = {
    { "rounded_lengths", "lengths fill their last block: the same plan",
      ASSAY_PROPERTY_MATHEMATICS, NULL, round_lengths, assay_mla_expect_same },
    { .name = NULL },
};
