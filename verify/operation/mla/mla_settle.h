/* SPDX-License-Identifier: MIT */
/* Knobs of attention that can't show in what a problem computes (the hook `settle`). */
#ifndef ASSAY_VERIFY_OPERATION_MLA_SETTLE_H
#define ASSAY_VERIFY_OPERATION_MLA_SETTLE_H

#include "ref/kernel/mla_attention.h"

/* What there is in a problem for knobs to show in. */
struct assay_mla_occasions {
    enum assay_format format; /* of the operands */
    bool has_sink, has_cached_scales, has_splits;
};

/* Bits that are the unit's own anyway, or belong to a unit that does not compute; what is
 * said of B blocks where there are no pairs; two forms of one constant; and what
 * @occasions leave out. */
void assay_mla_settle(const struct assay_mla_occasions *occasions,
                      struct assay_mla_numerics *numerics);

#endif
