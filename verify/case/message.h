/* SPDX-License-Identifier: MIT */
/* Status of an execution, and the one sentence that goes with a failure. */
#ifndef ASSAY_VERIFY_CASE_MESSAGE_H
#define ASSAY_VERIFY_CASE_MESSAGE_H

enum assay_status {
    ASSAY_RAN,
    ASSAY_UNSUPPORTED, /* the backend does not do this case; not a failure */
    ASSAY_REFUSED,     /* the case or file is wrong: a user's mistake, exit 2 */
    ASSAY_CRASHED,
    ASSAY_HUNG,
    ASSAY_OUT_OF_MEMORY,
    ASSAY_DEVICE_LOST,
    ASSAY_FAILED, /* the environment: unreadable file, unwritable output */
    ASSAY_STATUS_COUNT
};
const char *assay_status_name(enum assay_status status);

/* A sentence: what is wrong, where, and what would be right. */
struct assay_message {
    char text[512];
};

/* Formats the sentence and returns @status, so that `return assay_fail(...)` reads well.
 * Control bytes and invalid UTF-8 from outside are replaced by '?'; a sentence that is
 * too long ends in "...". Arguments may point into @message itself. */
__attribute__((format(printf, 3, 4))) enum assay_status
assay_fail(struct assay_message *message, enum assay_status status, const char *format,
           ...);

/* The name nearest to @word among @names (NULL-terminated); NULL if none is near enough
 * to suggest. Near: equal but for upper case, at most a third of the letters (at least
 * one) inserted, dropped, replaced or swapped with a neighbour, or a longer name that
 * begins with @word, which counts as one edit. */
const char *assay_nearest(const char *word, const char *const *names);

#endif
