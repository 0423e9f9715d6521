/* SPDX-License-Identifier: MIT */
/* Every setting one knob away from the named numerics of an operation, as text, and what
 * the model computes with it on a sample of drawn cases: worked out without the search
 * that is tested. */
#ifndef ASSAY_TESTS_VERIFY_KNOB_SETTINGS_H
#define ASSAY_TESTS_VERIFY_KNOB_SETTINGS_H

#include "tests/verify/searched_case.h"

#include <stdio.h>

enum { MAX_SETTINGS = 1200, SAMPLE = 30, SAMPLE_COST = 1 << 23 };

struct sampled {
    char text[ASSAY_MAX_NUMERICS_TEXT]; /* canonical */
    bool is_sampled, is_legal[SAMPLE];
    uint64_t bits[SAMPLE];
};
struct sampled_settings {
    int count;
    struct sampled item[MAX_SETTINGS];
};

static inline struct sampled *find_setting(struct sampled_settings *settings,
                                           const char *text)
{
    for (int i = 0; i < settings->count; i++)
        if (strcmp(settings->item[i].text, text) == 0) return &settings->item[i];
    return NULL;
}

/* Adds the numerics that @text stands for, if they make sense and are new. */
static inline void add_setting(const struct assay_operation *operation,
                               const void *problem, const char *text,
                               struct sampled_settings *settings)
{
    _Alignas(max_align_t) char numerics[ASSAY_MAX_NUMERICS_BYTES];
    struct assay_message ignored;
    char canonical[ASSAY_MAX_NUMERICS_TEXT];
    if (assay_numerics_parse(operation, problem, text, numerics, &ignored) != ASSAY_RAN)
        return;
    assay_numerics_format(operation, numerics, canonical, sizeof(canonical));
    if (find_setting(settings, canonical)) return;
    ck_assert_int_lt(settings->count, MAX_SETTINGS);
    strcpy(settings->item[settings->count++].text, canonical);
}

/* All choices; of integers the edges and a handful between. */
static inline void add_knob_settings(const struct assay_operation *operation,
                                     const void *problem, const char *name,
                                     const struct assay_knob *knob,
                                     struct sampled_settings *settings)
{
    static const int between[] = { 1, 3, 8, 10, 12, 14, 20, 24, 26, 64, 128 };
    char text[ASSAY_MAX_NUMERICS_TEXT];
    for (const struct assay_choice *at = knob->choices; at && at->name; at++) {
        snprintf(text, sizeof(text), "%s,%s=%s", name, knob->name, at->name);
        add_setting(operation, problem, text, settings);
    }
    if (knob->choices) return;
    for (int i = 0; i < 13; i++) {
        const int value = i == 0    ? knob->minimum
                          : i == 12 ? knob->maximum
                                    : between[i - 1];
        if (value < knob->minimum || value > knob->maximum) continue;
        snprintf(text, sizeof(text), "%s,%s=%d", name, knob->name, value);
        add_setting(operation, problem, text, settings);
    }
}

static inline void add_all_settings(const struct assay_operation *operation,
                                    const void *problem,
                                    struct sampled_settings *settings)
{
    settings->count = 0;
    for (int i = 0; operation->numerics[i].name; i++) {
        const char *const name = operation->numerics[i].name;
        add_setting(operation, problem, name, settings);
        for (const struct assay_knob *knob = operation->knobs; knob->name; knob++)
            add_knob_settings(operation, problem, name, knob, settings);
    }
}

/* Drawn case @index, which usually has the numerics @usual; false if it has not. */
static inline bool draw_sample(const struct assay_operation *operation, int index,
                               const struct assay_named_numerics *usual,
                               struct assay_case *drawn)
{
    _Alignas(max_align_t) char problem[ASSAY_MAX_PROBLEM_BYTES];
    struct assay_stream stream;
    struct assay_message ignored;
    assay_stream_open(&stream, 20, operation->name, "sample", index);
    assay_case_init(drawn, operation);
    operation->draw(&stream, index % 2 ? SAMPLE_COST : SAMPLE_COST / 16, drawn);
    return operation->bind(drawn, problem, &ignored) == ASSAY_RAN &&
           operation->default_numerics(problem) == usual;
}

/* Hash of the judged elements of one case; false where the setting makes no sense. */
static inline bool sample_bits(const struct assay_observation *observation,
                               const char *text, uint64_t *bits)
{
    _Alignas(max_align_t) char numerics[ASSAY_MAX_NUMERICS_BYTES];
    struct assay_message ignored;
    struct assay_scratch scratch;
    if (assay_numerics_parse(observation->operation, observation->problem, text, numerics,
                             &ignored) != ASSAY_RAN)
        return false;
    bool has_memory = assay_scratch_open(observation, &scratch) == ASSAY_RAN;
    *bits = 0;
    for (int64_t part = 0; part < observation->parts && has_memory; part++) {
        struct assay_part_comparison comparison;
        has_memory = assay_compare_part(observation, numerics, &scratch, part,
                                        &comparison) == ASSAY_RAN;
        *bits = *bits * 31 + comparison.bits;
    }
    assay_scratch_close(&scratch);
    return has_memory;
}

#endif
