/* SPDX-License-Identifier: MIT */
/* What `assay identify` found, for people and for machines. */
#ifndef ASSAY_VERIFY_COMMAND_IDENTIFY_OUTPUT_H
#define ASSAY_VERIFY_COMMAND_IDENTIFY_OUTPUT_H

#include "verify/command/report_file.h"
#include "verify/identify/knob_answer.h"

/* One case; as JSON {"type":"case","case","source","status","identified","sentence",
 * "settings":[...],"nearest":[...],"parts","elements","tried","cut_short",
 * "further_cases","further_run","message","seconds"}, with settings as {"numerics",
 * "turned","parts","equal","elements"}. What does not apply is absent. */
struct assay_identification {
    const char *case_line, *source; /* source: the recorded file, or "" */
    enum assay_status status;
    const char *message;                    /* when status is not ASSAY_RAN */
    const struct assay_knob_answer *answer; /* when it is */
    double seconds;
};

struct assay_identify_output {
    bool has_text; /* to stdout */
    struct assay_report_file json;
};

/* @json_path: NULL for none, "-" to replace the text. */
enum assay_status assay_identify_output_open(struct assay_identify_output *output,
                                             const char *json_path, const char *candidate,
                                             struct assay_message *message);
enum assay_status
assay_identify_output_add(struct assay_identify_output *output,
                          const struct assay_identification *identification,
                          struct assay_message *message);
enum assay_status assay_identify_output_end(struct assay_identify_output *output,
                                            const struct assay_summary *summary,
                                            struct assay_message *message);
void assay_identify_output_close(struct assay_identify_output *output);

#endif
