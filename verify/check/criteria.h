/* SPDX-License-Identifier: MIT */
/* Other people's pass rules, shown beside our verdict and never a part of it. The rules
 * and their limits are upstream's; what a candidate is compared with is the oracle's
 * value, in double, where upstream takes an output of its own reference. */
#ifndef ASSAY_VERIFY_CHECK_CRITERIA_H
#define ASSAY_VERIFY_CHECK_CRITERIA_H

#include "ref/tensor.h"
#include "verify/case/message.h"
#include "verify/case/text.h"

enum { ASSAY_MAX_CRITERIA = 8 };

/* What one element keeps to, by its error |candidate - reference|. */
enum assay_element_rule {
    ASSAY_NO_ELEMENT_RULE,
    /* error < absolute, or error / (|reference| + floor) < relative */
    ASSAY_EITHER_BELOW,
    /* not both: error > absolute, and error / (|reference| + floor) > relative */
    ASSAY_NOT_BOTH_ABOVE,
    /* equal, or a finite error <= absolute + relative * |reference| */
    ASSAY_WITHIN_SUM,
    /* equal, or error < relative * sum, where sum = |candidate| + |reference| or, if that
     * is less, the floor (upstream names the case that one of them is 0 as well; as the
     * error is the sum then, that comes to the same) */
    ASSAY_BELOW_SHARE,
};

enum assay_special_rule {
    ASSAY_SPECIALS_CALCULATED, /* NaN and infinities go through the formulas */
    ASSAY_SPECIALS_IN_PLACE,   /* the same in the same places; then left out */
    ASSAY_SPECIALS_REFUSED,    /* the candidate has none, whatever the reference has */
};

/* Limits that are 0 ask for nothing, but for those of the element rule. Sums are over
 * all defined elements of an output. */
struct assay_criterion {
    const char *name, *source;
    /* What the row is for; the first that fits counts. */
    const char *operations;   /* names with a space between; NULL: all */
    const char *output;       /* NULL: all */
    enum assay_format format; /* of the output; ASSAY_FORMAT_NONE: all */
    int e2m1_inputs;          /* so many at least */
    enum assay_element_rule rule;
    double absolute, relative, floor;
    /* difference = 1 - 2 sum(c r) / (sum(c c) + sum(r r)), 0 if both sums are: */
    double calc_diff_limit; /* difference < limit */
    double cosine_limit;    /* |difference| <= limit; 0 if sum(r r) < 1e-12 */
    enum assay_special_rule specials;
};
extern const struct assay_criterion assay_criteria_table[]; /* closed by a NULL name */

/* The names a user asked for, as the table spells them. */
struct assay_criteria {
    int count;
    const char *name[ASSAY_MAX_CRITERIA];
};

/* Reads "NAME[,NAME...]"; refuses what is no criterion, naming the nearest. */
enum assay_status assay_criteria_parse(const char *list, struct assay_criteria *criteria,
                                       struct assay_message *message);

/* The criterion's row for output tensor @output of the operation; NULL: it has none. */
const struct assay_criterion *assay_criterion_find(const char *name,
                                                   const char *operation,
                                                   const struct assay_tensors *tensors,
                                                   int output);

struct assay_criterion_tally { /* of a share of the elements; zeroed: of none */
    int64_t elements, beyond, specials;
    double candidate_squares, products, reference_squares;
};
void assay_criterion_add(const struct assay_criterion *criterion, double candidate,
                         double reference, struct assay_criterion_tally *tally);
void assay_criterion_merge(const struct assay_criterion_tally *tally,
                           struct assay_criterion_tally *into);

struct assay_criterion_result {
    const struct assay_criterion *criterion;
    bool passes;
    int64_t elements; /* all that were compared */
    int64_t beyond;   /* that break the element rule */
    int64_t specials; /* NaN and infinities that the rule for them does not allow */
    double difference;
};
struct assay_criterion_result
assay_criterion_conclude(const struct assay_criterion *criterion,
                         const struct assay_criterion_tally *tally);

/* "error <= 1e-05 + 0.016 |oracle|; NaN and infinities refused" */
void assay_criterion_describe(const struct assay_criterion *criterion,
                              struct assay_text *text);
/* "12 of 4096 elements break error <= 1e-05 + 0.016 |oracle|" */
void assay_criterion_describe_result(const struct assay_criterion_result *result,
                                     struct assay_text *text);

struct assay_trial;
struct assay_result;

/* Compares the candidate's outputs by the criteria of the trial's plan. ASSAY_RAN or
 * ASSAY_OUT_OF_MEMORY. */
enum assay_status assay_criteria_judge(const struct assay_trial *trial,
                                       struct assay_result *result);

#endif
