/* SPDX-License-Identifier: MIT */
/* Something that computes the outputs of a case: "SCHEME[:ARGUMENT]". */
#ifndef ASSAY_VERIFY_BACKEND_BACKEND_H
#define ASSAY_VERIFY_BACKEND_BACKEND_H

#include "verify/operation/operation.h"

/* A case on its way to a backend. The case line says everything; case and problem are
 * what it was parsed into. */
struct assay_run_call {
    const struct assay_case *the_case;
    const void *problem;
    const struct assay_tensors *tensors; /* inputs filled; outputs to be written */
    int launches; /* how often it computes the outputs before they are fetched, 0: once;
                     the backends that launch nothing compute them once */
};

/* What a backend says about the bits it is going to write. */
struct assay_backend_claim {
    bool has_numerics; /* false: bits unspecified, only the bound applies */
    char numerics[ASSAY_MAX_NUMERICS_TEXT];
    bool is_deterministic, is_batch_invariant;
};

/* How much somebody's code may take for one case. */
struct assay_backend_limits {
    double seconds;
    double warmup_seconds; /* for the first case of a program's process instead */
    int64_t memory_bytes;  /* beside the tensors; 0: three quarters of the machine's */
    bool is_fresh;         /* a new process for every case */
};
extern const struct assay_backend_limits assay_backend_default_limits;

/* What is to be said beside a case, whatever became of it. */
struct assay_backend_notes {
    char warning[384];     /* empty: none */
    char output[4096 + 1]; /* the beginning of stdout and stderr */
    int64_t output_bytes;  /* of all of it, as far as it was kept */
    double launch_seconds; /* that all launches took by its own clock; 0: not measured */
    bool has_changed_inputs; /* it put the plan that it used into the inputs */
};

struct assay_backend {
    const char *scheme, *argument, *summary; /* "model", "NUMERICS[,knob=value]" */
    bool is_trusted;                         /* may share the reference's process */
    bool is_recording;                       /* outputs did not begin as our poison */
    bool is_model; /* judged by the case's numerics, not by what it claims itself */
    enum assay_status (*open)(const char *argument, void **state, struct assay_message *);
    /* Starts what has limits; called once after open. NULL: nothing has. */
    enum assay_status (*start)(void *state, const struct assay_backend_limits *,
                               struct assay_message *);
    enum assay_status (*claim)(void *state, const struct assay_run_call *,
                               struct assay_backend_claim *, struct assay_message *);
    enum assay_status (*run)(void *state, const struct assay_run_call *,
                             struct assay_message *);
    /* About the last claim and run together. NULL: there is nothing to say. */
    void (*notes)(void *state, struct assay_backend_notes *);
    void (*close)(void *state);
};

/* All backends, closed by NULL. */
extern const struct assay_backend *const assay_backends[];

/* Opens "SCHEME[:ARGUMENT]"; refuses unknown schemes, naming the nearest. @limits: NULL
 * for the default ones. */
enum assay_status assay_backend_open(const char *text,
                                     const struct assay_backend_limits *limits,
                                     const struct assay_backend **backend, void **state,
                                     struct assay_message *message);

/* What the backend oracle writes for a value of the oracle: rounded once to @format; an
 * integer is what it is. */
uint32_t assay_oracle_bits(enum assay_format format, double value);

#endif
