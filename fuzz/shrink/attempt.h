/* SPDX-License-Identifier: MIT */
/* What the passes of the shrinker share: the best case so far, and the question whether
 * another one is simpler and fails in the same way. */
#ifndef ASSAY_FUZZ_SHRINK_ATTEMPT_H
#define ASSAY_FUZZ_SHRINK_ATTEMPT_H

#include "fuzz/shrink/shrink.h"

enum { ASSAY_SHRINK_SEEDS = 4, ASSAY_SHRINK_MAX_CHECKS = 32 };

/* Less is simpler: by elements, length of the line, which has the keys and the digits of
 * numbers in it, and the line itself. */
struct assay_shrink_measure {
    struct assay_case_size size;
    size_t length;
    char line[ASSAY_MAX_CASE_LINE];
};

struct assay_shrinker {
    const struct assay_shrink *shrink;
    struct assay_trial_plan plan; /* the shrink's, with no more checks than needed */
    const struct assay_check *checks[ASSAY_SHRINK_MAX_CHECKS + 1];
    struct assay_result original; /* how the case fails under the shrink's plan */
    struct assay_case best;
    struct assay_shrink_measure measure; /* of the best */
    int tries;                           /* before a case counts as passing */
    bool tries_seeds; /* a case that passes is tried with other seeds as well */
    int trials;
    double start; /* by the clock */
    double share; /* of trials and seconds that may be used up by now */
    bool was_cut; /* something was left untried */
    /* Hashes of the lines that passed, by open addressing; 0: a free place. */
    uint64_t *passed;
    size_t passed_capacity;
};

enum assay_attempt {
    ASSAY_ATTEMPT_TAKEN,  /* it is the best now */
    ASSAY_ATTEMPT_FAILED, /* no simpler, passes, fails otherwise, or time is up */
    ASSAY_ATTEMPT_ILLEGAL,
};

/* Whether the share of trials or seconds is used up; notes it. */
bool assay_shrinker_is_over(struct assay_shrinker *shrinker);

/* False for what bind, numerics, explicit elements or the length of lines refuse. */
bool assay_shrink_measure(const struct assay_case *the_case,
                          struct assay_shrink_measure *measure);

/* Takes the case if it is simpler than the best and fails like the original. */
enum assay_attempt assay_shrinker_try(struct assay_shrinker *shrinker,
                                      const struct assay_case *the_case);

/* The same however simple it is. */
enum assay_attempt assay_shrinker_try_any(struct assay_shrinker *shrinker,
                                          const struct assay_case *the_case);

/* Whether the case fails like the original on these inputs; NULL: its own. */
bool assay_shrinker_fails(struct assay_shrinker *shrinker,
                          const struct assay_case *the_case,
                          const struct assay_tensors *inputs);

/* The passes: each leaves the simplest case that it finds as the best. */

/* Choices, flags, fractions and whatever else has a default. */
void assay_shrink_options(struct assay_shrinker *shrinker);
/* Values of lists, together with what counts them. */
void assay_shrink_lists(struct assay_shrinker *shrinker);
/* Integers. */
void assay_shrink_dimensions(struct assay_shrinker *shrinker);
/* Parameter @index, or value @place of its list. */
void assay_shrink_integer(struct assay_shrinker *shrinker, int index, int place);
/* Seed, kind of data, numerics, and explicit elements as a whole. */
void assay_shrink_data(struct assay_shrinker *shrinker);
/* Data that are zero but for a few explicit elements. */
void assay_shrink_elements(struct assay_shrinker *shrinker);
/* Simpler values of explicit elements. */
void assay_shrink_values(struct assay_shrinker *shrinker);

#endif
