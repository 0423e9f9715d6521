/* SPDX-License-Identifier: MIT */
/* What a candidate printed, beside its finding. */
#include "verify/report/text_print.h"

#include <inttypes.h>
#include <string.h>

void assay_report_printed(FILE *file, const struct assay_result *result)
{
    const char *text = result->printed;
    const size_t shown = strlen(text);
    if (!shown) return;
    if ((uint64_t)result->printed_bytes > shown)
        fprintf(file, "  printed (the first %zu of %" PRId64 " bytes):\n", shown,
                result->printed_bytes);
    else
        fputs("  printed:\n", file);
    while (*text) {
        const char *const end = strchrnul(text, '\n');
        fputs("    | ", file);
        assay_text_print_to(file, text, end);
        fputc('\n', file);
        text = *end ? end + 1 : end;
    }
}
