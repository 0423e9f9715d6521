/* SPDX-License-Identifier: MIT */
/* What makes a campaign the one it is, as its journal keeps it: written by `assay fuzz`,
 * read by `assay merge`. */
#ifndef ASSAY_VERIFY_COMMAND_CAMPAIGN_SETTINGS_H
#define ASSAY_VERIFY_COMMAND_CAMPAIGN_SETTINGS_H

#include "fuzz/campaign/campaign.h"
#include "fuzz/campaign/shard.h"
#include "verify/command/run_options.h"
#include "verify/run/journal_copy.h"

struct assay_campaign_settings {
    struct assay_campaign campaign;
    int64_t cases;          /* of all shards; 0: no count was asked for */
    const char *candidate;  /* as it was given; NULL: model */
    const char *repetition; /* the options that repeat a case, " --candidate ..." */
};

/* Operations from a list with commas between; NULL: all. */
enum assay_status assay_campaign_select(struct assay_campaign *campaign, const char *list,
                                        struct assay_message *message);

/* Adds them to those of the run. False: no memory. */
bool assay_campaign_settings_add(struct assay_run_settings *run,
                                 const struct assay_campaign_settings *settings,
                                 struct assay_shard shard);

/* From a journal; texts belong to that. ASSAY_REFUSED when it is no campaign of this
 * version. */
enum assay_status assay_campaign_settings_read(const struct assay_journal_copy *copy,
                                               struct assay_campaign_settings *settings,
                                               struct assay_message *message);

#endif
