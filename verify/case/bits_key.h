/* SPDX-License-Identifier: MIT */
/* The value of bits=: explicit elements, "a.0.3:7f,sfa.0.0:3f800000". Whether tensor and
 * element exist is known only when the case is bound. */
#ifndef ASSAY_VERIFY_CASE_BITS_KEY_H
#define ASSAY_VERIFY_CASE_BITS_KEY_H

#include "verify/case/case.h"
#include "verify/case/text.h"

/* Refuses malformed elements, too many of them, and an element named twice. */
enum assay_status assay_bits_key_parse(const char *value, struct assay_case *the_case,
                                       struct assay_message *message);

void assay_bits_key_format(const struct assay_case *the_case, struct assay_text *text);

#endif
