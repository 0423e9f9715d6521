/* SPDX-License-Identifier: MIT */
#include "verify/operation/mla/mla_settle.h"

static void settle_unit(enum assay_format format, struct assay_mla_numerics *numerics)
{
    const struct assay_dot_add *const unit =
        assay_dot_add_find(format == ASSAY_F16 ? "hopper-f16" : "hopper-bf16");
    const bool is_idle = numerics->unit == ASSAY_MLA_FMA;
    if (is_idle || numerics->align_bits == unit->align_bits) numerics->align_bits = 0;
    if (is_idle || numerics->result_bits == unit->result_bits) numerics->result_bits = 0;
}

static void settle_pairs(struct assay_mla_numerics *numerics)
{
    if (numerics->schedule == ASSAY_MLA_SEESAW) return;
    numerics->tile_order[1] = ASSAY_MLA_TILES_ASCENDING;
    numerics->right_p = ASSAY_MLA_RIGHT_P_RESCALED;
    numerics->right_factor = ASSAY_MLA_RIGHT_PRODUCT;
    numerics->odd_tail = ASSAY_MLA_TAIL_SKIPPED;
}

void assay_mla_settle(const struct assay_mla_occasions *occasions,
                      struct assay_mla_numerics *numerics)
{
    settle_unit(occasions->format, numerics);
    settle_pairs(numerics);
    if (numerics->scale_constant == ASSAY_MLA_SCALE_FLOAT_CONSTANT)
        numerics->scale_constant = ASSAY_MLA_SCALE_SINGLE;
    if (!occasions->has_cached_scales) numerics->dequantisation = ASSAY_MLA_SCALE_TO_BF16;
    if (!occasions->has_sink) {
        numerics->sink_product = ASSAY_MLA_SINK_SEPARATE;
        numerics->combine.sink_product = ASSAY_MLA_SINK_SEPARATE;
    }
    if (!occasions->has_splits)
        numerics->combine = (struct assay_mla_combine_numerics){ 0 };
}
