/* SPDX-License-Identifier: MIT */
/* What a verified case came to: the facts from which every report is rendered. */
#ifndef ASSAY_VERIFY_CHECK_RESULT_H
#define ASSAY_VERIFY_CHECK_RESULT_H

#include "verify/check/criteria.h"
#include "verify/operation/operation.h"

/* Best first. A contradiction is the model outside the oracle's bound: our bug. */
enum assay_verdict {
    ASSAY_NOT_JUDGED,
    ASSAY_EQUAL,
    ASSAY_EXPLAINED,
    ASSAY_BOUNDED,
    ASSAY_OUTSIDE,
    ASSAY_CONTRADICTION,
    ASSAY_VERDICT_COUNT
};
struct assay_verdict_row {
    const char *name, *meaning;
};
extern const struct assay_verdict_row assay_verdicts[ASSAY_VERDICT_COUNT];

enum { ASSAY_MAX_DIFFERENCES = 256, ASSAY_MAX_FINDINGS = 16, ASSAY_MAX_NOTE = 48 };

struct assay_difference { /* one element whose bits differ */
    int64_t index;        /* logical row-major */
    uint32_t candidate, reference;
    uint64_t ulps; /* steps between the two on the number line; UINT64_MAX for NaN */
    struct assay_place place;
};

/* What a check that runs the candidate again has to say about a run. */
struct assay_finding {
    const char *check;  /* its name */
    bool is_failure;    /* false: worth knowing, and allowed */
    char sentence[320]; /* what was done and what came of it */
    /* Where there are elements to show: */
    const char *output;         /* name; NULL: none to show */
    struct assay_tensor tensor; /* format and shape of that output in that run; no data */
    int64_t elements;           /* that are wrong, in all outputs */
    struct assay_difference worst; /* the first of them; reference: what it should hold */
};

struct assay_output_result {
    const char *name;
    struct assay_tensor tensor; /* format and shape; data is not valid any more */
    int64_t elements, defined;
    uint64_t candidate_hash; /* XXH3 of the candidate's elements */
    /* bitwise */
    bool has_bits;           /* compared bit for bit with a reference */
    int64_t differ, touched; /* of those: elements that nobody may write to */
    uint64_t max_ulps;
    struct assay_difference worst; /* valid if differ > 0 */
    int difference_count; /* the first ones by index, at most ASSAY_MAX_DIFFERENCES */
    struct assay_difference difference[ASSAY_MAX_DIFFERENCES];
    /* bound */
    bool has_bound;
    int64_t outside, unclaimed; /* beyond the bound; with an infinite bound */
    double max_error_over_bound;
    int64_t bound_worst_index; /* of max_error_over_bound, -1 if nothing was compared */
    uint32_t bound_worst_bits;
    double bound_worst_value, bound_worst_bound; /* the oracle's */
    struct assay_place bound_worst_place;
    /* exact */
    bool has_exact;
    int64_t inexact;                       /* bits are not the oracle's */
    struct assay_difference inexact_worst; /* valid if inexact > 0 */
    /* other people's rules for this output, in the order asked for; no part of the
     * verdict */
    int criterion_count;
    struct assay_criterion_result criterion[ASSAY_MAX_CRITERIA];
    /* evidence: all expected defined elements have the same bits */
    bool is_constant;
};

struct assay_result {
    char case_line[ASSAY_MAX_CASE_LINE];
    char source[512]; /* recorded file, or empty */
    const struct assay_operation *operation;
    enum assay_status status;
    enum assay_verdict verdict;
    bool has_passed; /* ran, decisive and at the required verdict or better */
    bool is_decisive;
    bool is_unverified_profile;
    const char *remark; /* what the operation says beside these numerics; NULL: nothing */
    char numerics[ASSAY_MAX_NUMERICS_TEXT];    /* reference bits; empty: none */
    char explanation[ASSAY_MAX_NUMERICS_TEXT]; /* numerics that equal the candidate */
    struct assay_message message;              /* set when status is not ASSAY_RAN */
    char warning[384];   /* to be said beside the verdict; empty: nothing */
    char reference[512]; /* the backend whose bits are the reference; empty: the model */
    char printed[4096 + 1]; /* the beginning of what somebody's code printed */
    int64_t printed_bytes;  /* of all of it, as far as it was kept */
    uint64_t input_hash;
    double seconds;
    double model_max_error_over_bound; /* -1 when the model was not compared */
    int64_t model_inexact; /* elements of the model that check exact found wrong */
    struct assay_criteria criteria; /* that were asked for, when they were compared */
    int output_count;
    struct assay_output_result *output; /* owned by the result */
    uint32_t checks;                    /* bit i: row i of assay_checks has judged it */
    int candidate_runs;                 /* of all checks together */
    int finding_count;                  /* further ones are dropped */
    struct assay_finding finding[ASSAY_MAX_FINDINGS];
    char note[ASSAY_MAX_NOTE]; /* what the command that runs the case keeps with it */
    char *texts; /* owned: what names and the remark point into when the result was read
                    from a file; NULL otherwise */
};

/* What a criterion says about all outputs that it has a rule for. */
enum assay_opinion { ASSAY_NO_OPINION, ASSAY_WOULD_PASS, ASSAY_WOULD_FAIL };
enum assay_opinion assay_result_opinion(const struct assay_result *result,
                                        const char *criterion);
/* "has no rule", "would pass", "would fail". */
const char *assay_opinion_name(enum assay_opinion opinion);

void assay_result_close(struct assay_result *result);

struct assay_summary {
    int64_t cases, passed, failed, indecisive, unsupported, broken, contradictions;
    int64_t verdicts[ASSAY_VERDICT_COUNT];
    int64_t elements_equal, elements_compared; /* bit for bit */
    double max_error_over_bound;
    int exit_code;
};

#endif
