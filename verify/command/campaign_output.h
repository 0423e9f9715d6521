/* SPDX-License-Identifier: MIT */
/* The report of a campaign: text on standard output, or JSON Lines.
 *
 * --json FILE: the header of every json report; {"type":"campaign"}, its settings; a
 * {"type":"coverage"} for each operation, a {"type":"finding"} for each signature of a
 * failure in the order of their first cases; {"type":"tally"}, what only campaigns count,
 * "seconds" and "rate" where cases were run now; {"type":"summary"} as of all reports.
 * All but those two is a function of the set of finished cases. */
#ifndef ASSAY_VERIFY_COMMAND_CAMPAIGN_OUTPUT_H
#define ASSAY_VERIFY_COMMAND_CAMPAIGN_OUTPUT_H

#include "fuzz/campaign/tally.h"
#include "verify/command/campaign_settings.h"
#include "verify/command/report_file.h"

struct assay_campaign_output {
    bool has_text;
    struct assay_report_file json;
};

/* @json_path: NULL for none, "-" replaces the text. To be closed whatever the status. */
enum assay_status assay_campaign_output_open(struct assay_campaign_output *output,
                                             const struct assay_campaign_settings *,
                                             const char *json_path,
                                             struct assay_message *message);

/* @ran: cases that were run in @seconds now; 0 where none were. The tally's summary gets
 * its exit code. */
enum assay_status assay_campaign_output_end(struct assay_campaign_output *output,
                                            const struct assay_campaign_settings *,
                                            struct assay_campaign_tally *tally,
                                            int64_t ran, double seconds,
                                            struct assay_message *message);

void assay_campaign_output_close(struct assay_campaign_output *output);

#endif
