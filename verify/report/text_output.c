/* SPDX-License-Identifier: MIT */
/* What the report for people shows of one output. */
#include "verify/report/text_print.h"

#include <inttypes.h>
#include <string.h>

enum { LISTED_DIFFERENCES = 10 };

static void print_bound_summary(FILE *file, const struct assay_output_result *output)
{
    if (output->bound_worst_index >= 0)
        fprintf(file, "; error/bound %.3g", output->max_error_over_bound);
    if (output->outside)
        fprintf(file, "; %" PRId64 " outside the bound", output->outside);
    if (output->unclaimed)
        fprintf(file, "; %" PRId64 " without a bound", output->unclaimed);
}

void assay_text_print_output_line(FILE *file, const struct assay_output_result *output)
{
    assay_text_print(file, output->name);
    if (output->defined == output->elements)
        fprintf(file, ": %" PRId64 " element%s", output->elements,
                assay_text_plural(output->elements));
    else
        fprintf(file, ": %" PRId64 " of %" PRId64 " element%s defined", output->defined,
                output->elements, assay_text_plural(output->elements));
    if (output->has_bits)
        fprintf(file, ", %" PRId64 " differ%s", output->differ,
                output->differ == 1 ? "s" : "");
    if (output->has_bound) print_bound_summary(file, output);
    if (output->has_exact && output->inexact)
        fprintf(file, "; %" PRId64 " not exact", output->inexact);
    else if (output->has_exact)
        fprintf(file, "; exact");
}

static void print_worst(FILE *file, const char *what, const char *reference,
                        const struct assay_output_result *output,
                        const struct assay_difference *worst)
{
    fprintf(file, "    worst %s at ", what);
    assay_text_print_at(file, &output->tensor, worst->index, &worst->place);
    assay_text_print_difference(file, reference, output->tensor.format, worst);
}

static void print_difference_table(FILE *file, const struct assay_output_result *output)
{
    const int listed = output->difference_count < LISTED_DIFFERENCES
                           ? output->difference_count
                           : LISTED_DIFFERENCES;
    int width = (int)strlen("index");
    for (int i = 0; i < listed; i++) {
        const int64_t element = output->difference[i].index;
        const int length = (int)strlen(assay_text_index(&output->tensor, element).text);
        if (length > width) width = length;
    }

    if (listed < output->differ)
        fprintf(file, "    the first %d of %" PRId64 " that differ:\n", listed,
                output->differ);
    else
        fprintf(file, "    all that differ:\n");
    fprintf(file, "      %-*s  candidate   reference   %-10s  place\n", width, "index",
            "ulp");
    for (int i = 0; i < listed; i++) {
        const struct assay_difference *const item = &output->difference[i];
        const enum assay_format format = output->tensor.format;
        fprintf(file, "      %-*s  %-10s  %-10s  %-10s  ", width,
                assay_text_index(&output->tensor, item->index).text,
                assay_report_bits(format, item->candidate).text,
                assay_report_bits(format, item->reference).text,
                assay_text_ulps(item->ulps).text);
        assay_text_print(file, item->place.text);
        fputc('\n', file);
    }
}

static void print_places(FILE *file, const struct assay_output_result *output)
{
    const struct assay_difference *const item = output->difference;
    int places = 0;

    for (int i = 0; i < output->difference_count; i++) {
        int earlier = 0;
        while (strcmp(item[earlier].place.text, item[i].place.text) != 0)
            earlier++;
        places += earlier == i;
    }
    if (places == 0 || !*item->place.text) return;

    const bool has_all = output->difference_count == output->differ;
    fprintf(file, "    where: ");
    if (has_all)
        fprintf(file, "all ");
    else
        fprintf(file, "the first %d ", output->difference_count);
    if (places > 1) {
        fprintf(file, "in %d different places\n", places);
        return;
    }
    fprintf(file, "in one place, ");
    assay_text_print(file, item->place.text);
    fputc('\n', file);
}

static void print_bound(FILE *file, const struct assay_output_result *output)
{
    const enum assay_format format = output->tensor.format;

    fprintf(file, "    worst error/bound %.3g at ", output->max_error_over_bound);
    assay_text_print_at(file, &output->tensor, output->bound_worst_index,
                        &output->bound_worst_place);
    assay_text_print_element(file, "candidate", format, output->bound_worst_bits);
    fprintf(file, "      %-9s  %-*s  %s\n", "oracle",
            2 + 2 * (int)assay_format_bytes(format), "",
            assay_text_value(output->bound_worst_value).text);
    fprintf(file, "      %-9s  %-*s  %s\n", "bound",
            2 + 2 * (int)assay_format_bytes(format), "",
            assay_text_value(output->bound_worst_bound).text);
}

void assay_text_print_output(FILE *file, const struct assay_output_result *output)
{
    fprintf(file, "  ");
    assay_text_print_output_line(file, output);
    fputc('\n', file);
    if (output->has_bits && output->differ > 0) {
        print_worst(file, "bits", "reference", output, &output->worst);
        print_difference_table(file, output);
        print_places(file, output);
    }
    const bool is_of_interest = output->differ > 0 || output->outside > 0;
    if (output->has_bound && output->bound_worst_index >= 0 && is_of_interest)
        print_bound(file, output);
    if (output->inexact > 0)
        print_worst(file, "inexact bits", "oracle", output, &output->inexact_worst);
}
