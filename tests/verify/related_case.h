/* SPDX-License-Identifier: MIT */
/* A case and the one that a relation makes of it, run by a kernel of the test or by the
 * model, and what relation and bound say about the second run. */
#ifndef ASSAY_TESTS_VERIFY_RELATED_CASE_H
#define ASSAY_TESTS_VERIFY_RELATED_CASE_H

#include "ref/format/minifloat.h"
#include "tests/verify/judged_case.h"
#include "verify/data/buffers.h"
#include "verify/data/overrides.h"
#include "verify/operation/definedness.h"
#include "verify/operation/expectation.h"
#include "verify/operation/numerics.h"
#include "verify/operation/parts.h"

#include <math.h>
#include <stdlib.h>

struct related_run { /* one of the two, with all it owns */
    struct assay_case the_case;
    union assay_problem_storage problem, numerics;
    struct assay_tensors tensors;
    struct assay_buffers buffers;
    struct assay_property_run view;
};

struct related_case {
    const struct assay_property *property;
    struct related_run first, second;
};

/* Computes the outputs of a run, right or wrong. */
typedef void related_kernel(const struct related_run *run);

/* What became of the second run. */
struct related_verdict {
    bool applies;             /* otherwise nothing was run */
    int64_t judged, wrong;    /* defined elements whose bits the relation knows */
    int64_t defined, outside; /* all defined elements, and those beyond the bound */
    int64_t first_outside;    /* of the first run; not asked of the model */
    int64_t touched;          /* elements changed that had to be left alone */
    int output;               /* of the first wrong element, with that */
    int64_t element;
    uint32_t found, wanted;
};

static inline void run_model(const struct related_run *run)
{
    ck_assert(assay_run_model(run->the_case.operation, &run->problem, &run->numerics,
                              &run->tensors) == ASSAY_RAN);
}

static inline const struct assay_property *
property_named(const struct assay_operation *operation, const char *name)
{
    ck_assert_msg(operation->properties != NULL, "%s has no relations", operation->name);
    for (const struct assay_property *p = operation->properties; p->name; p++)
        if (strcmp(p->name, name) == 0) return p;
    ck_abort_msg("%s has no relation %s", operation->name, name);
    return NULL;
}

/* Binds, shapes and takes memory; inputs stay unfilled. */
static inline void open_related_run(struct related_run *run)
{
    struct assay_message message = { "" };
    const struct assay_operation *const operation = run->the_case.operation;
    char line[ASSAY_MAX_CASE_LINE];
    assay_case_format(&run->the_case, line, sizeof(line));
    ck_assert_msg(operation->bind(&run->the_case, &run->problem, &message) == ASSAY_RAN,
                  "%s: %s", line, message.text);
    ck_assert_msg(assay_numerics_parse(operation, &run->problem, run->the_case.numerics,
                                       &run->numerics, &message) == ASSAY_RAN,
                  "%s: %s", line, message.text);
    run->tensors.count = 0;
    operation->shape(&run->problem, &run->tensors);
    ck_assert(assay_buffers_open(&run->buffers, &run->tensors, &message) == ASSAY_RAN);
    run->view =
        (struct assay_property_run){ &run->the_case, &run->problem, &run->tensors };
}

static inline void refuse_bad_inputs(const struct related_run *run)
{
    struct assay_message message = { "" };
    const struct assay_operation *const operation = run->the_case.operation;
    if (!operation->check_inputs || run->the_case.is_unsafe) return;
    ck_assert_msg(operation->check_inputs(&run->problem, &run->tensors, &message) ==
                      ASSAY_RAN,
                  "%s", message.text);
}

static inline uint32_t poison_of(const struct assay_tensor *tensor)
{
    uint32_t bits = 0;
    memset(&bits, ASSAY_BUFFER_POISON, assay_format_bytes(tensor->format));
    return bits;
}

static inline bool is_poisoned(const struct assay_tensor *tensor)
{
    const int64_t elements = assay_tensor_elements(tensor);
    int64_t poisoned = 0;
    for (int64_t i = 0; i < elements; i++)
        poisoned += assay_tensor_bits(tensor, i) == poison_of(tensor);
    return poisoned == elements;
}

/* Fills the second run's inputs, and makes sure that the relation writes all of them and
 * neither the outputs nor the first run. */
static inline bool transform_inputs(struct related_case *related)
{
    const struct assay_tensors *const second = &related->second.tensors;
    const uint64_t before = assay_inputs_hash(&related->first.tensors);
    uint64_t hash[2];
    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < second->count; i++)
            if (!second->item[i].is_output)
                memset(second->item[i].data, again ? 0x00 : ASSAY_BUFFER_PADDING,
                       (size_t)assay_tensor_bytes(&second->item[i]));
        if (!related->property->transform(&related->first.view, &related->second.view))
            return false;
        hash[again] = assay_inputs_hash(second);
    }
    ck_assert_msg(hash[0] == hash[1], "%s leaves inputs unwritten",
                  related->property->name);
    ck_assert(assay_inputs_hash(&related->first.tensors) == before);
    for (int i = 0; i < second->count; i++)
        ck_assert(!second->item[i].is_output || is_poisoned(&second->item[i]));
    refuse_bad_inputs(&related->second);
    return true;
}

static inline void close_related(struct related_case *related)
{
    if (!related) return;
    assay_buffers_close(&related->first.buffers);
    assay_buffers_close(&related->second.buffers);
    free(related);
}

/* Both runs with their inputs; NULL if the relation says nothing about the case. @change
 * may alter the first run's inputs and may be NULL. To be closed by the caller. */
static inline struct related_case *
open_related(const char *text, const char *property,
             void (*change)(const struct assay_tensors *tensors))
{
    struct related_case *const related = calloc(1, sizeof(*related));
    struct related_run *const first = &related->first, *const second = &related->second;
    struct assay_message message = { "" };
    ck_assert(related != NULL);
    first->the_case = parsed(text);
    related->property = property_named(first->the_case.operation, property);
    open_related_run(first);
    first->the_case.operation->fill(&first->problem, first->the_case.data,
                                    first->the_case.seed, &first->tensors);
    ck_assert(assay_overrides_apply(&first->the_case, &first->tensors, &message) ==
              ASSAY_RAN);
    if (change) change(&first->tensors);
    refuse_bad_inputs(first);
    second->the_case = first->the_case;
    second->the_case.explicit_bits_count = 0;
    bool applies = !related->property->derive ||
                   related->property->derive(&first->view, &second->the_case);
    if (applies) {
        open_related_run(second);
        applies = transform_inputs(related);
    }
    if (applies) return related;
    close_related(related);
    return NULL;
}

static inline bool is_within(double found, double value, double bound)
{
    if (isinf(bound)) return true;
    if (isnan(found) || isnan(value)) return isnan(found) && isnan(value);
    return found == value || fabs(found - value) <= bound;
}

/* How many defined elements the oracle says are beyond the bound. */
static inline int64_t outside_bound(const struct related_run *run, int output,
                                    const uint8_t *map)
{
    int64_t outside = 0;
    const struct assay_operation *const operation = run->the_case.operation;
    const struct assay_tensor *const tensor = &run->tensors.item[output];
    const struct assay_minifloat *const format = assay_minifloat(tensor->format);
    for (int64_t part = 0; part < operation->parts(&run->problem); part++) {
        struct assay_part_expectation oracle;
        ck_assert(assay_expect_part(operation, &run->problem, &run->numerics,
                                    &run->tensors, part, &oracle) == ASSAY_RAN);
        for (struct assay_region_walk at =
                 assay_region_begin(tensor, &oracle.region[output]);
             at.index < at.count; assay_region_next(&at)) {
            if (assay_definedness_at(map, at.element) != ASSAY_DEFINED) continue;
            const uint32_t bits = assay_tensor_bits(tensor, at.element);
            const double found = format ? assay_minifloat_decode(format, bits) : bits;
            outside += !is_within(found, oracle.expected[output].value[at.index],
                                  oracle.expected[output].bound[at.index]);
        }
        assay_part_expectation_close(&oracle);
    }
    return outside;
}

static inline uint8_t *map_of(const struct related_run *run, int output)
{
    uint8_t *map;
    ck_assert(assay_definedness_map(run->the_case.operation, &run->problem, &run->tensors,
                                    output, &map) == ASSAY_RAN);
    return map;
}

static inline void judge_element(const struct related_case *related, int output,
                                 int64_t element, struct related_verdict *verdict)
{
    uint32_t wanted = 0;
    const uint32_t found =
        assay_tensor_bits(&related->second.tensors.item[output], element);
    verdict->defined++;
    if (!related->property->expect ||
        !related->property->expect(&related->first.view, &related->second.view, output,
                                   element, &wanted))
        return;
    verdict->judged++;
    if (found != wanted && verdict->wrong++ == 0) {
        verdict->output = output;
        verdict->element = element;
        verdict->found = found;
        verdict->wanted = wanted;
    }
}

/* Runs both with @kernel, NULL being the model, and judges the second. */
static inline struct related_verdict judge_related(const struct related_case *related,
                                                   related_kernel *kernel)
{
    struct related_verdict verdict = { .applies = true };
    const struct related_run *const second = &related->second;
    (kernel ? kernel : run_model)(&related->first);
    (kernel ? kernel : run_model)(second);
    ck_assert(assay_buffers_are_intact(&second->buffers, &second->tensors));
    for (int i = 0; i < second->tensors.count; i++) {
        const struct assay_tensor *const tensor = &second->tensors.item[i];
        if (!tensor->is_output) continue;
        uint8_t *const map = map_of(second, i), *const first = map_of(&related->first, i);
        for (int64_t element = 0; element < assay_tensor_elements(tensor); element++) {
            const enum assay_definedness what = assay_definedness_at(map, element);
            if (what == ASSAY_DEFINED) judge_element(related, i, element, &verdict);
            if (what == ASSAY_UNTOUCHED)
                verdict.touched +=
                    assay_tensor_bits(tensor, element) != poison_of(tensor);
        }
        verdict.outside += outside_bound(second, i, map);
        if (kernel) verdict.first_outside += outside_bound(&related->first, i, first);
        free(map);
        free(first);
    }
    return verdict;
}

/* The whole way: a case line, a relation, a kernel (NULL: the model). */
static inline struct related_verdict relate(const char *text, const char *property,
                                            related_kernel *kernel)
{
    struct related_case *const related = open_related(text, property, NULL);
    if (!related) return (struct related_verdict){ .applies = false };
    const struct related_verdict verdict = judge_related(related, kernel);
    close_related(related);
    return verdict;
}

static inline void expect_kept(const char *text, const char *property,
                               const struct related_verdict *verdict)
{
    ck_assert_msg(verdict->wrong == 0,
                  "%s: %s: %lld of %lld elements are wrong, first element %lld of tensor "
                  "%d: %x, not %x",
                  text, property, (long long)verdict->wrong, (long long)verdict->judged,
                  (long long)verdict->element, verdict->output, verdict->found,
                  verdict->wanted);
    ck_assert_msg(verdict->outside == 0 && verdict->touched == 0,
                  "%s: %s: %lld outside, %lld touched", text, property,
                  (long long)verdict->outside, (long long)verdict->touched);
}

/* The model keeps to the relation, which has to apply. Returns the elements whose bits
 * were judged. */
static inline int64_t expect_model_keeps_to(const char *text, const char *property)
{
    const struct related_verdict verdict = relate(text, property, NULL);
    ck_assert_msg(verdict.applies, "%s: %s does not apply", text, property);
    expect_kept(text, property, &verdict);
    return verdict.judged;
}

/* The model keeps to every relation that applies; returns how many do. */
static inline int expect_model_keeps_to_all(const char *text)
{
    const struct assay_case the_case = parsed(text);
    int count = 0;
    for (const struct assay_property *p = the_case.operation->properties; p->name; p++) {
        const struct related_verdict verdict = relate(text, p->name, NULL);
        expect_kept(text, p->name, &verdict);
        count += verdict.applies;
    }
    return count;
}

/* Whether a wrong kernel is found out by the relation, though the bound of the first case
 * says nothing against it. */
static inline bool is_caught(const struct related_verdict *verdict)
{
    return verdict->first_outside == 0 &&
           (verdict->wrong > 0 || verdict->outside > 0 || verdict->touched > 0);
}

#endif
