/* SPDX-License-Identifier: MIT */
/* How an element of the candidate differs from what it should be. */
#ifndef ASSAY_VERIFY_CHECK_DIFFERENCE_H
#define ASSAY_VERIFY_CHECK_DIFFERENCE_H

#include "verify/check/trial.h"

/* Steps between two codes on the number line, both zeros at one place; UINT64_MAX for
 * NaN. Integers, which have no codec, count as unsigned. */
uint64_t assay_ulps_between(enum assay_format format, uint32_t a, uint32_t b);

/* The candidate's element beside the bits @reference. */
struct assay_difference assay_difference_at(const struct assay_trial *trial, int output,
                                            int64_t element, uint32_t reference);

#endif
