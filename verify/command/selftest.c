/* SPDX-License-Identifier: MIT */
/* `assay selftest`: plants faults and shows which check finds which. */
#include "verify/command/command.h"
#include "verify/command/number_option.h"
#include "verify/command/selftest_output.h"
#include "verify/data/clock.h"

#include <argp.h>
#include <stdlib.h>

enum { KEY_FAULT = 256, KEY_JSON, KEY_MARKDOWN, KEY_SECONDS, KEY_CASES };
enum { MAX_FAULTS = 1000, MAX_CASES = 1000, MAX_SECONDS = 1000000 };

struct selftest {
    int count; /* faults that were named; 0: all */
    const struct assay_fault *fault[MAX_FAULTS];
    const char *json_path, *markdown_path;
    uint64_t seconds, cases; /* 0: no limit, the default */
    struct assay_selftest run;
    struct assay_selftest_output output;
    struct assay_message message;
    enum assay_status status; /* of reading the arguments */
};

static const struct argp_option options[] = {
    { "fault", KEY_FAULT, "NAME", 0, "this fault, and others that are named (all)", 0 },
    { "cases", KEY_CASES, "N", 0, "at most so many cases a fault (20)", 0 },
    { "seconds", KEY_SECONDS, "S", 0, "begin no other fault after so long", 0 },
    { "json", KEY_JSON, "FILE", 0, "one JSON object a fault; - replaces the text", 0 },
    { "markdown", KEY_MARKDOWN, "FILE", 0, "the matrix as a page; - replaces the text",
      0 },
    { 0 },
};

static enum assay_status add_fault(struct selftest *selftest, const char *name)
{
    const struct assay_fault *fault;
    const enum assay_status status = assay_fault_need(name, &fault, &selftest->message);
    if (status != ASSAY_RAN) return status;
    if (selftest->count == MAX_FAULTS)
        return assay_fail(&selftest->message, ASSAY_REFUSED,
                          "--fault is given more than %d times", MAX_FAULTS);
    selftest->fault[selftest->count++] = fault;
    return ASSAY_RAN;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct selftest *const selftest = state->input;
    if (key == ARGP_KEY_ARG) argp_usage(state);
    if (key < KEY_FAULT || key > KEY_CASES) return ARGP_ERR_UNKNOWN;
    if (selftest->status != ASSAY_RAN) return 0;
    switch (key) {
    case KEY_FAULT: selftest->status = add_fault(selftest, argument); break;
    case KEY_CASES:
        selftest->status = assay_option_count("--cases", argument, 1, MAX_CASES,
                                              &selftest->cases, &selftest->message);
        break;
    case KEY_SECONDS:
        selftest->status = assay_option_count("--seconds", argument, 1, MAX_SECONDS,
                                              &selftest->seconds, &selftest->message);
        break;
    case KEY_MARKDOWN: selftest->markdown_path = argument; break;
    default: selftest->json_path = argument;
    }
    return 0;
}

static void take_all(struct selftest *selftest)
{
    for (int i = 0; i < MAX_FAULTS && assay_fault_at(i); i++)
        selftest->fault[selftest->count++] = assay_fault_at(i);
}

static enum assay_status run_fault(struct selftest *selftest,
                                   const struct assay_fault *fault,
                                   struct assay_fault_outcome *outcome)
{
    const enum assay_status status = assay_selftest_run(&selftest->run, fault, outcome);
    if (status == ASSAY_RAN)
        return assay_selftest_output_add(&selftest->output, &selftest->run, outcome,
                                         &selftest->message);
    selftest->message = selftest->run.message;
    return status;
}

static enum assay_status run_faults(struct selftest *selftest)
{
    const double start = assay_clock_seconds();
    struct assay_fault_outcome *const outcome = malloc(sizeof(*outcome));
    enum assay_status status = ASSAY_RAN;
    if (!outcome)
        return assay_fail(&selftest->message, ASSAY_OUT_OF_MEMORY,
                          "no memory for a selftest");
    for (int i = 0; status == ASSAY_RAN && i < selftest->count; i++)
        if (selftest->seconds &&
            assay_clock_seconds() - start > (double)selftest->seconds)
            selftest->output.skipped++;
        else
            status = run_fault(selftest, selftest->fault[i], outcome);
    free(outcome);
    return status;
}

static int exit_code(const struct selftest *selftest)
{
    const struct assay_selftest_output *const output = &selftest->output;
    if (output->faults == 0) return ASSAY_EXIT_NOTHING_SELECTED;
    return output->caught < output->faults || selftest->run.alarms
               ? ASSAY_EXIT_BELOW_REQUIRED
               : ASSAY_EXIT_PASSED;
}

static enum assay_status run(struct selftest *selftest, int *code)
{
    selftest->run.cases = (int)selftest->cases;
    assay_selftest_open(&selftest->run);
    if (selftest->count == 0) take_all(selftest);
    enum assay_status status =
        assay_selftest_output_open(&selftest->output, selftest->json_path,
                                   selftest->markdown_path, &selftest->message);
    if (status == ASSAY_RAN) status = run_faults(selftest);
    if (status != ASSAY_RAN) return status;
    *code = exit_code(selftest);
    return assay_selftest_output_end(&selftest->output, &selftest->run, *code,
                                     &selftest->message);
}

int assay_command_selftest(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .doc = "Plants one fault after the other into copies of the model, or of the "
               "verifier, and shows which checks find it, and after how many cases. "
               "Other people's criteria stand behind the bar.\v"
               "Faults that change a function or single runs have to be found without "
               "the model, other roundings by their bits, and identify has to name them; "
               "faults of the verifier by what "
               "it then says about the clean model and about a kernel that is known to "
               "be wrong. The clean model must pass on all cases.",
    };
    struct selftest selftest = { .status = ASSAY_RAN };
    int code = ASSAY_EXIT_PASSED;
    argp_parse(&argp, argc, argv, 0, NULL, &selftest);
    enum assay_status status = selftest.status;
    if (status == ASSAY_RAN) status = run(&selftest, &code);
    if (status != ASSAY_RAN) code = assay_complain((int)status, &selftest.message);
    assay_selftest_output_close(&selftest.output);
    assay_selftest_close(&selftest.run);
    return code;
}
