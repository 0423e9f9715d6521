/* SPDX-License-Identifier: MIT */
/* What a search should find, worked out without it: every setting within one knob of the
 * named numerics is written as text, and the hash of the bits that the model then
 * computes says which of them are the same. */
#ifndef ASSAY_TESTS_VERIFY_KNOB_VARIANTS_H
#define ASSAY_TESTS_VERIFY_KNOB_VARIANTS_H

#include "tests/verify/searched_case.h"

#include <stdio.h>

enum { MAX_VARIANTS = 1000 };

struct variant {
    char text[ASSAY_MAX_NUMERICS_TEXT]; /* canonical */
    uint64_t bits;
};
struct variants {
    int count;
    struct variant item[MAX_VARIANTS];
};

static inline const struct variant *find_variant(const struct variants *variants,
                                                 const char *text)
{
    for (int i = 0; i < variants->count; i++)
        if (strcmp(variants->item[i].text, text) == 0) return &variants->item[i];
    return NULL;
}

/* Adds the numerics that @text stands for, if they make sense and are new. */
static inline void add_variant(const struct searched *searched, const char *text,
                               struct variants *variants)
{
    _Alignas(max_align_t) char numerics[ASSAY_MAX_NUMERICS_BYTES];
    struct assay_message ignored;
    struct variant *const variant = &variants->item[variants->count];
    const struct assay_operation *const operation = searched->the_case.operation;
    if (assay_numerics_parse(operation, searched->problem, text, numerics, &ignored) !=
        ASSAY_RAN)
        return;
    assay_numerics_format(operation, numerics, variant->text, sizeof(variant->text));
    if (find_variant(variants, variant->text)) return;
    variant->bits = bits_of_model(searched, text);
    ck_assert_int_lt(++variants->count, MAX_VARIANTS);
}

static inline void add_knob(const struct searched *searched, const char *name,
                            const struct assay_knob *knob, int step,
                            struct variants *variants)
{
    char text[ASSAY_MAX_NUMERICS_TEXT];
    for (const struct assay_choice *at = knob->choices; at && at->name; at++) {
        snprintf(text, sizeof(text), "%s,%s=%s", name, knob->name, at->name);
        add_variant(searched, text, variants);
    }
    for (int at = knob->minimum; !knob->choices && at <= knob->maximum; at += step) {
        snprintf(text, sizeof(text), "%s,%s=%d", name, knob->name, at);
        add_variant(searched, text, variants);
    }
}

static inline void add_all(const struct searched *searched, int step,
                           struct variants *variants)
{
    const struct assay_operation *const operation = searched->the_case.operation;
    for (int i = 0; operation->numerics[i].name; i++) {
        const char *const name = operation->numerics[i].name;
        add_variant(searched, name, variants);
        for (const struct assay_knob *knob = operation->knobs; knob->name; knob++)
            add_knob(searched, name, knob, step, variants);
    }
}

/* What the search says of every setting it tried is what the bits say. */
static inline void check_search(const struct searched *searched,
                                const struct variants *variants,
                                const struct variant *truth)
{
    struct assay_knob_search search;
    bool is_found = false;
    write_model(searched, truth->text);
    search_case(searched, false, &search);
    ck_assert(!search.was_cut_short);
    ck_assert_msg(search.fits > 0, "%s is not found", truth->text);
    for (int i = 0; i < search.space.count; i++) {
        const struct assay_knob_setting *const setting = &search.space.item[i];
        char text[ASSAY_MAX_NUMERICS_TEXT];
        assay_numerics_format(search.space.operation, setting->numerics, text,
                              sizeof(text));
        const struct variant *const known = find_variant(variants, text);
        const uint64_t bits = known ? known->bits : bits_of_model(searched, text);
        ck_assert_msg((setting->state == ASSAY_SETTING_FITS) == (bits == truth->bits),
                      "%s: %s is state %d", truth->text, text, setting->state);
        is_found |= setting->state == ASSAY_SETTING_FITS && known == truth;
    }
    for (int i = 0; i < search.space.count && !is_found; i++)
        is_found = search.space.item[i].state == ASSAY_SETTING_FITS &&
                   search.space.item[i].turned == 0;
    ck_assert_msg(is_found, "%s is not in the set, nor named numerics equal to it",
                  truth->text);
    assay_knob_search_close(&search);
}

/* Searches once for each different output; integers in steps of @step. */
static inline void check_all_variants(const char *line, int step, int least)
{
    static struct variants variants;
    struct searched *const searched = open_searched(line);
    int outputs = 0;
    variants.count = 0;
    add_all(searched, step, &variants);
    for (int i = 0; i < variants.count; i++) {
        int first = 0;
        while (variants.item[first].bits != variants.item[i].bits)
            first++;
        if (first < i) continue;
        check_search(searched, &variants, &variants.item[i]);
        outputs++;
    }
    ck_assert_msg(outputs >= least, "%s: %d outputs of %d settings", line, outputs,
                  variants.count);
    close_searched(searched);
}

#endif
