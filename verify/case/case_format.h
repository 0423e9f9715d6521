/* SPDX-License-Identifier: MIT */
/* The canonical line of a case, whatever its length: the parser asks whether it fits. */
#ifndef ASSAY_VERIFY_CASE_CASE_FORMAT_H
#define ASSAY_VERIFY_CASE_CASE_FORMAT_H

#include "verify/case/case.h"
#include "verify/case/text.h"

void assay_case_add_line(const struct assay_case *the_case, struct assay_text *text);

#endif
