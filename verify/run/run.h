/* SPDX-License-Identifier: MIT */
/* Running many cases: here or in several processes, with a journal or without. Cases are
 * numbered from 0; results are handed on in that order, whatever the order in which they
 * come to be. */
#ifndef ASSAY_VERIFY_RUN_RUN_H
#define ASSAY_VERIFY_RUN_RUN_H

#include "verify/check/result.h"
#include "verify/report/brief.h"
#include "verify/run/journal.h"

enum { ASSAY_MAX_JOBS = 256 };

struct assay_run_case { /* texts are borrowed until the next case is asked for */
    int64_t number;
    const char *line;     /* NULL: a recorded one, */
    const char *recorded; /* case number index of that file; NULL: the number says it */
    int index;
    bool in_brief; /* a result that is no failure may be told in brief */
};

/* Runs a case here; @result is to be closed. Another status than ASSAY_RAN ends the run:
 * what is wrong is not the case. */
typedef enum assay_status assay_run_function(void *context, const struct assay_run_case *,
                                             struct assay_result *result,
                                             struct assay_message *);

struct assay_run_plan {
    void *context; /* of the functions */
    /* Fills in all but the number; false: there are no more cases. Not asked about those
     * that a journal has finished. */
    bool (*find)(void *context, struct assay_run_case *);
    assay_run_function *run; /* unless there are jobs */
    /* Fills in what a result says about the case itself, for one that can't be run:
     * case_line, source, operation. */
    assay_run_function *name;
    /* Takes a result. Another status than ASSAY_RAN ends the run. */
    enum assay_status (*take)(void *context, const struct assay_result *,
                              struct assay_message *);
    /* Not NULL: results that assay_brief_is_enough for are kept and told in brief, and
     * come here; failures come to take. (With neither jobs nor a journal all do.) */
    enum assay_status (*take_brief)(void *context, const struct assay_brief *,
                                    struct assay_message *);
    int64_t cases;  /* how many there are, for whoever waits; 0: not known */
    double seconds; /* after which no further case begins, but for gaps among those that
                       are finished; a journal is not ended then; 0: no limit */
    const int64_t *findings; /* a count to be shown to whoever waits; NULL: none */
    int64_t *ran;            /* counts the cases that were run now; NULL: nobody asks */
    /* 1: cases run here. More: in so many processes, this program again with @words
     * (NULL-terminated, words[0] its name), each of which calls assay_job_serve. */
    int jobs;
    char *const *job_words;
    const char *folder; /* of the journal; NULL: none is kept */
    struct assay_journal_header header;
};

/* Runs all cases. With a journal, those that are finished there are not run again, and
 * their results taken as if they had been. A case that was being run when two earlier
 * runs died is run after all others, with no other beside it; one that ended three is
 * not run any more: its result has ASSAY_CRASHED and says so. */
enum assay_status assay_run(const struct assay_run_plan *plan,
                            struct assay_message *message);

#endif
