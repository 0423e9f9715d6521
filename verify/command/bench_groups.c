/* SPDX-License-Identifier: MIT */
#include "verify/command/bench_groups.h"

#include "verify/report/json_put.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct mean { /* a geometric one */
    double logarithms;
    int count;
};

struct group {
    char name[ASSAY_MAX_GROUP_NAME];
    const char *candidate, *cache;
    int cases;
    struct mean over_upstream, by_vendor;
    double least_over_upstream;
    int beside_count;
    struct {
        const char *candidate;
        struct mean ratio;
    } beside[ASSAY_MAX_BESIDE];
};

struct assay_bench_groups {
    size_t count;
    struct group *group;
};

static void take_in(struct mean *mean, double ratio)
{
    mean->logarithms += log(ratio);
    mean->count++;
}

static double value_of(const struct mean *mean)
{
    return mean->count ? exp(mean->logarithms / mean->count) : 0;
}

struct assay_bench_groups *assay_bench_groups_open(void)
{
    return calloc(1, sizeof(struct assay_bench_groups));
}

void assay_bench_group_name(const struct assay_case *the_case,
                            char name[static ASSAY_MAX_GROUP_NAME])
{
    const struct assay_parameter *const parameters = the_case->operation->parameters;
    const char *recipe = NULL;
    for (const struct assay_parameter *one = parameters; one->name; one++)
        if (strcmp(one->name, "recipe") == 0)
            for (const struct assay_choice *choice = one->choices; choice->name; choice++)
                if (choice->value == the_case->value[one - parameters])
                    recipe = choice->name;
    snprintf(name, ASSAY_MAX_GROUP_NAME, "%s%s%s", the_case->operation->name,
             recipe ? " recipe=" : "", recipe ? recipe : "");
}

/* NULL when there is no memory. */
static struct group *find_group(struct assay_bench_groups *groups,
                                const struct assay_measurement *measurement)
{
    const char *const name = measurement->group;
    const char *const cache = measurement->cache ? measurement->cache : "";
    for (size_t i = 0; i < groups->count; i++) {
        struct group *const group = &groups->group[i];
        if (strcmp(group->name, name) == 0 && strcmp(group->cache, cache) == 0)
            return group;
    }
    struct group *const grown =
        realloc(groups->group, (groups->count + 1) * sizeof(*grown));
    if (!grown) return NULL;
    groups->group = grown;
    struct group *const added = &groups->group[groups->count++];
    *added = (struct group){ .candidate = measurement->candidate, .cache = cache };
    snprintf(added->name, sizeof(added->name), "%s", name);
    return added;
}

static void take_in_beside(struct group *group, const struct assay_bench_ratio *ratio)
{
    int at = 0;
    while (at < group->beside_count &&
           strcmp(group->beside[at].candidate, ratio->candidate) != 0)
        at++;
    if (at == group->beside_count)
        group->beside[group->beside_count++].candidate = ratio->candidate;
    take_in(&group->beside[at].ratio, ratio->ratio);
}

/* Ours over the vendor's library; 0: it was not measured. */
static double ratio_to_vendor(const struct assay_measurement *measurement)
{
    for (int i = 0; i < measurement->ratio_count; i++)
        if (strstr(measurement->ratio[i].candidate, "cublaslt"))
            return measurement->ratio[i].ratio;
    return 0;
}

static void take_in_upstream(struct group *group,
                             const struct assay_measurement *measurement,
                             const struct assay_upstream_figure *figure)
{
    const double ratio = measurement->tflop_per_s / measurement->upstream_tflop_per_s;
    const double vendor = ratio_to_vendor(measurement);
    if (!group->over_upstream.count || ratio < group->least_over_upstream)
        group->least_over_upstream = ratio;
    take_in(&group->over_upstream, ratio);
    if (vendor > 0 && figure->vendor_cold > 0 && strcmp(group->cache, "cold") == 0)
        take_in(&group->by_vendor, vendor * figure->vendor_cold / figure->cold);
}

enum assay_status assay_bench_groups_add(struct assay_bench_groups *groups,
                                         const struct assay_measurement *measurement,
                                         const struct assay_upstream_figure *figure,
                                         struct assay_message *message)
{
    const bool has_upstream = measurement->upstream_tflop_per_s > 0;
    if (!has_upstream && !measurement->ratio_count) return ASSAY_RAN;
    struct group *const group = find_group(groups, measurement);
    if (!group) return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a group");
    group->cases++;
    if (has_upstream) take_in_upstream(group, measurement, figure);
    for (int i = 0; i < measurement->ratio_count; i++)
        take_in_beside(group, &measurement->ratio[i]);
    return ASSAY_RAN;
}

static enum assay_status write_object(const struct group *group, FILE *stream)
{
    struct assay_json_output json = { .file = stream };
    json_t *const object = json_object();
    assay_json_put_text(&json, object, "type", "bench_group");
    assay_json_put_text(&json, object, "group", group->name);
    assay_json_put_text(&json, object, "candidate", group->candidate);
    assay_json_put_text(&json, object, "cache", group->cache);
    assay_json_put_count(&json, object, "cases", group->cases);
    if (group->over_upstream.count) {
        assay_json_put_real(&json, object, "over_upstream",
                            value_of(&group->over_upstream));
        assay_json_put_real(&json, object, "least_over_upstream",
                            group->least_over_upstream);
    }
    if (group->by_vendor.count)
        assay_json_put_real(&json, object, "over_upstream_by_vendor",
                            value_of(&group->by_vendor));
    json_t *const all = group->beside_count ? json_array() : NULL;
    for (int i = 0; i < group->beside_count; i++) {
        json_t *const beside = json_object();
        assay_json_put_text(&json, beside, "candidate", group->beside[i].candidate);
        assay_json_put_real(&json, beside, "ratio", value_of(&group->beside[i].ratio));
        assay_json_append(&json, all, beside);
    }
    if (all) assay_json_put(&json, object, "over_beside", all);
    return assay_json_write_line(&json, object);
}

static bool write_text(const struct group *group)
{
    printf("geometric mean  %s%s%s  %d case%s", group->name, *group->cache ? "  " : "",
           group->cache, group->cases, group->cases == 1 ? "" : "s");
    if (group->over_upstream.count)
        printf("  %.3f of upstream, at least %.3f", value_of(&group->over_upstream),
               group->least_over_upstream);
    if (group->by_vendor.count)
        printf("  %.3f of upstream by the vendor's", value_of(&group->by_vendor));
    for (int i = 0; i < group->beside_count; i++)
        printf("  %.3f of %s", value_of(&group->beside[i].ratio),
               group->beside[i].candidate);
    putchar('\n');
    return fflush(stdout) == 0;
}

enum assay_status assay_bench_groups_write(const struct assay_bench_groups *groups,
                                           struct assay_bench_output *output,
                                           struct assay_message *message)
{
    for (size_t i = 0; i < groups->count; i++) {
        const struct group *const group = &groups->group[i];
        FILE *const stream = output->json.stream;
        if (stream && write_object(group, stream) != ASSAY_RAN)
            return assay_fail(message, ASSAY_FAILED, "report %s: writing failed: %s",
                              output->json.path, strerror(errno));
        if (output->has_text && !write_text(group))
            return assay_fail(message, ASSAY_FAILED, "stdout: writing failed: %s",
                              strerror(errno));
    }
    return ASSAY_RAN;
}

void assay_bench_groups_close(struct assay_bench_groups *groups)
{
    if (!groups) return;
    free(groups->group);
    free(groups);
}
