/* SPDX-License-Identifier: MIT */
/* What a candidate printed, beside its finding. */
#include "verify/report/report.h"

#include <inttypes.h>
#include <string.h>

static void print_line(FILE *file, const char *text, const char *end)
{
    fputs("    | ", file);
    while (text < end) {
        const size_t length = assay_report_character(text);
        if (length)
            fwrite(text, 1, length, file);
        else
            fputc('?', file);
        text += length ? length : 1;
    }
    fputc('\n', file);
}

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
        print_line(file, text, end);
        text = *end ? end + 1 : end;
    }
}
