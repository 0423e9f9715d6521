/* SPDX-License-Identifier: MIT */
/* Failures of a campaign, those of one signature together. */
#ifndef ASSAY_FUZZ_CAMPAIGN_FINDING_H
#define ASSAY_FUZZ_CAMPAIGN_FINDING_H

#include "fuzz/campaign/negative.h"
#include "fuzz/shrink/signature.h"

enum { ASSAY_MAX_CAMPAIGN_FINDINGS = 4096 };

struct assay_campaign_finding {
    struct assay_signature signature;
    int64_t number, cases; /* the first case, and how many there are */
    char *line;            /* of the first */
    bool is_negative;      /* what is illegal was accepted */
};

struct assay_campaign_findings { /* zeros: none */
    struct assay_campaign_finding *item;
    uint64_t *hash; /* of the signatures */
    int64_t count;
    int64_t cases;   /* that failed */
    int64_t dropped; /* of them, whose signatures have no room any more */
};

/* Adds a failure; to be called in the order of the numbers. @negative: the row of the
 * illegal case that was accepted, else NULL. *@is_new: it is the first of its
 * signature. */
enum assay_status assay_campaign_findings_add(struct assay_campaign_findings *findings,
                                              int64_t number,
                                              const struct assay_negative *negative,
                                              const struct assay_result *result,
                                              bool *is_new,
                                              struct assay_message *message);

void assay_campaign_findings_close(struct assay_campaign_findings *findings);

#endif
