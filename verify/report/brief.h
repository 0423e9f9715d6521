/* SPDX-License-Identifier: MIT */
/* What a run has to remember of a result that is no failure: a line of about 100 bytes
 * where the whole result has thousands. */
#ifndef ASSAY_VERIFY_REPORT_BRIEF_H
#define ASSAY_VERIFY_REPORT_BRIEF_H

#include "verify/check/result.h"

struct assay_brief {
    enum assay_status status;
    enum assay_verdict verdict;
    bool has_passed, is_decisive;
    int64_t compared, equal; /* elements, bit for bit */
    double max_error_over_bound;
    char note[ASSAY_MAX_NOTE];
};

struct assay_brief assay_brief_of(const struct assay_result *result);

/* Whether nobody will ask for more: the result passed, is unsupported, or proves nothing
 * without being wrong. */
bool assay_brief_is_enough(const struct assay_result *result);

/* One line of JSON, {"type":"brief",...}, without a newline; the caller frees it. NULL:
 * no memory. */
char *assay_brief_line(const struct assay_brief *brief);

/* Reads such a line back. *@is_brief is false for a line of another type, which is left
 * to others: ASSAY_RAN. ASSAY_REFUSED with what is wrong in the line. */
enum assay_status assay_brief_read(const char *line, struct assay_brief *brief,
                                   bool *is_brief, struct assay_message *message);

#endif
