/* SPDX-License-Identifier: MIT */
#include "verify/report/text_print.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *assay_text_plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

void assay_text_print(FILE *file, const char *text)
{
    assay_text_print_to(file, text, text + strlen(text));
}

void assay_text_print_to(FILE *file, const char *text, const char *end)
{
    while (text < end) {
        const size_t length = assay_report_character(text);
        if (length)
            fwrite(text, 1, length, file);
        else
            fputc('?', file);
        text += length ? length : 1;
    }
}

struct assay_index_text assay_text_index(const struct assay_tensor *tensor,
                                         int64_t element)
{
    struct assay_index_text text = { "[" };
    int64_t index[ASSAY_MAX_RANK];
    int used = 1;

    assay_report_index(tensor, element, index);
    for (int i = 0; i < tensor->rank; i++)
        used += snprintf(text.text + used, sizeof text.text - (size_t)used, "%s%" PRId64,
                         i ? ", " : "", index[i]);
    snprintf(text.text + used, sizeof text.text - (size_t)used, "]");
    return text;
}

struct assay_value_text assay_text_value(double value)
{
    struct assay_value_text text = { "NaN" };
    if (!isnan(value)) snprintf(text.text, sizeof text.text, "%.10g", value);
    return text;
}

struct assay_value_text assay_text_ulps(uint64_t ulps)
{
    struct assay_value_text text = { "NaN" };
    if (ulps != UINT64_MAX) snprintf(text.text, sizeof text.text, "%" PRIu64, ulps);
    return text;
}

void assay_text_print_at(FILE *file, const struct assay_tensor *tensor, int64_t element,
                         const struct assay_place *place)
{
    fprintf(file, "%s%s", assay_text_index(tensor, element).text,
            *place->text ? ", " : "");
    assay_text_print(file, place->text);
    fputc('\n', file);
}

void assay_text_print_element(FILE *file, const char *role, enum assay_format format,
                              uint32_t bits)
{
    fprintf(file, "      %-9s  %s  %s\n", role, assay_report_bits(format, bits).text,
            assay_text_value(assay_report_value(format, bits)).text);
}

void assay_text_print_difference(FILE *file, const char *reference,
                                 enum assay_format format,
                                 const struct assay_difference *difference)
{
    assay_text_print_element(file, "candidate", format, difference->candidate);
    assay_text_print_element(file, reference, format, difference->reference);
    if (difference->ulps == UINT64_MAX)
        fprintf(file, "      distance   none: one of them is NaN\n");
    else
        fprintf(file, "      distance   %" PRIu64 " unit%s in the last place\n",
                difference->ulps, assay_text_plural((int64_t)difference->ulps));
}
