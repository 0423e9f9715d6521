/* SPDX-License-Identifier: MIT */
/* Numbers that options take. ASSAY_REFUSED with a sentence that names the option. */
#ifndef ASSAY_VERIFY_COMMAND_NUMBER_OPTION_H
#define ASSAY_VERIFY_COMMAND_NUMBER_OPTION_H

#include "verify/case/message.h"

#include <stdint.h>

/* A whole number from @least to @most. @option: "--cases". */
enum assay_status assay_option_count(const char *option, const char *text, uint64_t least,
                                     uint64_t most, uint64_t *count,
                                     struct assay_message *message);

/* Seconds above 0, in decimal. */
enum assay_status assay_option_seconds(const char *option, const char *text,
                                       double *seconds, struct assay_message *message);

#endif
