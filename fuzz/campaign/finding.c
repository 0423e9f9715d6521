/* SPDX-License-Identifier: MIT */
#include "fuzz/campaign/finding.h"

#include "verify/case/text.h"
#include "verify/data/buffers.h"

#include <stdlib.h>
#include <string.h>

static struct assay_signature signature_of(const struct assay_negative *negative,
                                           const struct assay_result *result)
{
    if (!negative || result->status != ASSAY_RAN) return assay_signature_of(result);
    struct assay_signature signature;
    struct assay_text text = assay_text_open(signature.text, sizeof(signature.text));
    assay_text_add(&text, "%s accepted what is illegal: %s", negative->operation,
                   negative->why);
    return signature;
}

static bool grow(struct assay_campaign_findings *findings)
{
    const int64_t count = findings->count;
    if (count & (count - 1) || (count > 0 && count < 16)) return true;
    const size_t room = count ? 2 * (size_t)count : 16;
    void *const items = realloc(findings->item, room * sizeof(*findings->item));
    if (items) findings->item = items;
    void *const hashes = realloc(findings->hash, room * sizeof(*findings->hash));
    if (hashes) findings->hash = hashes;
    return items && hashes;
}

enum assay_status assay_campaign_findings_add(struct assay_campaign_findings *findings,
                                              int64_t number,
                                              const struct assay_negative *negative,
                                              const struct assay_result *result,
                                              bool *is_new, struct assay_message *message)
{
    const struct assay_signature signature = signature_of(negative, result);
    const uint64_t hash = assay_text_hash(signature.text);
    int64_t at = 0;
    findings->cases++;
    while (at < findings->count &&
           (findings->hash[at] != hash ||
            strcmp(findings->item[at].signature.text, signature.text) != 0))
        at++;
    *is_new = at == findings->count && at < ASSAY_MAX_CAMPAIGN_FINDINGS;
    if (at < findings->count)
        findings->item[at].cases++;
    else if (!*is_new)
        findings->dropped++;
    if (!*is_new) return ASSAY_RAN;
    char *const line = strdup(result->case_line);
    if (!line || !grow(findings)) {
        free(line);
        return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a finding");
    }
    findings->hash[at] = hash;
    findings->item[at] = (struct assay_campaign_finding){
        .signature = signature,
        .number = number,
        .cases = 1,
        .line = line,
        .is_negative = negative != NULL,
    };
    findings->count++;
    return ASSAY_RAN;
}

void assay_campaign_findings_close(struct assay_campaign_findings *findings)
{
    for (int64_t i = 0; i < findings->count; i++)
        free(findings->item[i].line);
    free(findings->item);
    free(findings->hash);
    *findings = (struct assay_campaign_findings){ .count = 0 };
}
