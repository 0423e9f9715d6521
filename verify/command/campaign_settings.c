/* SPDX-License-Identifier: MIT */
#include "verify/command/campaign_settings.h"

#include "fuzz/campaign/merge.h"
#include "verify/case/number.h"
#include "verify/case/text.h"
#include "verify/data/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LIST = 4096 };

static enum assay_status add_operation(struct assay_campaign *campaign, const char *name,
                                       struct assay_message *message)
{
    const struct assay_operation *const operation = assay_operation_find(name);
    const char *names[ASSAY_CAMPAIGN_MAX_OPERATIONS + 1] = { NULL };
    for (int i = 0; assay_operations[i] && i < ASSAY_CAMPAIGN_MAX_OPERATIONS; i++)
        names[i] = assay_operations[i]->name;
    const char *const nearest = operation ? NULL : assay_nearest(name, names);
    if (!operation)
        return assay_fail(message, ASSAY_REFUSED,
                          "--op names '%s', which is no operation; %s%s%s",
                          assay_excerpt(name).text,
                          nearest ? "did you mean '" : "see `assay list operations`",
                          nearest ? nearest : "", nearest ? "'?" : "");
    for (int i = 0; i < campaign->operations; i++)
        if (campaign->operation[i] == operation)
            return assay_fail(message, ASSAY_REFUSED,
                              "--op names %s twice; name each operation once", name);
    campaign->operation[campaign->operations++] = operation;
    return ASSAY_RAN;
}

enum assay_status assay_campaign_select(struct assay_campaign *campaign, const char *list,
                                        struct assay_message *message)
{
    char copy[MAX_LIST], *rest = copy;
    enum assay_status status = ASSAY_RAN;
    campaign->operations = 0;
    if (!list)
        for (int i = 0; assay_operations[i] && status == ASSAY_RAN; i++)
            status = add_operation(campaign, assay_operations[i]->name, message);
    if (!list) return status;
    if (strlen(list) >= sizeof(copy))
        return assay_fail(message, ASSAY_REFUSED, "--op is too long; name operations");
    memcpy(copy, list, strlen(list) + 1);
    for (char *word; status == ASSAY_RAN && (word = strsep(&rest, ","));)
        status = add_operation(campaign, word, message);
    return status;
}

static bool add_operations(struct assay_run_settings *run,
                           const struct assay_campaign *campaign)
{
    char text[MAX_LIST];
    struct assay_text list = assay_text_open(text, sizeof(text));
    for (int i = 0; i < campaign->operations; i++)
        assay_text_add(&list, "%s%s", i ? "," : "", campaign->operation[i]->name);
    return assay_run_settings_add(run, "--op", "%s", text);
}

bool assay_campaign_settings_add(struct assay_run_settings *run,
                                 const struct assay_campaign_settings *settings,
                                 struct assay_shard shard)
{
    const struct assay_campaign *const campaign = &settings->campaign;
    return add_operations(run, campaign) &&
           assay_run_settings_add(run, "generator", "%d", ASSAY_CAMPAIGN_VERSION) &&
           assay_run_settings_add(run, "--seed", "%" PRIu64, campaign->seed) &&
           assay_run_settings_add(run, "--cost", "%.0f", campaign->multiply_adds) &&
           assay_run_settings_add(run, "--shape-pool", "%" PRId64,
                                  campaign->shape_pool) &&
           (settings->cases
                ? assay_run_settings_add(run, ASSAY_SETTING_CASES, "%" PRId64,
                                         settings->cases)
                : assay_run_settings_add(run, ASSAY_SETTING_CASES, "%s", "")) &&
           assay_run_settings_add(run, ASSAY_SETTING_SHARD, "%" PRId64 "/%" PRId64,
                                  shard.index, shard.count) &&
           assay_run_settings_add(run, "repetition", "%s", settings->repetition);
}

static bool read_number(const struct assay_journal_copy *copy, const char *name,
                        uint64_t most, uint64_t *number)
{
    const char *const text = assay_journal_copy_setting(copy, name);
    *number = 0;
    return text && assay_number_unsigned(text, number) == ASSAY_NUMBER_VALID &&
           *number <= most;
}

enum assay_status assay_campaign_settings_read(const struct assay_journal_copy *copy,
                                               struct assay_campaign_settings *settings,
                                               struct assay_message *message)
{
    uint64_t version, cost, pool, cases = 0;
    *settings = (struct assay_campaign_settings){
        .candidate = assay_journal_copy_setting(copy, "--candidate"),
        .repetition = assay_journal_copy_setting(copy, "repetition"),
    };
    struct assay_campaign *const campaign = &settings->campaign;
    const char *const operations = assay_journal_copy_setting(copy, "--op");
    const char *const count = assay_journal_copy_setting(copy, ASSAY_SETTING_CASES);
    const bool is_whole =
        operations && settings->candidate && settings->repetition && count &&
        read_number(copy, "generator", INT32_MAX, &version) &&
        read_number(copy, "--seed", UINT64_MAX, &campaign->seed) &&
        read_number(copy, "--cost", UINT64_C(1) << 53, &cost) &&
        read_number(copy, "--shape-pool", INT64_MAX, &pool) &&
        (!*count || read_number(copy, ASSAY_SETTING_CASES, INT64_MAX, &cases));
    if (!is_whole || assay_campaign_select(campaign, operations, message) != ASSAY_RAN)
        return assay_fail(message, ASSAY_REFUSED,
                          "%s: line 1 is no header of a campaign; name the --out of one",
                          assay_shown_path(copy->path));
    campaign->multiply_adds = (double)cost;
    campaign->shape_pool = (int64_t)pool;
    settings->cases = (int64_t)cases;
    if (version == ASSAY_CAMPAIGN_VERSION &&
        copy->header.selection == assay_campaign_hash(campaign))
        return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED,
                      "%s belongs to an assay that draws other cases; use that one",
                      assay_shown_path(copy->path));
}
