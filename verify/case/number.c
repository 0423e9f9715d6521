/* SPDX-License-Identifier: MIT */
/* Strict decimal and hexadecimal numbers. */
#include "verify/case/number.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const char hex_digits[] = "0123456789abcdefABCDEF";

static bool consists_of(const char *text, const char *legal)
{
    return *text && text[strspn(text, legal)] == '\0';
}

enum assay_number assay_number_unsigned(const char *text, uint64_t *value)
{
    if (!consists_of(text, "0123456789")) return ASSAY_NUMBER_MALFORMED;
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
