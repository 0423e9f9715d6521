/* SPDX-License-Identifier: MIT */
/* A case whose outputs a test writes, and the search for what computed them. */
#ifndef ASSAY_TESTS_VERIFY_SEARCHED_CASE_H
#define ASSAY_TESTS_VERIFY_SEARCHED_CASE_H

#include "verify/check/inputs.h"
#include "verify/identify/knob_search.h"
#include "verify/operation/numerics.h"
#include "verify/operation/parts.h"

#include <check.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

struct searched {
    _Alignas(max_align_t) char problem[ASSAY_MAX_PROBLEM_BYTES];
    struct assay_case the_case;
    struct assay_tensors tensors;
    struct assay_buffers buffers;
    struct assay_observation observation;
};

static inline struct searched *open_searched(const char *line)
{
    struct searched *const searched = calloc(1, sizeof(*searched));
    struct assay_message message;
    ck_assert_ptr_nonnull(searched);
    /* Thousands of tiny models follow: threads would only wait for each other. */
    omp_set_num_threads(1);
    ck_assert_msg(assay_case_parse(line, &searched->the_case, &message) == ASSAY_RAN &&
                      assay_inputs_open(&searched->the_case, NULL, 0, searched->problem,
                                        &searched->tensors, &searched->buffers,
                                        &message) == ASSAY_RAN,
                  "%s: %s", line, message.text);
    searched->observation = (struct assay_observation){
        .operation = searched->the_case.operation,
        .problem = searched->problem,
        .tensors = &searched->tensors,
        .is_recording = true,
    };
    ck_assert(assay_observation_open(&searched->observation) == ASSAY_RAN);
    return searched;
}

static inline void close_searched(struct searched *searched)
{
    assay_observation_close(&searched->observation);
    assay_buffers_close(&searched->buffers);
    free(searched);
}

/* The only output, or the first. */
static inline struct assay_tensor *searched_output(struct searched *searched)
{
    int at = 0;
    while (!searched->tensors.item[at].is_output)
        at++;
    return &searched->tensors.item[at];
}

/* Lets the model write the outputs. */
static inline void write_model(const struct searched *searched, const char *numerics_text)
{
    _Alignas(max_align_t) char numerics[ASSAY_MAX_NUMERICS_BYTES];
    struct assay_message message;
    const struct assay_operation *const operation = searched->the_case.operation;
    ck_assert_msg(assay_numerics_parse(operation, searched->problem, numerics_text,
                                       numerics, &message) == ASSAY_RAN,
                  "%s", message.text);
    assay_buffers_poison(&searched->tensors);
    ck_assert(assay_run_model(operation, searched->problem, numerics,
                              &searched->tensors) == ASSAY_RAN);
}

/* Hash of all outputs that the model writes; they stay. */
static inline uint64_t bits_of_model(const struct searched *searched,
                                     const char *numerics_text)
{
    uint64_t hash = 0;
    struct assay_tensors kept = searched->tensors;
    struct assay_buffers buffers;
    struct assay_message message;
    for (int i = 0; i < kept.count; i++)
        if (kept.item[i].is_output) kept.item[i].data = NULL;
    ck_assert(assay_buffers_open(&buffers, &kept, &message) == ASSAY_RAN);
    struct searched other = *searched;
    other.tensors = kept;
    write_model(&other, numerics_text);
    for (int i = 0; i < kept.count; i++)
        if (kept.item[i].is_output) hash = hash * 31 + assay_tensor_hash(&kept.item[i]);
    assay_buffers_close(&buffers);
    return hash;
}

static inline void search_case(const struct searched *searched, bool with_pairs,
                               struct assay_knob_search *search)
{
    const struct assay_knob_search_plan plan = { .with_pairs = with_pairs,
                                                 .seconds = 1000 };
    ck_assert(assay_knob_search_run(&searched->observation, &plan, search) == ASSAY_RAN);
}

#endif
