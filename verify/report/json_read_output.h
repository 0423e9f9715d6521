/* SPDX-License-Identifier: MIT */
/* The parts of a case object that speak of elements: outputs and findings. */
#ifndef ASSAY_VERIFY_REPORT_JSON_READ_OUTPUT_H
#define ASSAY_VERIFY_REPORT_JSON_READ_OUTPUT_H

#include "verify/check/result.h"
#include "verify/report/json_get.h"

/* Memory for all strings of the line that is read. */
struct assay_json_texts {
    char *text;
    size_t used;
};
const char *assay_json_keep(struct assay_json_texts *texts, const char *text);

/* Output @number of the result, zeroed. */
void assay_json_read_output(struct assay_json_reader *reader, const json_t *object,
                            int number, struct assay_json_texts *texts,
                            struct assay_output_result *output);

/* The element that a finding shows, if it shows one. */
void assay_json_read_finding_element(struct assay_json_reader *reader,
                                     const json_t *object, struct assay_json_texts *texts,
                                     struct assay_finding *finding);

#endif
