/* SPDX-License-Identifier: MIT */
/* What two failures of a campaign have in common: one line that does not change with the
 * seed. */
#ifndef ASSAY_FUZZ_SHRINK_SIGNATURE_H
#define ASSAY_FUZZ_SHRINK_SIGNATURE_H

#include "verify/check/result.h"

#include <stdbool.h>

/* "fp8_gemm_nt outside by bitwise, bound: d[some,last] NaN": operation, verdict, the
 * checks that failed, the outputs at fault with the places of their wrong elements in
 * each dimension (first, last, some or all of it; no more than "some" is said where the
 * result does not hold all differences), whether NaN is among them, and the numerics that
 * explain the bits. "fp8_gemm_nt crashed: SIGSEGV": operation, status and ending. */
struct assay_signature {
    char text[320];
};
struct assay_signature assay_signature_of(const struct assay_result *result);

/* Whether the candidate failed: it did not run to its end, or below the required verdict.
 * A case that proves nothing, is refused or unsupported is no failure. */
bool assay_result_is_failure(const struct assay_result *result);

/* Bit i: row i of assay_checks failed. */
uint32_t assay_result_failed_checks(const struct assay_result *result);

/* Whether @smaller, of a case that was made from the other's, fails in the same way, the
 * places aside, which change with the shape: the same status and ending, or the same
 * verdict by checks and in outputs that are among those of @original, with NaN if that
 * has NaN. */
bool assay_signature_is_like(const struct assay_result *smaller,
                             const struct assay_result *original);

#endif
