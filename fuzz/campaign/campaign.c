/* SPDX-License-Identifier: MIT */
#include "fuzz/campaign/campaign.h"

#include "fuzz/campaign/permutation.h"
#include "verify/data/buffers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int assay_campaign_operation(const struct assay_campaign *campaign, int64_t number)
{
    const int64_t count = campaign->operations;
    struct assay_stream stream;
    assay_stream_open(&stream, campaign->seed, "operations", "campaign", number / count);
    return (int)((number + assay_stream_below(&stream, (uint32_t)count)) % count);
}

const struct assay_negative *
assay_campaign_negative(const struct assay_campaign *campaign, int64_t number)
{
    const int at = assay_campaign_operation(campaign, number);
    const char *const operation = campaign->operation[at]->name;
    const int rows = assay_negative_count(operation);
    const int64_t period = ASSAY_CAMPAIGN_NEGATIVE_PERIOD;
    struct assay_stream stream;
    assay_stream_open(&stream, campaign->seed, "negative", "campaign", number / period);
    if (number % period != assay_stream_below(&stream, (uint32_t)period) || rows == 0)
        return NULL;
    return assay_negative_at(operation, (int)assay_stream_below(&stream, (uint32_t)rows));
}

/* Entry @entry of the operation's permutations, with values from row @row. */
static void draw_entry(const struct assay_campaign *campaign,
                       const struct assay_operation *operation, int64_t entry,
                       const char *rows, int64_t row, struct assay_case *the_case,
                       int *classes)
{
    const uint64_t tuples = assay_feature_tuples(operation);
    const uint64_t place = (uint64_t)entry;
    const struct assay_permutation permutation = assay_permutation_open(
        tuples, campaign->seed, operation->name, (int64_t)(place / tuples));
    struct assay_stream stream;
    const int scale = operation->campaign_scale ? operation->campaign_scale : 1;
    assay_stream_open(&stream, campaign->seed, operation->name, rows, row);
    assay_draw_tuple(operation, assay_permutation_at(&permutation, place % tuples),
                     &stream, scale * campaign->multiply_adds, the_case, classes);
}

static int find_feature(const struct assay_operation *operation, const char *key)
{
    int feature = 0;
    while (operation->features[feature].key &&
           strcmp(operation->features[feature].key, key) != 0)
        feature++;
    return operation->features[feature].key ? feature : -1;
}

/* The shape and the options of a case of the pool, with seed and, where the operation
 * takes it with that shape, kind of data of @the_case. */
static void take_shape(const struct assay_campaign *campaign,
                       const struct assay_operation *operation, int64_t entry,
                       struct assay_case *the_case, int *classes)
{
    const struct assay_case own = *the_case;
    const int feature = find_feature(operation, "data");
    const int own_class = feature < 0 ? 0 : classes[feature];
    union assay_problem_storage problem;
    struct assay_message ignored;
    const int64_t place = entry % campaign->shape_pool;
    draw_entry(campaign, operation, place, "pool", place, the_case, classes);
    const enum assay_data_kind kind = the_case->data;
    the_case->seed = own.seed;
    the_case->data = own.data;
    if (operation->bind(the_case, &problem, &ignored) != ASSAY_RAN)
        the_case->data = kind;
    else if (feature >= 0)
        classes[feature] = own_class;
}

void assay_campaign_draw(const struct assay_campaign *campaign, int64_t number,
                         struct assay_campaign_case *drawn)
{
    const int64_t entry = number / campaign->operations;
    struct assay_case the_case;
    drawn->operation = campaign->operation[assay_campaign_operation(campaign, number)];
    drawn->negative = assay_campaign_negative(campaign, number);
    draw_entry(campaign, drawn->operation, entry, "campaign", number, &the_case,
               drawn->classes);
    if (campaign->shape_pool > 0)
        take_shape(campaign, drawn->operation, entry, &the_case, drawn->classes);
    if (drawn->negative)
        assay_negative_apply(drawn->negative, &the_case, drawn->line);
    else
        assay_case_format(&the_case, drawn->line, sizeof(drawn->line));
}

uint64_t assay_campaign_hash(const struct assay_campaign *campaign)
{
    uint64_t hash = ASSAY_CAMPAIGN_VERSION;
    char text[1024];
    for (int i = 0; i < campaign->operations; i++) {
        const struct assay_operation *const operation = campaign->operation[i];
        for (int feature = 0; feature < assay_feature_count(operation); feature++)
            for (int at = 0; at < assay_feature_classes(operation, feature); at++) {
                snprintf(text, sizeof(text), "%016" PRIx64 " %s %s %s", hash,
                         operation->name, operation->features[feature].key,
                         assay_feature_class(operation, feature, at).text);
                hash = assay_text_hash(text);
            }
    }
    return hash;
}
