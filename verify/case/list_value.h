/* SPDX-License-Identifier: MIT */
/* Values of list keys, "0,1,64", to and from text. */
#ifndef ASSAY_VERIFY_CASE_LIST_VALUE_H
#define ASSAY_VERIFY_CASE_LIST_VALUE_H

#include "verify/case/case.h"
#include "verify/case/text.h"

/* Refuses what is no list of integers in range, and lists there is no room for. */
enum assay_status assay_list_value_parse(const struct assay_parameter *parameter,
                                         const char *text, struct assay_case *the_case,
                                         struct assay_message *message);

void assay_list_value_format(const struct assay_case *the_case,
                             const struct assay_parameter *parameter,
                             struct assay_text *text);

#endif
