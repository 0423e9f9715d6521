/* SPDX-License-Identifier: MIT */
/* The shards of a campaign put together again. */
#ifndef ASSAY_FUZZ_CAMPAIGN_MERGE_H
#define ASSAY_FUZZ_CAMPAIGN_MERGE_H

#include "fuzz/campaign/shard.h"
#include "fuzz/campaign/tally.h"
#include "verify/run/journal_copy.h"

/* Settings of a campaign's journal that its shards need not share, or that count. */
#define ASSAY_SETTING_SHARD "--shard"
#define ASSAY_SETTING_CASES "--cases"

struct assay_merge {
    int64_t count;                     /* of shards, in their order */
    struct assay_journal_copy **shard; /* the settings of all but --shard are the same */
};

/* Reads the journals in @folders: of a campaign, of shards, or in folders shard-*-of-*
 * below. Refuses, in a sentence that says what is missing, unless they are all shards of
 * one campaign, each finished: all its cases are, or, where no count was asked for, all
 * that it began. To be closed whatever the status. */
enum assay_status assay_merge_open(char *const *folders, int count,
                                   struct assay_merge *merge,
                                   struct assay_message *message);

/* Hands all results to the tally, in the order of the campaign's numbers. */
enum assay_status assay_merge_take(const struct assay_merge *merge,
                                   struct assay_campaign_tally *tally,
                                   struct assay_message *message);

void assay_merge_close(struct assay_merge *merge);

#endif
