/* SPDX-License-Identifier: MIT */
/* Planted faults against all checks: which of them find which fault, on which case, and
 * whether the clean model is left in peace on the same cases. */
#ifndef ASSAY_FUZZ_SELFTEST_SELFTEST_H
#define ASSAY_FUZZ_SELFTEST_SELFTEST_H

#include "fuzz/fault/fault.h"

enum {
    ASSAY_MAX_COLUMNS = 24,
    ASSAY_SELFTEST_CASES = 20,  /* of one fault, at most */
    ASSAY_SELFTEST_CHANCES = 3, /* cases that show a fault, for each check */
    ASSAY_SELFTEST_QUIET = 5,   /* cases that do not, one after the other: enough */
    ASSAY_SELFTEST_IDENTIFY_SECONDS = 8, /* for one answer */
};

/* What may find a fault: a check, the guards around outputs, another people's rule; and
 * "identify", which is asked about roundings, where bitwise finds them, and has to name
 * them. */
struct assay_column {
    const char *name;
    bool is_criterion, uses_model;
};

/* A fault before one of the columns. A criterion that rejects the model as well neither
 * judges nor finds anything. */
struct assay_kill {
    int chances; /* cases that it judged and that showed the fault to it or to another */
    int cases;   /* that had been run when it found the fault; 0: it never did */
};

struct assay_fault_outcome {
    const struct assay_fault *fault;
    struct assay_kill kill[ASSAY_MAX_COLUMNS];
    int cases;                           /* that were run */
    int quiet;                           /* of them, the last ones that did not show it */
    bool is_caught;                      /* as its kind and its row demand */
    char case_line[ASSAY_MAX_CASE_LINE]; /* the first that showed it; empty: none */
    char remark[256]; /* a clause: what was missed, or what the meta-test saw */
    double seconds;
};

struct assay_clean_case {
    char *line;
    uint32_t rejected; /* bit i: column i, a criterion, rejects even the model */
};

struct assay_selftest {
    int cases, chances; /* limits; 0: those above */
    /* Filled in: */
    int column_count;
    struct assay_column column[ASSAY_MAX_COLUMNS];
    int clean_cases, alarms; /* of the clean model */
    int clean_judged[ASSAY_MAX_COLUMNS], clean_rejected[ASSAY_MAX_COLUMNS];
    char alarm[ASSAY_MAX_CASE_LINE + 512]; /* the first: a sentence and its case */
    struct assay_message message;
    /* Its own. */
    struct assay_trial_plan plan; /* all but the candidate */
    int clean_count, clean_capacity;
    struct assay_clean_case *clean; /* those that the clean model has been judged on */
};

void assay_selftest_open(struct assay_selftest *selftest);

/* Runs one fault. Another status than ASSAY_RAN is the environment's failure, with its
 * sentence in selftest->message. */
enum assay_status assay_selftest_run(struct assay_selftest *selftest,
                                     const struct assay_fault *fault,
                                     struct assay_fault_outcome *outcome);

void assay_selftest_close(struct assay_selftest *selftest);

/* For the files of this folder. */

/* Which columns a result speaks for, and which of them found fault. */
struct assay_column_verdicts {
    bool has_judged[ASSAY_MAX_COLUMNS], has_found[ASSAY_MAX_COLUMNS];
    bool is_shown; /* some column found fault */
};
void assay_selftest_judge(const struct assay_selftest *selftest,
                          const struct assay_result *result,
                          struct assay_column_verdicts *verdicts);

/* Case number @index of a fault: its own, then those with other kinds of data, then drawn
 * ones. False: there is none of that number. */
bool assay_selftest_case(const struct assay_fault *fault, int index,
                         struct assay_case *the_case);

/* Judges the case on a backend that is opened for it alone. */
enum assay_status assay_selftest_trial(struct assay_selftest *selftest,
                                       const struct assay_trial_plan *plan,
                                       const char *backend,
                                       const struct assay_case *the_case,
                                       struct assay_result *result);

/* Judges the clean model, once a case line; false alarms are counted. @rejected: see
 * assay_clean_case. */
enum assay_status assay_selftest_clean(struct assay_selftest *selftest,
                                       const struct assay_case *the_case,
                                       uint32_t *rejected);

/* Asks identify about the fault on the case. Named: its answer holds the fault's own
 * knobs, or others that the problem can't tell from them. */
enum assay_status assay_selftest_identify(struct assay_selftest *selftest,
                                          const struct assay_fault *fault,
                                          const struct assay_case *the_case,
                                          bool *is_named);

/* The meta-test of a fault of the verifier. */
enum assay_status assay_selftest_verifier(struct assay_selftest *selftest,
                                          const struct assay_fault *fault,
                                          struct assay_fault_outcome *outcome);

#endif
