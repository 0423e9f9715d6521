/* SPDX-License-Identifier: MIT */
/* All settings that lie at most one knob away from the named numerics of an operation,
 * and what the model computes with each on one case. Those with the same bits are a
 * class: what a search for these bits must find. Worked out without the search. */
#ifndef ASSAY_TESTS_VERIFY_KNOB_SETTINGS_H
#define ASSAY_TESTS_VERIFY_KNOB_SETTINGS_H

#include "tests/verify/searched_case.h"
#include "verify/operation/definedness.h"

#include <stdio.h>

struct known_setting {
    _Alignas(max_align_t) char numerics[ASSAY_MAX_NUMERICS_BYTES];
    char text[ASSAY_MAX_NUMERICS_TEXT]; /* canonical */
    uint64_t bits;
    int leader; /* the first setting with these bits */
};

struct known_settings {
    const struct assay_operation *operation;
    const void *problem;
    int count, capacity, classes;
    struct known_setting *item;
};

/* The place of the setting with the knobs of @numerics; -1 if it is not there. */
static inline int find_known(const struct known_settings *known, const void *numerics)
{
    for (int i = 0; i < known->count; i++) {
        bool is_equal = true;
        for (const struct assay_knob *knob = known->operation->knobs;
             knob->name && is_equal; knob++)
            is_equal = memcmp(known->item[i].numerics + knob->offset,
                              (const char *)numerics + knob->offset, sizeof(int)) == 0;
        if (is_equal) return i;
    }
    return -1;
}

/* Adds numerics that make sense and are new. */
static inline void add_known(struct known_settings *known, const void *numerics)
{
    const struct assay_operation *const operation = known->operation;
    struct assay_message ignored;
    if (operation->check_numerics(known->problem, numerics, &ignored) != ASSAY_RAN ||
        find_known(known, numerics) >= 0)
        return;
    if (known->count == known->capacity) {
        const int capacity = 2 * known->capacity + 64;
        struct known_setting *const grown = aligned_alloc(
            _Alignof(struct known_setting), (size_t)capacity * sizeof(*grown));
        ck_assert_ptr_nonnull(grown);
        if (known->count)
            memcpy(grown, known->item, (size_t)known->count * sizeof(*grown));
        free(known->item);
        known->item = grown;
        known->capacity = capacity;
    }
    struct known_setting *const setting = &known->item[known->count++];
    *setting = (struct known_setting){ .leader = -1 };
    memcpy(setting->numerics, numerics, operation->numerics_bytes);
    assay_numerics_format(operation, numerics, setting->text, sizeof(setting->text));
}

static inline void add_turned(struct known_settings *known, const void *row,
                              const struct assay_knob *knob, int value)
{
    _Alignas(max_align_t) char numerics[ASSAY_MAX_NUMERICS_BYTES];
    memcpy(numerics, row, known->operation->numerics_bytes);
    memcpy(numerics + knob->offset, &value, sizeof(value));
    add_known(known, numerics);
}

/* The named numerics, and every value of every knob of each. */
static inline void add_all_known(struct known_settings *known)
{
    const struct assay_operation *const operation = known->operation;
    for (int i = 0; operation->numerics[i].name; i++) {
        const void *const row = operation->numerics[i].numerics;
        add_known(known, row);
        for (const struct assay_knob *knob = operation->knobs; knob->name; knob++) {
            for (const struct assay_choice *at = knob->choices; at && at->name; at++)
                add_turned(known, row, knob, at->value);
            for (int at = knob->minimum; !knob->choices && at <= knob->maximum; at++)
                add_turned(known, row, knob, at);
        }
    }
}

/* Hash of the defined elements of all outputs. */
static inline uint64_t hash_defined(const struct assay_operation *operation,
                                    const void *problem,
                                    const struct assay_tensors *tensors)
{
    uint64_t hash = 1;
    for (int i = 0; i < tensors->count; i++) {
        const struct assay_tensor *const output = &tensors->item[i];
        uint8_t *map = NULL;
        if (!output->is_output) continue;
        ck_assert(assay_definedness_map(operation, problem, tensors, i, &map) ==
                  ASSAY_RAN);
        const int64_t elements = assay_tensor_elements(output);
        for (int64_t at = 0; at < elements; at++) {
            if (assay_definedness_at(map, at) != ASSAY_DEFINED) continue;
            hash = (hash ^ assay_tensor_bits(output, at)) * UINT64_C(0x9E3779B97F4A7C15);
            hash ^= hash >> 29;
        }
        free(map);
    }
    return hash;
}

/* What the model computes with @numerics on a case, beside the outputs that are there. */
static inline uint64_t known_bits(const struct searched *searched, const void *numerics)
{
    const struct assay_operation *const operation = searched->the_case.operation;
    struct assay_tensors tensors = searched->tensors;
    struct assay_buffers buffers;
    struct assay_message message;
    for (int i = 0; i < tensors.count; i++)
        if (tensors.item[i].is_output) tensors.item[i].data = NULL;
    ck_assert(assay_buffers_open(&buffers, &tensors, &message) == ASSAY_RAN);
    assay_buffers_poison(&tensors);
    ck_assert(assay_run_model(operation, searched->problem, numerics, &tensors) ==
              ASSAY_RAN);
    const uint64_t bits = hash_defined(operation, searched->problem, &tensors);
    assay_buffers_close(&buffers);
    return bits;
}

/* Lists the settings of a case, computes them, and puts them into classes. */
static inline void open_known(const struct searched *searched,
                              struct known_settings *known)
{
    *known = (struct known_settings){ .operation = searched->the_case.operation,
                                      .problem = searched->problem };
    add_all_known(known);
    for (int i = 0; i < known->count; i++) {
        struct known_setting *const setting = &known->item[i];
        int leader = 0;
        setting->bits = known_bits(searched, setting->numerics);
        while (known->item[leader].bits != setting->bits)
            leader++;
        setting->leader = leader;
        known->classes += leader == i;
    }
}

static inline void close_known(struct known_settings *known)
{
    free(known->item);
}

#endif
