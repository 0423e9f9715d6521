/* SPDX-License-Identifier: MIT */
/* Data that are zero but for the elements that matter, found by delta debugging: those
 * that differ from zero are put back in halves, quarters, ... and one by one, as long as
 * the failure stays. */
#include "fuzz/shrink/attempt.h"
#include "verify/check/inputs.h"
#include "verify/report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So many explicit elements are better to read than a seed, however long the line. */
enum { HANDFUL = 16 };

struct element {
    int tensor;
    int64_t index; /* logical row-major */
    uint32_t bits, zero;
};

struct search {
    struct assay_shrinker *shrinker;
    struct assay_case the_case; /* with data=zero */
    union assay_problem_storage problem;
    struct assay_tensors tensors; /* of zeros, and of what is left of the elements */
    struct assay_buffers buffers;
    struct element *element;
    int64_t count;
};

static bool have_same_shape(const struct assay_tensors *a, const struct assay_tensors *b)
{
    bool is_same = a->count == b->count;
    for (int i = 0; is_same && i < a->count; i++)
        is_same =
            a->item[i].format == b->item[i].format &&
            assay_tensor_elements(&a->item[i]) == assay_tensor_elements(&b->item[i]);
    return is_same;
}

static int64_t input_elements(const struct assay_tensors *tensors)
{
    int64_t elements = 0;
    for (int i = 0; i < tensors->count; i++)
        if (!tensors->item[i].is_output)
            elements += assay_tensor_elements(&tensors->item[i]);
    return elements;
}

/* Puts into the zeros what @full holds, and keeps a list of it. */
static bool collect(struct search *search, const struct assay_tensors *full)
{
    const struct assay_tensors *const zeros = &search->tensors;
    if (!have_same_shape(full, zeros)) return false;
    search->element = calloc((size_t)input_elements(full) + 1, sizeof(*search->element));
    if (!search->element) return false;
    for (int i = 0; i < full->count; i++) {
        const int64_t elements = assay_tensor_elements(&full->item[i]);
        for (int64_t at = 0; !full->item[i].is_output && at < elements; at++) {
            const struct element element = { i, at, assay_tensor_bits(&full->item[i], at),
                                             assay_tensor_bits(&zeros->item[i], at) };
            if (element.bits == element.zero) continue;
            assay_tensor_set_bits(&zeros->item[i], at, element.bits);
            search->element[search->count++] = element;
        }
    }
    return true;
}

static bool open_search(struct search *search, struct assay_shrinker *shrinker)
{
    union assay_problem_storage problem;
    struct assay_tensors full;
    struct assay_buffers buffers = { 0 };
    struct assay_message ignored;
    search->shrinker = shrinker;
    search->the_case = shrinker->best;
    search->the_case.data = ASSAY_DATA_ZERO;
    search->the_case.explicit_bits_count = 0;
    const bool is_open =
        assay_inputs_open(&shrinker->best, NULL, 0, &problem, &full, &buffers,
                          &ignored) == ASSAY_RAN &&
        assay_inputs_open(&search->the_case, NULL, 0, &search->problem, &search->tensors,
                          &search->buffers, &ignored) == ASSAY_RAN &&
        collect(search, &full);
    assay_buffers_close(&buffers);
    return is_open;
}

/* --- delta debugging ---------------------------------------------------------------- */

static void put(const struct search *search, int64_t first, int64_t count, bool is_zero)
{
    for (int64_t i = first; i < first + count; i++) {
        const struct element *const element = &search->element[i];
        assay_tensor_set_bits(&search->tensors.item[element->tensor], element->index,
                              is_zero ? element->zero : element->bits);
    }
}

static bool drop(struct search *search, int64_t first, int64_t count)
{
    put(search, first, count, true);
    if (!assay_shrinker_fails(search->shrinker, &search->the_case, &search->tensors)) {
        put(search, first, count, false);
        return false;
    }
    search->count -= count;
    memmove(&search->element[first], &search->element[first + count],
            sizeof(*search->element) * (size_t)(search->count - first));
    return true;
}

static void drop_tensors(struct search *search)
{
    int64_t first = 0;
    while (first < search->count) {
        int64_t end = first;
        while (end < search->count &&
               search->element[end].tensor == search->element[first].tensor)
            end++;
        if (!drop(search, first, end - first)) first = end;
    }
}

/* One round; returns how many pieces of @size elements cannot be dropped, or
 * ASSAY_MAX_EXPLICIT_BITS + 1 as soon as there are more than a line can name. */
static int drop_pieces(struct search *search, int64_t size)
{
    int needed = 0;
    int64_t first = 0;
    while (first < search->count && needed <= ASSAY_MAX_EXPLICIT_BITS) {
        const int64_t left = search->count - first;
        const int64_t count = left < size ? left : size;
        if (drop(search, first, count)) continue;
        first += count;
        needed++;
    }
    return needed;
}

/* Whether so few elements are left that a line can name them. */
static bool reduce(struct search *search)
{
    if (search->count == 0 || drop(search, 0, search->count)) return true;
    drop_tensors(search);
    for (int64_t size = (search->count + 1) / 2; size > 1; size = (size + 1) / 2)
        if (drop_pieces(search, size) > ASSAY_MAX_EXPLICIT_BITS) return false;
    int64_t before;
    do {
        before = search->count;
        if (drop_pieces(search, 1) > ASSAY_MAX_EXPLICIT_BITS) return false;
    } while (search->count < before && !assay_shrinker_is_over(search->shrinker));
    return search->count <= ASSAY_MAX_EXPLICIT_BITS;
}

/* --- the line ----------------------------------------------------------------------- */

static void name_elements(struct search *search)
{
    struct assay_case *const the_case = &search->the_case;
    for (int64_t i = 0; i < search->count; i++) {
        const struct element *const element = &search->element[i];
        const struct assay_tensor *const tensor = &search->tensors.item[element->tensor];
        struct assay_explicit_bits *const bits =
            &the_case->explicit_bits[the_case->explicit_bits_count++];
        *bits =
            (struct assay_explicit_bits){ .rank = tensor->rank, .bits = element->bits };
        snprintf(bits->tensor, sizeof(bits->tensor), "%s", tensor->name);
        assay_report_index(tensor, element->index, bits->index);
    }
}

static bool is_better(const struct search *search)
{
    struct assay_shrink_measure measure;
    return assay_shrink_measure(&search->the_case, &measure) &&
           (search->count <= HANDFUL ||
            measure.length < search->shrinker->measure.length);
}

void assay_shrink_elements(struct assay_shrinker *shrinker)
{
    if (shrinker->best.data == ASSAY_DATA_ZERO ||
        !assay_operation_takes(shrinker->best.operation, ASSAY_DATA_ZERO))
        return;
    struct search *const search = calloc(1, sizeof(*search));
    if (!search) return; /* the case stays as it is */
    if (open_search(search, shrinker) &&
        assay_shrinker_fails(shrinker, &search->the_case, &search->tensors) &&
        reduce(search)) {
        name_elements(search);
        if (is_better(search)) assay_shrinker_try_any(shrinker, &search->the_case);
    }
    free(search->element);
    assay_buffers_close(&search->buffers);
    free(search);
}
