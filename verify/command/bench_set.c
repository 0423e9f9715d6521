/* SPDX-License-Identifier: MIT */
/* The candidates that a bench measures beside each other. */
#include "verify/command/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether the options behind a backend's name hold cold=1, or any cold= with @value
 * empty. */
static bool has_cold(const char *text, const char *value)
{
    static const char key[] = "cold=";
    const size_t length = strlen(value);
    for (const char *at = text; (at = strstr(at, key)); at += sizeof(key) - 1) {
        const char *const found = at + sizeof(key) - 1;
        const bool is_option = at > text && (at[-1] == ',' || at[-1] == ':');
        if (!is_option || strncmp(found, value, length) != 0) continue;
        if (!length || found[length] == '\0' || found[length] == ',') return true;
    }
    return false;
}

static bool is_plugin(const char *text)
{
    const size_t scheme = strcspn(text, ":");
    return (scheme == 6 && strncmp(text, "plugin", scheme) == 0) ||
           (scheme == 4 && strncmp(text, "cuda", scheme) == 0);
}

static enum assay_status choose_cache(struct assay_bench_candidate *candidate,
                                      const char *cache, struct assay_message *message)
{
    const char *const text = candidate->text;
    if (has_cold(text, ""))
        return assay_fail(message, ASSAY_REFUSED,
                          "--%s and candidate '%s' both choose the cache's state; leave "
                          "one of them away",
                          cache, text);
    if (strcmp(cache, "cold") != 0) return ASSAY_RAN;
    if (!is_plugin(text))
        return assay_fail(message, ASSAY_REFUSED,
                          "--cold is for kernels on a GPU, and '%s' is none; use "
                          "plugin:FILE.so or cuda",
                          text);
    candidate->is_cold = true;
    if (asprintf(&candidate->opened, "%s%ccold=1", text, strchr(text, ':') ? ',' : ':') >=
        0)
        return ASSAY_RAN;
    candidate->opened = NULL;
    return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a candidate");
}

static enum assay_status open_candidate(struct assay_bench_candidate *candidate,
                                        const char *cache,
                                        const struct assay_backend_limits *limits,
                                        struct assay_message *message)
{
    enum assay_status status = ASSAY_RAN;
    candidate->is_cold = has_cold(candidate->text, "1");
    if (cache) status = choose_cache(candidate, cache, message);
    if (status != ASSAY_RAN) return status;
    status = assay_backend_open(candidate->opened ? candidate->opened : candidate->text,
                                limits, &candidate->backend, &candidate->state, message);
    if (status != ASSAY_RAN) candidate->backend = NULL;
    return status;
}

enum assay_status assay_bench_set_open(struct assay_bench_set *set,
                                       const char *const *texts, int count,
                                       const char *cache,
                                       const struct assay_backend_limits *limits,
                                       struct assay_message *message)
{
    enum assay_status status = ASSAY_RAN;
    for (int i = 0; i < count && status == ASSAY_RAN; i++) {
        struct assay_bench_candidate *const candidate = &set->candidate[set->count++];
        *candidate = (struct assay_bench_candidate){ .text = texts[i] };
        status = open_candidate(candidate, cache, limits, message);
    }
    return status;
}

void assay_bench_set_close(struct assay_bench_set *set)
{
    for (int i = 0; i < set->count; i++) {
        struct assay_bench_candidate *const candidate = &set->candidate[i];
        if (candidate->backend) candidate->backend->close(candidate->state);
        free(candidate->opened);
    }
    set->count = 0;
}
