/* SPDX-License-Identifier: MIT */
/* A candidate that computes as the model does with given numerics, and remembers the
 * cases that it was run on. */
#ifndef ASSAY_TESTS_VERIFY_KNOB_WITNESS_H
#define ASSAY_TESTS_VERIFY_KNOB_WITNESS_H

#include "tests/verify/knob_settings.h"
#include "verify/backend/backend.h"

struct witness {
    const void *numerics;
    int count, capacity;
    struct assay_case *the_case;
};

static inline struct witness *open_witness(const void *numerics)
{
    struct witness *const witness = calloc(1, sizeof(*witness));
    ck_assert_ptr_nonnull(witness);
    witness->numerics = numerics;
    return witness;
}

static inline void close_witness(struct witness *witness)
{
    free(witness->the_case);
    free(witness);
}

static inline enum assay_status witness_claim(void *state,
                                              const struct assay_run_call *call,
                                              struct assay_backend_claim *claim,
                                              struct assay_message *message)
{
    (void)state;
    (void)call;
    (void)message;
    *claim = (struct assay_backend_claim){ .has_numerics = false };
    return ASSAY_RAN;
}

static inline enum assay_status
witness_run(void *state, const struct assay_run_call *call, struct assay_message *message)
{
    struct witness *const witness = state;
    const struct assay_operation *const operation = call->the_case->operation;
    const enum assay_status status =
        operation->check_numerics(call->problem, witness->numerics, message);
    if (status != ASSAY_RAN) return ASSAY_UNSUPPORTED;
    if (witness->count == witness->capacity) {
        witness->capacity = 2 * witness->capacity + 16;
        witness->the_case = realloc(witness->the_case, (size_t)witness->capacity *
                                                           sizeof(*witness->the_case));
        ck_assert_ptr_nonnull(witness->the_case);
    }
    witness->the_case[witness->count++] = *call->the_case;
    return assay_run_model(operation, call->problem, witness->numerics, call->tensors);
}

static const struct assay_backend witness_backend = {
    .scheme = "witness",
    .summary = "the model, watched",
    .is_trusted = true,
    .claim = witness_claim,
    .run = witness_run,
};

static inline bool differ_on(const struct assay_case *the_case, const void *a,
                             const void *b)
{
    char line[ASSAY_MAX_CASE_LINE];
    struct assay_message ignored;
    assay_case_format(the_case, line, sizeof(line));
    struct searched *const searched = open_searched(line);
    const struct assay_operation *const operation = the_case->operation;
    const bool is_legal =
        operation->check_numerics(searched->problem, a, &ignored) == ASSAY_RAN &&
        operation->check_numerics(searched->problem, b, &ignored) == ASSAY_RAN;
    const bool differ = is_legal && known_bits(searched, a) != known_bits(searched, b);
    close_searched(searched);
    return differ;
}

/* Whether the model computes other bits on one of the cases that the witness was run on;
 * the last ones first. */
static inline bool witness_tells_apart(const struct witness *witness, const void *a,
                                       const void *b)
{
    for (int i = witness->count - 1; i >= 0; i--)
        if (differ_on(&witness->the_case[i], a, b)) return true;
    return false;
}

#endif
