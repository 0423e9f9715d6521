/* SPDX-License-Identifier: MIT */
/* A case object of a json report back into the result that it was written from. */
#ifndef ASSAY_VERIFY_REPORT_JSON_READ_H
#define ASSAY_VERIFY_REPORT_JSON_READ_H

#include "verify/check/result.h"

/* Reads what assay_json_result_write wrote (a newline at the end may be there): every
 * report of @result, to be closed whatever the status, is then that of the original, byte
 * for byte. Members that it does not know are ignored, since fields are only ever added.
 * ASSAY_RAN, ASSAY_REFUSED with what is wrong in @line, or ASSAY_OUT_OF_MEMORY. */
enum assay_status assay_json_result_read(const char *line, struct assay_result *result,
                                         struct assay_message *message);

#endif
