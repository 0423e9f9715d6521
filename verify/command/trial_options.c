/* SPDX-License-Identifier: MIT */
#include "verify/command/trial_options.h"

#include "verify/case/number.h"
#include "verify/case/text.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_REFERENCE = 1024, KEY_CHECK, KEY_REPEATS, KEY_REQUIRE, KEY_CRITERIA };
enum { MIN_REPEATS = 2, MAX_REPEATS = 1000 };

static const struct argp_option rows[] = {
    { "reference", KEY_REFERENCE, "LIST", 0,
      "oracle and, for bits, model[:NUMERICS] or any other backend, which comes last "
      "(oracle,model)",
      0 },
    { "check", KEY_CHECK, "LIST", 0,
      "which checks, or all (all that apply; those that run the candidate again only "
      "where it is somebody's code)",
      0 },
    { "repeats", KEY_REPEATS, "N", 0, "so many runs in all for check repeat (10)", 0 },
    { "require", KEY_REQUIRE, "VERDICT", 0,
      "worst verdict that passes (equal if the candidate claims numerics or is compared "
      "with another backend than model, else bounded)",
      0 },
    { "criteria", KEY_CRITERIA, "LIST", 0,
      "also say what other people's pass rules would say; no part of the verdict", 0 },
    { 0 },
};

void assay_trial_options_init(struct assay_trial_options *options)
{
    *options = (struct assay_trial_options){
        .plan = { .uses_model = true,
                  .uses_oracle = true,
                  .checks = options->checks,
                  .repeats = ASSAY_DEFAULT_REPEATS },
        .status = ASSAY_RAN,
    };
    for (int i = 0; assay_checks[i]; i++)
        options->checks[i] = assay_checks[i];
}

static enum assay_status parse_require(struct assay_trial_options *options,
                                       const char *name)
{
    static const enum assay_verdict allowed[] = { ASSAY_EQUAL, ASSAY_EXPLAINED,
                                                  ASSAY_BOUNDED };
    for (int i = 0; i < 3; i++)
        if (strcmp(assay_verdicts[allowed[i]].name, name) == 0) {
            options->plan.require = allowed[i];
            return ASSAY_RAN;
        }
    return assay_fail(&options->message, ASSAY_REFUSED,
                      "--require %s is no verdict to require; use equal, explained or "
                      "bounded",
                      name);
}

static enum assay_status refuse_check(struct assay_trial_options *options,
                                      const char *word, const char *const *names)
{
    const char *const nearest = assay_nearest(word, names);
    return assay_fail(&options->message, ASSAY_REFUSED,
                      "--check names '%s', which is no check; %s%s%s", word,
                      nearest ? "did you mean '" : "see `assay list checks`",
                      nearest ? nearest : "", nearest ? "'?" : "");
}

/* Once each, in the order of the table: a check may build on what another one saw. */
static enum assay_status parse_checks(struct assay_trial_options *options, char *text)
{
    bool is_named[ASSAY_MAX_CHECKS] = { false };
    const char *names[ASSAY_MAX_CHECKS + 2] = { NULL };
    int count = 0, rows_named = 0;
    for (; assay_checks[count]; count++)
        names[count] = assay_checks[count]->name;
    names[count] = "all";
    char *rest = text;
    for (char *word; (word = strsep(&rest, ","));) {
        int row = 0;
        while (names[row] && strcmp(names[row], word) != 0)
            row++;
        if (!names[row]) return refuse_check(options, word, names);
        for (int i = 0; i < count; i++)
            is_named[i] |= row == i || row == count;
    }
    for (int i = 0; i < count; i++)
        if (is_named[i]) options->checks[rows_named++] = assay_checks[i];
    options->checks[rows_named] = NULL;
    options->plan.runs_trusted_again = true;
    return ASSAY_RAN;
}

static enum assay_status parse_repeats(struct assay_trial_options *options,
                                       const char *text)
{
    uint64_t repeats = 0;
    if (assay_number_unsigned(text, &repeats) != ASSAY_NUMBER_VALID ||
        repeats < MIN_REPEATS || repeats > MAX_REPEATS)
        return assay_fail(&options->message, ASSAY_REFUSED,
                          "--repeats %s is no count of runs; use %d to %d",
                          assay_excerpt(text).text, MIN_REPEATS, MAX_REPEATS);
    options->plan.repeats = (int)repeats;
    return ASSAY_RAN;
}

/* A backend, with an argument that may hold commas. */
static enum assay_status parse_backend(struct assay_trial_options *options,
                                       const char *text)
{
    char word[64];
    const char *names[32] = { "oracle", "model" };
    int count = 2;
    const size_t length = strcspn(text, ":,");
    snprintf(word, sizeof(word), "%.*s", (int)length, text);
    for (int i = 0; assay_backends[i] && count < 31; i++) {
        names[count++] = assay_backends[i]->scheme;
        if (strcmp(assay_backends[i]->scheme, word) != 0) continue;
        options->plan.reference_text = text;
        return ASSAY_RAN;
    }
    const char *const nearest = assay_nearest(word, names);
    return assay_fail(&options->message, ASSAY_REFUSED,
                      "--reference names '%s'; %s%s%s oracle, model or a backend with "
                      "its argument (last) would be right",
                      assay_excerpt(word).text, nearest ? "did you mean '" : "",
                      nearest ? nearest : "", nearest ? "'?" : "");
}

static enum assay_status parse_references(struct assay_trial_options *options, char *text)
{
    struct assay_trial_plan *const plan = &options->plan;
    enum assay_status status = ASSAY_RAN;
    plan->uses_model = plan->uses_oracle = false;
    plan->model_numerics = plan->reference_text = NULL;
    char *rest = text;
    while (rest && status == ASSAY_RAN) {
        const size_t length = strcspn(rest, ",");
        if (strncmp(rest, "model:", 6) == 0) {
            plan->uses_model = true;
            plan->model_numerics = rest + 6;
            rest = NULL;
        } else if (length == 5 && strncmp(rest, "model", length) == 0) {
            plan->uses_model = true;
            strsep(&rest, ",");
        } else if (length == 6 && strncmp(rest, "oracle", length) == 0) {
            plan->uses_oracle = true;
            strsep(&rest, ",");
        } else {
            status = parse_backend(options, rest);
            rest = NULL;
        }
    }
    if (status == ASSAY_RAN && plan->uses_model && plan->reference_text)
        return assay_fail(&options->message, ASSAY_REFUSED,
                          "--reference names model and %s, but bits are compared with "
                          "one of them only; leave one out",
                          assay_excerpt(plan->reference_text).text);
    return status;
}

/* Parsing takes lists apart. Without memory the lines that repeat a case are shorter. */
static void keep(char **list, const char *text)
{
    free(*list);
    *list = strdup(text);
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct assay_trial_options *const options = state->input;
    if (key < KEY_REFERENCE || key > KEY_CRITERIA) return ARGP_ERR_UNKNOWN;
    if (options->status != ASSAY_RAN) return 0;
    switch (key) {
    case KEY_REFERENCE:
        keep(&options->reference_list, argument);
        options->status = parse_references(options, argument);
        break;
    case KEY_CHECK:
        keep(&options->check_list, argument);
        options->status = parse_checks(options, argument);
        break;
    case KEY_REPEATS: options->status = parse_repeats(options, argument); break;
    case KEY_REQUIRE: options->status = parse_require(options, argument); break;
    default:
        options->status =
            assay_criteria_parse(argument, &options->plan.criteria, &options->message);
    }
    return 0;
}

const struct argp *assay_trial_options_argp(void)
{
    static const struct argp argp = { .options = rows, .parser = parse_option };
    return &argp;
}

enum assay_status assay_trial_options_open(struct assay_trial_options *options,
                                           const struct assay_backend_limits *limits,
                                           struct assay_message *message)
{
    struct assay_trial_plan *const plan = &options->plan;
    const struct assay_backend *backend;
    if (!plan->reference_text) return ASSAY_RAN;
    const enum assay_status status = assay_backend_open(
        plan->reference_text, limits, &backend, &plan->reference_state, message);
    if (status == ASSAY_RAN) plan->reference = backend;
    return status;
}

void assay_trial_options_close(struct assay_trial_options *options)
{
    struct assay_trial_plan *const plan = &options->plan;
    if (plan->reference) plan->reference->close(plan->reference_state);
    plan->reference = NULL;
}

void assay_trial_options_free(struct assay_trial_options *options)
{
    free(options->reference_list);
    free(options->check_list);
    options->reference_list = options->check_list = NULL;
}
