/* SPDX-License-Identifier: MIT */
/* SIGINT, SIGTERM and SIGHUP, put off for as long as there is something to clean up. */
#ifndef ASSAY_VERIFY_WORKER_INTERRUPT_H
#define ASSAY_VERIFY_WORKER_INTERRUPT_H

#include <stdbool.h>

/* From now on these signals are only noted, whatever the process has arranged for them,
 * but for those that it ignores. Not to be nested. */
void assay_interrupt_hold(void);

/* Whether one has come since. */
bool assay_interrupt_has_come(void);

/* As before; what has come takes effect now. */
void assay_interrupt_release(void);

#endif
