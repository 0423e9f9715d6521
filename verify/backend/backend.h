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
};

/* What a backend says about the bits it is going to write. */
struct assay_backend_claim {
    bool has_numerics; /* false: bits unspecified, only the bound applies */
    char numerics[ASSAY_MAX_NUMERICS_TEXT];
};

struct assay_backend {
    const char *scheme, *argument, *summary; /* "model", "NUMERICS[,knob=value]" */
    bool is_trusted;                         /* may share the reference's process */
    bool is_recording;                       /* outputs did not begin as our poison */
    bool is_model; /* judged by the case's numerics, not by what it claims itself */
    enum assay_status (*open)(const char *argument, void **state, struct assay_message *);
    enum assay_status (*claim)(void *state, const struct assay_run_call *,
                               struct assay_backend_claim *, struct assay_message *);
    enum assay_status (*run)(void *state, const struct assay_run_call *,
                             struct assay_message *);
    void (*close)(void *state);
};

/* All backends, closed by NULL. */
extern const struct assay_backend *const assay_backends[];

/* Opens "SCHEME[:ARGUMENT]"; refuses unknown schemes, naming the nearest. */
enum assay_status assay_backend_open(const char *text,
                                     const struct assay_backend **backend, void **state,
                                     struct assay_message *message);

/* What the backend oracle writes for a value of the oracle: rounded once to @format; an
 * integer is what it is. */
uint32_t assay_oracle_bits(enum assay_format format, double value);

#endif
