/* SPDX-License-Identifier: MIT */
/* Strict numbers: one spelling a value, no locale, overflow noticed. */
#ifndef ASSAY_VERIFY_CASE_NUMBER_H
#define ASSAY_VERIFY_CASE_NUMBER_H

#include <stdint.h>

enum assay_number {
    ASSAY_NUMBER_VALID,
    ASSAY_NUMBER_MALFORMED,
    ASSAY_NUMBER_TOO_LARGE,   /* well formed, but beyond the type */
    ASSAY_NUMBER_TOO_PRECISE, /* well formed, but between two values */
};

/* Digits only, without leading zeros. */
enum assay_number assay_number_unsigned(const char *text, uint64_t *value);

/* The same after an optional '-'; "-0" is malformed. */
enum assay_number assay_number_signed(const char *text, int64_t *value);

/* Digits and, after a point, up to 12 more, in units of 10^-12: "0.2", "1", "0.50". The
 * digits before the point have no leading zeros; a '-' only before what is not zero. More
 * decimals are too precise, @value then the nearest (ties away from zero). */
enum assay_number assay_number_fraction(const char *text, int64_t *value);

/* One to @max_digits (at most 16) hexadecimal digits of either case, without prefix. More
 * digits are too large, leading zeros or not. */
enum assay_number assay_number_hex(const char *text, int max_digits, uint64_t *value);

#endif
