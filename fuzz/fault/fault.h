/* SPDX-License-Identifier: MIT */
/* Planted faults: mistakes of kernels, and of verifiers, that a verifier has to find. A
 * row a fault, a table an area. A fault changes copies of its own: inputs, problem,
 * numerics, stages, outputs when they are there; never the arithmetic. */
#ifndef ASSAY_FUZZ_FAULT_FAULT_H
#define ASSAY_FUZZ_FAULT_FAULT_H

#include "verify/backend/backend.h"
#include "verify/check/trial.h"

enum assay_fault_kind {
    ASSAY_FAULT_ROUNDING,  /* the right function, rounded otherwise: bitwise finds it,
                              and identify names it */
    ASSAY_FAULT_FUNCTION,  /* another function, or one that is coarser than a precision
                              class allows: a check without the model finds it */
    ASSAY_FAULT_EXECUTION, /* right now and then: a check without the model finds it */
    ASSAY_FAULT_VERIFIER,  /* of the verifier itself: the meta-test finds it */
    ASSAY_FAULT_KINDS
};
extern const char *const assay_fault_kind_names[ASSAY_FAULT_KINDS];

/* A run of the model with a fault in it. */
struct assay_fault_run {
    const struct assay_case *the_case;
    void *problem;  /* a copy, of ASSAY_MAX_PROBLEM_BYTES */
    void *numerics; /* a copy, of ASSAY_MAX_NUMERICS_BYTES */
    /* Windows of its own. Data of outputs are the caller's; data of inputs are copies
     * where the fault has the hook before, else the caller's and not to be changed. */
    struct assay_tensors *tensors;
    int64_t runs; /* of this backend before this one */
    int launches; /* that are asked for, at least 1 */
    float *kept;  /* of one run for the next one; 0 at first */
};

/* What a fault of the verifier changes: copies. */
struct assay_fault_verifier {
    struct assay_operation *operation; /* of the case that is judged */
    struct assay_trial_plan *plan;
    const struct assay_check **checks; /* the plan's own list, closed by NULL */
};

enum { ASSAY_MAX_FAULT_CASES = 4 };

struct assay_fault {                      /* tables are closed by a NULL name */
    const char *name, *class_id, *report; /* "promote-512", "C14b", "R35"; report: NULL
                                             where the class has none of its own */
    const char *meaning;                  /* one line */
    const char *operation;                /* the only one that has the fault */
    enum assay_fault_kind kind;
    const char *cases[ASSAY_MAX_FAULT_CASES]; /* lines that bring it out, the first
                                                 surely; closed by NULL */

    /* Of kernels. Any of them may be NULL. */
    void (*before)(struct assay_fault_run *); /* what the model is given */
    void (*numerics)(void *numerics);         /* an int or a stage, when before is done */
    void (*after)(struct assay_fault_run *);  /* what it leaves behind */

    /* Of the verifier, instead: what is broken, and the fault of a kernel that the
     * verifier does not see any more, or NULL: it then finds fault with the model. */
    void (*verifier)(struct assay_fault_verifier *);
    const char *witness;

    const char *must_catch; /* checks that have to, with a space between; NULL: those
                               that the kind demands */
};

struct assay_fault_area { /* tables are closed by a NULL name */
    const char *name, *summary;
    const struct assay_fault *faults;
};
extern const struct assay_fault_area assay_fault_areas[];

/* The fault of that name; NULL if there is none. */
const struct assay_fault *assay_fault_find(const char *name);

/* The same for a name from outside: refuses what is no fault, naming the nearest. */
enum assay_status assay_fault_need(const char *name, const struct assay_fault **fault,
                                   struct assay_message *message);

/* Fault number @index in the order of the areas; NULL behind the last one. */
const struct assay_fault *assay_fault_at(int index);

/* The area that the fault belongs to. */
const struct assay_fault_area *assay_fault_area_of(const struct assay_fault *fault);

/* Backend "fault:NAME": the model with that fault, claiming the model's numerics. */
extern const struct assay_backend assay_backend_fault;

/* For the tables. */

extern const struct assay_fault assay_faults_accumulate[], assay_faults_scale[],
    assay_faults_encode[], assay_faults_softmax[], assay_faults_split[],
    assay_faults_index[], assay_faults_layout[], assay_faults_execution[],
    assay_faults_verifier[];

/* Input or output of that name; the case has it (asserted). */
const struct assay_tensor *assay_fault_tensor(const struct assay_fault_run *run,
                                              const char *name);

/* Whether the run's tensors have it. */
bool assay_fault_has(const struct assay_fault_run *run, const char *name);

/* The first output. */
const struct assay_tensor *assay_fault_output(const struct assay_fault_run *run);

/* Bits of all elements, row-major; returns their number, or 0 when there are more than
 * ASSAY_FAULT_ELEMENTS: the case is then too large for the fault. */
enum { ASSAY_FAULT_ELEMENTS = 1 << 15 };
int64_t assay_fault_read(const struct assay_tensor *tensor, uint32_t *bits);

/* Value of an f32, bf16, f16 or FP8 element, and the nearest code of a value. */
float assay_fault_value(const struct assay_tensor *tensor, int64_t element);
void assay_fault_set_value(const struct assay_tensor *tensor, int64_t element,
                           float value);

#endif
