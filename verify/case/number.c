/* SPDX-License-Identifier: MIT */
/* Strict decimal and hexadecimal numbers. */
#include "verify/case/number.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const char decimal_digits[] = "0123456789";
static const char hex_digits[] = "0123456789abcdefABCDEF";

enum { DECIMALS = 12 };
static const uint64_t units = 1000000000000; /* 10^DECIMALS */

static bool consists_of(const char *text, const char *legal)
{
    return *text && text[strspn(text, legal)] == '\0';
}

enum assay_number assay_number_unsigned(const char *text, uint64_t *value)
{
    if (!consists_of(text, decimal_digits)) return ASSAY_NUMBER_MALFORMED;
    if (text[0] == '0' && text[1]) return ASSAY_NUMBER_MALFORMED;

    uint64_t number = 0;
    for (; *text; text++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number))
            return ASSAY_NUMBER_TOO_LARGE;
    *value = number;
    return ASSAY_NUMBER_VALID;
}

enum assay_number assay_number_signed(const char *text, int64_t *value)
{
    const bool is_negative = text[0] == '-';
    uint64_t magnitude;
    const enum assay_number number =
        assay_number_unsigned(text + is_negative, &magnitude);
    if (number != ASSAY_NUMBER_VALID) return number;
    if (is_negative && magnitude == 0) return ASSAY_NUMBER_MALFORMED;
    if (magnitude > (uint64_t)INT64_MAX + is_negative) return ASSAY_NUMBER_TOO_LARGE;
    *value = is_negative ? -(int64_t)(magnitude - 1) - 1 : (int64_t)magnitude;
    return ASSAY_NUMBER_VALID;
}

/* The digits behind a point as 10^-12; the 13th decides about rounding. */
static enum assay_number parse_decimals(const char *text, uint64_t *value)
{
    if (!consists_of(text, decimal_digits)) return ASSAY_NUMBER_MALFORMED;
    const size_t digits = strlen(text);
    uint64_t number = 0;
    for (size_t i = 0; i < DECIMALS; i++)
        number = number * 10 + (i < digits ? (uint64_t)(text[i] - '0') : 0);
    *value = number + (digits > DECIMALS && text[DECIMALS] >= '5');
    return digits > DECIMALS ? ASSAY_NUMBER_TOO_PRECISE : ASSAY_NUMBER_VALID;
}

enum assay_number assay_number_fraction(const char *text, int64_t *value)
{
    const bool is_negative = text[0] == '-';
    char whole_text[sizeof("9223372")];
    const char *const digits = text + is_negative;
    const size_t whole_digits = strspn(digits, decimal_digits);
    const char *const rest = digits + whole_digits;
    uint64_t whole = 0, decimals = 0, magnitude;
    enum assay_number form = ASSAY_NUMBER_VALID;

    if (whole_digits == 0 || (digits[0] == '0' && whole_digits > 1))
        return ASSAY_NUMBER_MALFORMED;
    if (*rest)
        form =
            *rest == '.' ? parse_decimals(rest + 1, &decimals) : ASSAY_NUMBER_MALFORMED;
    if (form == ASSAY_NUMBER_MALFORMED) return form;
    if (whole_digits >= sizeof(whole_text)) return ASSAY_NUMBER_TOO_LARGE;
    memcpy(whole_text, digits, whole_digits);
    whole_text[whole_digits] = '\0';
    assay_number_unsigned(whole_text, &whole);
    magnitude = whole * units + decimals;
    if (magnitude > INT64_MAX) return ASSAY_NUMBER_TOO_LARGE;
    if (is_negative && magnitude == 0) return ASSAY_NUMBER_MALFORMED;
    *value = is_negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return form;
}

enum assay_number assay_number_hex(const char *text, int max_digits, uint64_t *value)
{
    if (!consists_of(text, hex_digits)) return ASSAY_NUMBER_MALFORMED;
    if (strlen(text) > (size_t)max_digits) return ASSAY_NUMBER_TOO_LARGE;

    uint64_t number = 0;
    for (; *text; text++) {
        const ptrdiff_t place = strchr(hex_digits, *text) - hex_digits;
        number = number << 4 | (uint64_t)(place < 16 ? place : place - 6);
    }
    *value = number;
    return ASSAY_NUMBER_VALID;
}
