/* SPDX-License-Identifier: MIT */
/* The answer of a program, taken apart. */
#ifndef ASSAY_VERIFY_WORKER_ANSWER_H
#define ASSAY_VERIFY_WORKER_ANSWER_H

#include "verify/case/message.h"

#include <stdbool.h>

struct assay_answer {
    enum assay_status status; /* ASSAY_RAN: ok */
    const char *sentence;     /* of the others, borrowed from the text; may be "" */
    double seconds;           /* of ok; 0: not said */
};

/* Reads what follows "assay: " (program.h). False when that is no answer. */
bool assay_answer_read(const char *text, struct assay_answer *answer);

#endif
