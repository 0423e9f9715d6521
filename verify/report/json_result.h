/* SPDX-License-Identifier: MIT */
/* A result as the json report writes it: everything that any report shows of it. */
#ifndef ASSAY_VERIFY_REPORT_JSON_RESULT_H
#define ASSAY_VERIFY_REPORT_JSON_RESULT_H

#include "verify/check/result.h"

#include <stdio.h>

/* Writes the case object {"type":"case",...}, a newline at its end and none inside, and
 * flushes: ASSAY_RAN or ASSAY_FAILED. */
enum assay_status assay_json_result_write(FILE *file, const struct assay_result *result);

#endif
