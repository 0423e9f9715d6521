/* SPDX-License-Identifier: MIT */
/* Further runs of a trial's candidate: on inputs of their own, into outputs of their own,
 * judged by the oracle like the first run. */
#ifndef ASSAY_VERIFY_CHECK_RERUN_H
#define ASSAY_VERIFY_CHECK_RERUN_H

#include "verify/check/trial.h"

enum { ASSAY_RERUN_POISON = 0x5A }; /* the other byte that outputs may begin with */

struct assay_rerun {
    struct assay_case the_case;
    union assay_problem_storage problem;
    struct assay_tensors tensors;
    struct assay_buffers buffers;
    bool has_map;                    /* made by the first run */
    uint8_t *map[ASSAY_MAX_TENSORS]; /* of outputs: see definedness.h */
    bool has_numerics;               /* false: those of the trial */
    struct assay_backend_claim claim;
    union assay_numerics_storage numerics;
};

/* Binds and shapes @the_case and takes the memory; inputs hold what unfilled ones hold.
 * To be closed whatever the status. */
enum assay_status assay_rerun_open(struct assay_rerun *rerun,
                                   const struct assay_case *the_case,
                                   struct assay_message *message);

/* For the trial's own case, with a copy of its inputs, row padding included. */
enum assay_status assay_rerun_open_same(struct assay_rerun *rerun,
                                        const struct assay_trial *trial,
                                        struct assay_message *message);

/* For another case than the trial's: asks the candidate what it claims about it, and
 * chooses the numerics of its bound. ASSAY_UNSUPPORTED also when those numerics make no
 * sense for that case. */
enum assay_status assay_rerun_claim(struct assay_rerun *rerun,
                                    const struct assay_trial *trial,
                                    struct assay_result *result);

/* Fills the outputs with @poison, runs the candidate with @launches launches and checks
 * guards; counts the run. On failure result->message says what was being done (@doing:
 * "repeat 3 of 10"). */
enum assay_status assay_rerun_run(const struct assay_trial *trial,
                                  struct assay_rerun *rerun, uint8_t poison, int launches,
                                  const char *doing, struct assay_result *result);

/* Holds the outputs to the oracle's bound: worst->elements are beyond it (or were touched
 * and may not be), and if there are any, the worst of them is in @worst with its output
 * and what it should have held. Only where the plan uses the oracle (asserted). */
enum assay_status assay_rerun_judge(const struct assay_trial *trial,
                                    struct assay_rerun *rerun, uint8_t poison,
                                    struct assay_finding *worst);

/* Outputs of a run, and what they held before. */
struct assay_run_outputs {
    const struct assay_tensors *tensors;
    uint8_t poison;
};

/* Whether an element still holds what the outputs began with. */
bool assay_run_left(const struct assay_run_outputs *run, int output, int64_t element);

/* Where two runs of one case differ: elements of @later, by the map of @rerun, that are
 * neither as in @earlier nor untouched in both. How many there are and the first of them
 * go to @first. */
void assay_rerun_compare(const struct assay_rerun *rerun,
                         const struct assay_run_outputs *earlier,
                         const struct assay_run_outputs *later,
                         struct assay_finding *first);

/* Puts one element of @tensors, outputs of the rerun, into a finding. */
void assay_rerun_show(const struct assay_rerun *rerun,
                      const struct assay_tensors *tensors, int output, int64_t element,
                      uint32_t reference, struct assay_finding *finding);

/* A new finding of the result, to be filled in. When there are too many, the last one is
 * overwritten, and stays a failure if it was one. */
struct assay_finding *assay_result_add_finding(struct assay_result *result,
                                               const char *check, bool is_failure);

void assay_rerun_close(struct assay_rerun *rerun);

#endif
