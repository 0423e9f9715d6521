/* SPDX-License-Identifier: MIT */
/* The registry of reports, and how an element reads in all of them. */
#include "verify/report/report.h"

#include "ref/format/minifloat.h"

#include <inttypes.h>
#include <string.h>

const struct assay_report *const assay_reports[] = {
    &assay_report_text,
    &assay_report_json,
    &assay_report_junit,
    NULL,
};

const struct assay_report *assay_report_find(const char *name)
{
    for (const struct assay_report *const *report = assay_reports; *report; report++)
        if (strcmp((*report)->name, name) == 0) return *report;
    return NULL;
}

size_t assay_report_character(const char *text)
{
    /* Below U+00A0 lie the C1 control characters; overlong forms are refused alike. */
    static const uint32_t minimum[] = { 0, 0, 0xa0, 0x800, 0x10000 };
    const unsigned char *const byte = (const unsigned char *)text;

    if (byte[0] >= 0x20 && byte[0] < 0x7f) return 1;
    if (byte[0] < 0xc0 || byte[0] >= 0xf8) return 0;
    const size_t length = byte[0] >= 0xf0 ? 4 : byte[0] >= 0xe0 ? 3 : 2;
    uint32_t code = byte[0] & (0x7fU >> length);
    for (size_t i = 1; i < length; i++) {
        if ((byte[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (byte[i] & 0x3fU);
    }
    const bool is_surrogate = code >= 0xd800 && code < 0xe000;
    return code < minimum[length] || code > 0x10ffff || is_surrogate ? 0 : length;
}

bool assay_report_is_printable(const char *text)
{
    size_t length;
    while ((length = assay_report_character(text)))
        text += length;
    return *text == '\0';
}

void assay_report_index(const struct assay_tensor *tensor, int64_t element,
                        int64_t index[ASSAY_MAX_RANK])
{
    for (int i = tensor->rank - 1; i >= 0; i--) {
        index[i] = element % tensor->shape[i];
        element /= tensor->shape[i];
    }
}

struct assay_bits_text assay_report_bits(enum assay_format format, uint32_t bits)
{
    struct assay_bits_text bits_text;
    snprintf(bits_text.text, sizeof bits_text.text, "0x%0*" PRIx32,
             2 * (int)assay_format_bytes(format), bits);
    return bits_text;
}

double assay_report_value(enum assay_format format, uint32_t bits)
{
    if (format == ASSAY_I32) return (int32_t)bits;
    if (format == ASSAY_TF32) format = ASSAY_F32; /* as it is stored */
    const struct assay_minifloat *const minifloat = assay_minifloat(format);
    return minifloat ? assay_minifloat_decode(minifloat, bits) : bits;
}
