/* SPDX-License-Identifier: MIT */
/* Names of statuses, and sentences made safe to print. */
#include "verify/case/message.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const status_names[ASSAY_STATUS_COUNT] = {
    [ASSAY_RAN] = "ran",
    [ASSAY_UNSUPPORTED] = "unsupported",
    [ASSAY_REFUSED] = "refused",
    [ASSAY_CRASHED] = "crashed",
    [ASSAY_HUNG] = "hung",
    [ASSAY_OUT_OF_MEMORY] = "out of memory",
    [ASSAY_DEVICE_LOST] = "device lost",
    [ASSAY_FAILED] = "failed",
};

const char *assay_status_name(enum assay_status status)
{
    assert(status < ASSAY_STATUS_COUNT);
    return status_names[status];
}

static bool is_continuation(unsigned char byte)
{
    return (byte & 0xC0) == 0x80;
}

/* Bytes of the printable character at @s, 0 if there is none: a control character, or not
 * the shortest UTF-8 form of a scalar value (RFC 3629). */
static size_t printable_bytes(const unsigned char *s)
{
    if (s[0] < 0x80) return s[0] >= 0x20 && s[0] != 0x7F;
    const size_t bytes = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    unsigned long code = s[0] & (0x7FU >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if (!is_continuation(s[i])) return 0;
        code = code << 6 | (s[i] & 0x3FU);
    }
    /* U+0080 to U+009F are control characters as well. */
    static const unsigned long smallest[5] = { 0, 0, 0xA0, 0x800, 0x10000 };
    const bool is_lead = s[0] >= 0xC2 && s[0] <= 0xF4;
    const bool is_scalar = code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
    return is_lead && is_scalar && code >= smallest[bytes] ? bytes : 0;
}

static void replace_unprintable(char *text)
{
    for (char *s = text; *s;) {
        const size_t bytes = printable_bytes((const unsigned char *)s);
        if (bytes == 0) *s = '?';
        s += bytes ? bytes : 1;
    }
}

enum assay_status assay_fail(struct assay_message *message, enum assay_status status,
                             const char *format, ...)
{
    struct assay_message sentence;
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(sentence.text, sizeof(sentence.text), format, arguments);
    va_end(arguments);
    assert(length >= 0);

    replace_unprintable(sentence.text);
    if ((size_t)length >= sizeof(sentence.text)) {
        size_t end = sizeof(sentence.text) - sizeof("...");
        while (is_continuation((unsigned char)sentence.text[end]))
            end--;
        memcpy(sentence.text + end, "...", sizeof("..."));
    }
    *message = sentence;
    return status;
}
