/* SPDX-License-Identifier: MIT */
/* Which share of a campaign's numbers this run has: those that leave @index when divided
 * by @count, in order. */
#ifndef ASSAY_FUZZ_CAMPAIGN_SHARD_H
#define ASSAY_FUZZ_CAMPAIGN_SHARD_H

#include "verify/case/message.h"

#include <stdint.h>

struct assay_shard {
    int64_t index, count; /* 0 <= index < count */
};

/* From "I/N"; NULL: from TEST_SHARD_INDEX and TEST_TOTAL_SHARDS where those are set, else
 * from SLURM_ARRAY_TASK_ID, _COUNT, _MIN and _STEP, else the whole campaign. */
enum assay_status assay_shard_find(const char *text, struct assay_shard *shard,
                                   struct assay_message *message);

/* "I/N" alone. */
enum assay_status assay_shard_parse(const char *text, struct assay_shard *shard,
                                    struct assay_message *message);

/* Tells who set TEST_SHARD_STATUS_FILE that its sharding was understood. */
enum assay_status assay_shard_acknowledge(struct assay_message *message);

/* The campaign's number of the shard's case @local, and how many of the first @cases
 * numbers the shard has. */
int64_t assay_shard_number(struct assay_shard shard, int64_t local);
int64_t assay_shard_cases(struct assay_shard shard, int64_t cases);

#endif
