/* SPDX-License-Identifier: MIT */
/* The named numerics of wgmma and its knobs. */
#include "verify/operation/unit/unit.h"

static const struct assay_wgmma_numerics hopper_wgmma = {
    .unit = ASSAY_WGMMA_HOPPER,
    .stage = { assay_wgmma_step },
};
static const struct assay_wgmma_numerics hopper_mma = {
    .unit = ASSAY_WGMMA_HOPPER_MMA,
    .stage = { assay_wgmma_step },
};

const struct assay_named_numerics assay_wgmma_numerics_table[] = {
    { "hopper-wgmma", "wgmma on sm_90, by the operands' format", &hopper_wgmma },
    { "hopper-mma", "mma.sync on sm_90: another unit for FP8, the same for the rest",
      &hopper_mma },
    { NULL, NULL, NULL },
};

static const struct assay_choice units[] = {
    { "hopper", ASSAY_WGMMA_HOPPER, "wgmma on sm_90" },
    { "hopper-mma", ASSAY_WGMMA_HOPPER_MMA, "mma.sync on sm_90" },
    { "ada", ASSAY_WGMMA_ADA, "mma.sync on sm_89, unmeasured" },
    { "ampere", ASSAY_WGMMA_AMPERE, "mma.sync on sm_80, unmeasured" },
    { "blackwell", ASSAY_WGMMA_BLACKWELL, "sm_100, unmeasured" },
    { "volta", ASSAY_WGMMA_VOLTA, "mma.sync on sm_70, unmeasured" },
    { NULL, 0, NULL },
};

#define AT(field) offsetof(struct assay_wgmma_numerics, field)
const struct assay_knob assay_wgmma_knobs[] = {
    { "unit", "whose tensor core", AT(unit), units, 0, 0 },
    { "align_bits", "fraction bits kept when aligning; 0: the unit's", AT(align_bits),
      NULL, 0, ASSAY_DOT_ADD_MAX_ALIGN_BITS },
    { "result_bits", "mantissa bits of the accumulator; 0: the unit's", AT(result_bits),
      NULL, 0, 23 },
    { NULL, NULL, 0, NULL, 0, 0 },
};

enum assay_status assay_wgmma_check_numerics(const void *bound, const void *numerics,
                                             struct assay_message *message)
{
    const struct assay_wgmma_problem *const problem = bound;
    const struct assay_wgmma_numerics *const given = numerics;
    if (!assay_wgmma_unit_takes(given->unit, problem->a_format, problem->b_format))
        return assay_fail(message, ASSAY_REFUSED,
                          "unit=%s has no profile for %s by %s; use unit=hopper or other "
                          "formats",
                          units[given->unit].name, assay_format_name(problem->a_format),
                          assay_format_name(problem->b_format));
    return ASSAY_RAN;
}

/* Which unit was measured does not depend on the format. */
bool assay_wgmma_is_measured(const void *numerics)
{
    const struct assay_wgmma_numerics *const given = numerics;
    const bool is_hopper =
        given->unit == ASSAY_WGMMA_HOPPER || given->unit == ASSAY_WGMMA_HOPPER_MMA;
    return is_hopper && given->align_bits == 0 && given->result_bits == 0;
}
