/* SPDX-License-Identifier: MIT */
#include "fuzz/campaign/coverage.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_";

enum { MAX_CLASSES = sizeof(letters) - 1 };

static_assert((int)ASSAY_MAX_FEATURES < (int)ASSAY_MAX_NOTE, "a note has room for all");

static int end_of(const struct assay_coverage *coverage, int feature)
{
    return feature + 1 < coverage->features ? coverage->first[feature + 1]
                                            : coverage->classes;
}

enum assay_status assay_coverage_open(struct assay_coverage *coverage,
                                      const struct assay_operation *operation)
{
    *coverage = (struct assay_coverage){ .features = assay_feature_count(operation) };
    for (int i = 0; i < coverage->features; i++) {
        coverage->first[i] = coverage->classes;
        assert(assay_feature_classes(operation, i) <= MAX_CLASSES);
        coverage->classes += assay_feature_classes(operation, i);
    }
    const size_t bits = (size_t)coverage->classes * (size_t)coverage->classes;
    coverage->taken = calloc(bits / 64 + 1, sizeof(*coverage->taken));
    return coverage->taken ? ASSAY_RAN : ASSAY_OUT_OF_MEMORY;
}

void assay_coverage_note(const struct assay_operation *operation, const int *classes,
                         char note[ASSAY_MAX_NOTE])
{
    const int features = assay_feature_count(operation);
    for (int i = 0; i < features; i++)
        note[i] = letters[classes[i]];
    note[features] = '\0';
}

static bool read_note(const struct assay_coverage *coverage, const char *note,
                      int *places)
{
    if (strlen(note) != (size_t)coverage->features) return false;
    for (int i = 0; i < coverage->features; i++) {
        const char *const letter = strchr(letters, note[i]);
        if (!letter) return false;
        places[i] = coverage->first[i] + (int)(letter - letters);
        if (places[i] >= end_of(coverage, i)) return false;
    }
    return true;
}

bool assay_coverage_add(struct assay_coverage *coverage, const char *note)
{
    int places[ASSAY_MAX_FEATURES];
    if (!read_note(coverage, note, places)) return false;
    coverage->cases++;
    for (int i = 0; i < coverage->features; i++)
        for (int other = 0; other <= i; other++) {
            const int64_t bit = (int64_t)places[i] * coverage->classes + places[other];
            coverage->taken[bit / 64] |= UINT64_C(1) << bit % 64;
        }
    return true;
}

struct assay_coverage_counts assay_coverage_count(const struct assay_coverage *coverage)
{
    struct assay_coverage_counts counts = { .all_classes = coverage->classes };
    for (int i = 0; i < coverage->features; i++)
        counts.all_pairs +=
            (int64_t)(end_of(coverage, i) - coverage->first[i]) * coverage->first[i];
    for (int i = 0; i < coverage->classes; i++)
        for (int other = 0; other <= i; other++) {
            const int64_t bit = (int64_t)i * coverage->classes + other;
            const bool is_taken = coverage->taken[bit / 64] >> bit % 64 & 1;
            if (i == other)
                counts.classes += is_taken;
            else
                counts.pairs += is_taken;
        }
    return counts;
}

void assay_coverage_close(struct assay_coverage *coverage)
{
    free(coverage->taken);
    coverage->taken = NULL;
}
