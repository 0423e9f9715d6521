/* SPDX-License-Identifier: MIT */
/* The pieces from which the report for people is put together. */
#ifndef ASSAY_VERIFY_REPORT_TEXT_PRINT_H
#define ASSAY_VERIFY_REPORT_TEXT_PRINT_H

#include "verify/report/report.h"

/* The name's plural but for one: "1 element", "2 elements". */
const char *assay_text_plural(int64_t count);

/* Writes the text, '?' for what isn't printable; the second, up to @end. */
void assay_text_print(FILE *file, const char *text);
void assay_text_print_to(FILE *file, const char *text, const char *end);

struct assay_index_text { /* "[2, 17]" */
    char text[128];
};
struct assay_index_text assay_text_index(const struct assay_tensor *tensor,
                                         int64_t element);

struct assay_value_text { /* "1.25", "NaN" */
    char text[32];
};
struct assay_value_text assay_text_value(double value);
struct assay_value_text assay_text_ulps(uint64_t ulps);

/* "[2, 17], tile 0,0" and the end of the line. */
void assay_text_print_at(FILE *file, const struct assay_tensor *tensor, int64_t element,
                         const struct assay_place *place);

/* A line "      candidate  0x3fa0  1.25". */
void assay_text_print_element(FILE *file, const char *role, enum assay_format format,
                              uint32_t bits);

/* Three lines: the candidate's element, the one beside it, and how far apart they are. */
void assay_text_print_difference(FILE *file, const char *reference,
                                 enum assay_format format,
                                 const struct assay_difference *difference);

/* "d: 24576 elements, 0 differ; error/bound 0.41" */
void assay_text_print_output_line(FILE *file, const struct assay_output_result *output);

/* That line and below it what differs, where and by how much. */
void assay_text_print_output(FILE *file, const struct assay_output_result *output);

/* A paragraph each finding, those that are failures first. Where the element holds what
 * it should (and nobody wrote it), it stands alone. */
void assay_text_print_findings(FILE *file, const struct assay_result *result);

/* "; note: check repeat: ..." for each finding that is none. */
void assay_text_print_notes(FILE *file, const struct assay_result *result);

#endif
