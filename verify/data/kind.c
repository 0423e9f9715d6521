/* SPDX-License-Identifier: MIT */
/* The table of data kinds. */
#include "verify/data/kind.h"

const struct assay_data_kind_row assay_data_kinds[ASSAY_DATA_KIND_COUNT + 1] = {
    [ASSAY_DATA_NORMAL] = { "normal", "bell-shaped values around zero" },
    [ASSAY_DATA_UNIFORM] = { "uniform", "evenly spread values around zero" },
    [ASSAY_DATA_WIDE] = { "wide", "exponents evenly spread over a wide range" },
    [ASSAY_DATA_OUTLIER] = { "outlier", "mostly small values, a few huge" },
    [ASSAY_DATA_CANCEL] = { "cancel", "neighbouring products cancel, a few do not" },
    [ASSAY_DATA_SUBNORMAL] = { "subnormal", "subnormals of the operand format, and of "
                                            "f32 in results" },
    [ASSAY_DATA_SPECIAL] = { "special", "a few NaN, infinities and odd scales" },
    [ASSAY_DATA_TIES] = { "ties", "results lie half way between two output codes" },
    [ASSAY_DATA_POSITIVE] = { "positive", "one sign: truncation errors cannot cancel" },
    [ASSAY_DATA_EXACT] = { "exact", "sums never round: any order gives the same bits" },
    [ASSAY_DATA_RUNS] = { "runs", "values in runs of pathological modes" },
    [ASSAY_DATA_ZERO] = { "zero", "nothing but zeros, and scales of 1" },
    [ASSAY_DATA_NEEDLE] = { "needle", "one key beats all others: out is its V row" },
    [ASSAY_DATA_RECORDED] = { "recorded", "inputs come from a recorded file" },
};
