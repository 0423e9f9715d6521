/* SPDX-License-Identifier: MIT */
/* Parameters with several values: fewer of them, and smaller ones. */
#include "fuzz/shrink/list.h"

#include "fuzz/shrink/attempt.h"

#include <assert.h>
#include <string.h>

struct assay_shrink_list assay_shrink_list_of(const struct assay_case *the_case,
                                              const char *name)
{
    struct assay_shrink_list list;
    const int64_t *const values = assay_case_list(the_case, name, &list.count);
    memcpy(list.value, values, sizeof(*values) * (size_t)list.count);
    return list;
}

/* The room of the old list is free again. */
void assay_shrink_list_set(struct assay_case *the_case, const char *name,
                           const struct assay_shrink_list *list)
{
    const struct assay_case old = *the_case;
    const struct assay_parameter *const parameters = old.operation->parameters;
    the_case->list_values = 0;
    for (int i = 0; parameters[i].name; i++) {
        if (!parameters[i].is_list) continue;
        const struct assay_shrink_list kept =
            strcmp(parameters[i].name, name) == 0
                ? *list
                : assay_shrink_list_of(&old, parameters[i].name);
        the_case->value[i] = 0; /* what a list that is left out has */
        const bool fits =
            kept.count == 0 ||
            assay_case_set_list(the_case, parameters[i].name, kept.value, kept.count);
        assert(fits);
        (void)fits;
    }
}

static struct assay_shrink_list without(const struct assay_shrink_list *list, int first,
                                        int count)
{
    struct assay_shrink_list rest = { 0 };
    for (int i = 0; i < list->count; i++)
        if (i < first || i >= first + count) rest.value[rest.count++] = list->value[i];
    return rest;
}

static enum assay_attempt try_list(struct assay_shrinker *shrinker, const char *name,
                                   const struct assay_shrink_list *list)
{
    struct assay_case the_case = shrinker->best;
    assay_shrink_list_set(&the_case, name, list);
    return assay_shrinker_try(shrinker, &the_case);
}

/* --- fewer values ------------------------------------------------------------------- */

/* The best case without values [first, first + count) of the list, and of all lists of
 * the same length if @with_others. */
static struct assay_case cut(const struct assay_case *best, const char *name, int first,
                             int count, bool with_others)
{
    const struct assay_parameter *const parameters = best->operation->parameters;
    const int length = assay_shrink_list_of(best, name).count;
    struct assay_case the_case = *best;
    for (int i = 0; parameters[i].name; i++) {
        if (!parameters[i].is_list) continue;
        const struct assay_shrink_list list =
            assay_shrink_list_of(best, parameters[i].name);
        const bool is_meant = strcmp(parameters[i].name, name) == 0 ||
                              (with_others && list.count == length);
        const struct assay_shrink_list rest = without(&list, first, count);
        if (is_meant) assay_shrink_list_set(&the_case, parameters[i].name, &rest);
    }
    return the_case;
}

/* Also with each key that may be the number of values made as much less. */
static enum assay_attempt try_cut(struct assay_shrinker *shrinker, const char *name,
                                  int first, int count)
{
    const struct assay_parameter *const parameters = shrinker->best.operation->parameters;
    const int length = assay_shrink_list_of(&shrinker->best, name).count;
    for (int with_others = 1; with_others >= 0; with_others--) {
        const struct assay_case plain =
            cut(&shrinker->best, name, first, count, with_others);
        for (int i = 0; parameters[i].name; i++) {
            struct assay_case the_case = plain;
            if (parameters[i].is_list || parameters[i].choices ||
                plain.value[i] != length || parameters[i].minimum > length - count)
                continue;
            the_case.value[i] -= count;
            if (assay_shrinker_try(shrinker, &the_case) == ASSAY_ATTEMPT_TAKEN)
                return ASSAY_ATTEMPT_TAKEN;
        }
        if (assay_shrinker_try(shrinker, &plain) == ASSAY_ATTEMPT_TAKEN)
            return ASSAY_ATTEMPT_TAKEN;
    }
    return ASSAY_ATTEMPT_FAILED;
}

/* Halves, quarters, ... single values. */
static void drop_values(struct assay_shrinker *shrinker, const char *name)
{
    for (int size = assay_shrink_list_of(&shrinker->best, name).count / 2; size > 0;
         size /= 2) {
        int first = 0;
        while (first + size <= assay_shrink_list_of(&shrinker->best, name).count)
            if (assay_shrink_list_of(&shrinker->best, name).count == size ||
                try_cut(shrinker, name, first, size) != ASSAY_ATTEMPT_TAKEN)
                first += size;
    }
}

/* One value for all, where the operation knows that. */
static void try_one_for_all(struct assay_shrinker *shrinker, const char *name)
{
    const struct assay_shrink_list list = assay_shrink_list_of(&shrinker->best, name);
    for (int i = 0; list.count > 1 && i < list.count; i++) {
        const struct assay_shrink_list one = { .count = 1, .value = { list.value[i] } };
        if (i > 0 && list.value[i] == list.value[i - 1]) continue;
        if (try_list(shrinker, name, &one) == ASSAY_ATTEMPT_TAKEN) return;
    }
}

void assay_shrink_lists(struct assay_shrinker *shrinker)
{
    const struct assay_parameter *const parameters = shrinker->best.operation->parameters;
    const struct assay_shrink_list none = { 0 };
    for (int i = 0; parameters[i].name; i++) {
        if (!parameters[i].is_list) continue;
        if (!parameters[i].is_required) try_list(shrinker, parameters[i].name, &none);
        drop_values(shrinker, parameters[i].name);
        try_one_for_all(shrinker, parameters[i].name);
        for (int place = 0;
             place < assay_shrink_list_of(&shrinker->best, parameters[i].name).count;
             place++)
            assay_shrink_integer(shrinker, i, place);
    }
}
