/* SPDX-License-Identifier: MIT */
#include "fuzz/shrink/attempt.h"

#include "fuzz/shrink/signature.h"
#include "verify/case/case_format.h"
#include "verify/data/buffers.h"
#include "verify/data/clock.h"
#include "verify/data/overrides.h"
#include "verify/operation/numerics.h"

#include <string.h>

bool assay_shrinker_is_over(struct assay_shrinker *shrinker)
{
    const struct assay_shrink *const shrink = shrinker->shrink;
    const bool is_over =
        shrinker->trials >= (int)(shrinker->share * shrink->trials) ||
        assay_clock_seconds() - shrinker->start > shrinker->share * shrink->seconds;
    shrinker->was_cut |= is_over;
    return is_over;
}

static struct assay_case_size size_of(const struct assay_tensors *tensors)
{
    struct assay_case_size size = { 0 };
    for (int i = 0; i < tensors->count; i++) {
        const int64_t elements = assay_tensor_elements(&tensors->item[i]);
        size.elements += elements;
        if (elements > size.largest) size.largest = elements;
    }
    return size;
}

bool assay_shrink_measure(const struct assay_case *the_case,
                          struct assay_shrink_measure *measure)
{
    const struct assay_operation *const operation = the_case->operation;
    union assay_problem_storage problem;
    union assay_numerics_storage numerics;
    struct assay_tensors tensors;
    struct assay_message ignored;
    struct assay_text line = assay_text_open(measure->line, sizeof(measure->line));
    if (operation->bind(the_case, &problem, &ignored) != ASSAY_RAN ||
        assay_numerics_parse(operation, &problem, the_case->numerics, &numerics,
                             &ignored) != ASSAY_RAN)
        return false;
    operation->shape(&problem, &tensors);
    assay_case_add_line(the_case, &line);
    if (!assay_text_fits(&line) ||
        assay_overrides_check(the_case, &tensors, &ignored) != ASSAY_RAN)
        return false;
    measure->size = size_of(&tensors);
    measure->length = line.length;
    return true;
}

static bool is_simpler(const struct assay_shrink_measure *a,
                       const struct assay_shrink_measure *b)
{
    if (a->size.elements != b->size.elements) return a->size.elements < b->size.elements;
    if (a->length != b->length) return a->length < b->length;
    return strcmp(a->line, b->line) < 0;
}

/* --- what has been tried ------------------------------------------------------------ */

/* The place of @hash, or the free one where it belongs. */
static uint64_t *find_passed(const struct assay_shrinker *shrinker, uint64_t hash)
{
    size_t at = (size_t)(hash % shrinker->passed_capacity);
    while (shrinker->passed[at] && shrinker->passed[at] != hash)
        at = (at + 1) % shrinker->passed_capacity;
    return &shrinker->passed[at];
}

static uint64_t hash_of(const char *line)
{
    const uint64_t hash = assay_text_hash(line);
    return hash ? hash : 1;
}

/* --- trials ------------------------------------------------------------------------- */

bool assay_shrinker_fails(struct assay_shrinker *shrinker,
                          const struct assay_case *the_case,
                          const struct assay_tensors *inputs)
{
    bool is_like = false;
    for (int i = 0; i < shrinker->tries && !is_like; i++) {
        struct assay_result result;
        if (assay_shrinker_is_over(shrinker)) return false;
        shrinker->trials++;
        if (inputs)
            assay_trial_run_on(&shrinker->plan, the_case, inputs, &result);
        else
            assay_trial_run(&shrinker->plan, the_case, NULL, 0, &result);
        is_like = assay_signature_is_like(&result, &shrinker->original);
        assay_result_close(&result);
    }
    return is_like;
}

/* The case with the measure @measure becomes the best if it fails. */
static bool take_if_failing(struct assay_shrinker *shrinker,
                            const struct assay_case *the_case,
                            const struct assay_shrink_measure *measure)
{
    const uint64_t hash = hash_of(measure->line);
    uint64_t *const place = find_passed(shrinker, hash);
    if (*place || assay_shrinker_is_over(shrinker)) return false;
    if (!assay_shrinker_fails(shrinker, the_case, NULL)) {
        *place = hash;
        return false;
    }
    shrinker->best = *the_case;
    shrinker->measure = *measure;
    return true;
}

static bool take_with_other_seed(struct assay_shrinker *shrinker,
                                 const struct assay_case *the_case)
{
    struct assay_case other = *the_case;
    struct assay_shrink_measure measure;
    for (other.seed = 1; other.seed <= ASSAY_SHRINK_SEEDS; other.seed++)
        if (other.seed != the_case->seed && assay_shrink_measure(&other, &measure) &&
            is_simpler(&measure, &shrinker->measure) &&
            take_if_failing(shrinker, &other, &measure))
            return true;
    return false;
}

/* Explicit elements move to where the tensors end now; what has no place is dropped. */
static void fit_element(const struct assay_tensors *tensors,
                        struct assay_explicit_bits element, struct assay_case *the_case)
{
    const struct assay_tensor *const tensor = assay_tensors_find(tensors, element.tensor);
    if (!tensor || tensor->is_output || tensor->rank != element.rank ||
        assay_tensor_elements(tensor) == 0)
        return;
    for (int axis = 0; axis < element.rank; axis++)
        if (element.index[axis] >= tensor->shape[axis])
            element.index[axis] = tensor->shape[axis] - 1;
    for (int i = 0; i < the_case->explicit_bits_count; i++) {
        const struct assay_explicit_bits *const other = &the_case->explicit_bits[i];
        if (strcmp(other->tensor, element.tensor) == 0 &&
            memcmp(other->index, element.index, sizeof(element.index)) == 0)
            return;
    }
    the_case->explicit_bits[the_case->explicit_bits_count++] = element;
}

static void fit_elements(struct assay_case *the_case)
{
    const int count = the_case->explicit_bits_count;
    union assay_problem_storage problem;
    struct assay_tensors tensors;
    struct assay_message ignored;
    if (count == 0 ||
        the_case->operation->bind(the_case, &problem, &ignored) != ASSAY_RAN)
        return;
    the_case->operation->shape(&problem, &tensors);
    the_case->explicit_bits_count = 0;
    for (int i = 0; i < count; i++)
        fit_element(&tensors, the_case->explicit_bits[i], the_case);
}

enum assay_attempt assay_shrinker_try(struct assay_shrinker *shrinker,
                                      const struct assay_case *wanted)
{
    struct assay_case fitted = *wanted;
    const struct assay_case *const the_case = &fitted;
    struct assay_shrink_measure measure;
    fit_elements(&fitted);
    if (!assay_shrink_measure(the_case, &measure)) return ASSAY_ATTEMPT_ILLEGAL;
    if (!is_simpler(&measure, &shrinker->measure)) return ASSAY_ATTEMPT_FAILED;
    return take_if_failing(shrinker, the_case, &measure) ||
                   (shrinker->tries_seeds && take_with_other_seed(shrinker, the_case))
               ? ASSAY_ATTEMPT_TAKEN
               : ASSAY_ATTEMPT_FAILED;
}

enum assay_attempt assay_shrinker_try_any(struct assay_shrinker *shrinker,
                                          const struct assay_case *the_case)
{
    struct assay_shrink_measure measure;
    if (!assay_shrink_measure(the_case, &measure)) return ASSAY_ATTEMPT_ILLEGAL;
    return take_if_failing(shrinker, the_case, &measure) ? ASSAY_ATTEMPT_TAKEN
                                                         : ASSAY_ATTEMPT_FAILED;
}
