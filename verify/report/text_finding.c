/* SPDX-License-Identifier: MIT */
/* What the report for people shows of the runs that checks made. */
#include "verify/report/text_print.h"

#include <inttypes.h>

static void print_place(FILE *file, const struct assay_finding *finding)
{
    fprintf(file, "    ");
    if (finding->elements > 1)
        fprintf(file, "the first of %" PRId64 " elements, ", finding->elements);
    assay_text_print(file, finding->output);
    fprintf(file, " at ");
    assay_text_print_at(file, &finding->tensor, finding->worst.index,
                        &finding->worst.place);
}

static void print_finding(FILE *file, const struct assay_finding *finding)
{
    fprintf(file, "  %scheck %s: ", finding->is_failure ? "" : "note: ", finding->check);
    assay_text_print(file, finding->sentence);
    fputc('\n', file);
    if (!finding->output) return;
    print_place(file, finding);
    const enum assay_format format = finding->tensor.format;
    const struct assay_difference *const worst = &finding->worst;
    if (worst->candidate == worst->reference)
        assay_text_print_element(file, "candidate", format, worst->candidate);
    else
        assay_text_print_difference(file, "expected", format, worst);
}

void assay_text_print_findings(FILE *file, const struct assay_result *result)
{
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < result->finding_count; i++)
            if (result->finding[i].is_failure == (pass == 0))
                print_finding(file, &result->finding[i]);
}

void assay_text_print_notes(FILE *file, const struct assay_result *result)
{
    for (int i = 0; i < result->finding_count; i++) {
        const struct assay_finding *const finding = &result->finding[i];
        if (finding->is_failure) continue;
        fprintf(file, "; note: check %s: ", finding->check);
        assay_text_print(file, finding->sentence);
    }
}
