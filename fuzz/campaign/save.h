/* SPDX-License-Identifier: MIT */
/* Findings kept as a suite: for each a comment with its signature, then the case. */
#ifndef ASSAY_FUZZ_CAMPAIGN_SAVE_H
#define ASSAY_FUZZ_CAMPAIGN_SAVE_H

#include "verify/case/message.h"

#include <stdbool.h>

/* Whether the suite at @path has the signature's comment; false where there is no such
 * file. */
enum assay_status assay_save_has(const char *path, const char *signature, bool *has,
                                 struct assay_message *message);

/* Appends comment and case unless either is there already. The file is replaced as a
 * whole by one written beside it; others that save to it at the same time wait. */
enum assay_status assay_save_case(const char *path, const char *signature,
                                  const char *line, struct assay_message *message);

#endif
