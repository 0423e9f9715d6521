/* SPDX-License-Identifier: MIT */
/* The kinds of data that a case can ask for. */
#ifndef ASSAY_VERIFY_DATA_KIND_H
#define ASSAY_VERIFY_DATA_KIND_H

#include <stddef.h>

enum assay_data_kind {
    ASSAY_DATA_NORMAL,
    ASSAY_DATA_UNIFORM,
    ASSAY_DATA_WIDE,      /* log-uniform exponents */
    ASSAY_DATA_OUTLIER,   /* mostly small, a few huge */
    ASSAY_DATA_CANCEL,    /* neighbouring products cancel, a few do not */
    ASSAY_DATA_SUBNORMAL, /* of the operand format, and of f32 in the results */
    ASSAY_DATA_SPECIAL,   /* a few NaN, infinities and odd scales */
    ASSAY_DATA_TIES,      /* results lie half way between two output codes */
    ASSAY_DATA_POSITIVE,  /* truncation errors cannot cancel */
    ASSAY_DATA_EXACT,     /* sums never round: any order gives the same bits */
    ASSAY_DATA_RUNS,      /* runs of values in one of several pathological modes */
    ASSAY_DATA_ZERO,      /* nothing but zeros, and scales of 1 */
    ASSAY_DATA_NEEDLE,    /* one key beats all others: out is its V row */
    ASSAY_DATA_RECORDED,  /* inputs come from a recorded file */
    ASSAY_DATA_KIND_COUNT
};

/* The kinds below are of use for any operation; the others for those that name them. */
enum { ASSAY_GENERAL_DATA_KINDS = ASSAY_DATA_NEEDLE };

struct assay_data_kind_row {
    const char *name, *meaning;
};
/* Indexed by the enum; closed by a NULL name. */
extern const struct assay_data_kind_row assay_data_kinds[];

#endif
