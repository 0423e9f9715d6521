/* SPDX-License-Identifier: MIT */
/* Fuzzing target: the options that hold lists, numbers and sizes, one a line, as words
 * of a command line. */
#include "fuzz/target/input.h"
#include "verify/command/limits.h"
#include "verify/command/trial_options.h"

enum { MAX_WORDS = 16, FLAGS = ARGP_NO_EXIT | ARGP_NO_ERRS | ARGP_NO_HELP };

/* Lines of @text, each a copy, since parsing may turn its words over. */
static int words_of(char *text, char *words[MAX_WORDS + 2])
{
    static char command[] = "assay";
    int count = 0;
    words[count++] = command;
    while (*text && count <= MAX_WORDS) {
        char *const rest = input_rest(text);
        words[count++] = text;
        text = rest;
    }
    words[count] = NULL;
    return count;
}

static void check_limits(const char *input)
{
    char *words[MAX_WORDS + 2], *const text = strdup(input);
    struct assay_limits limits = assay_limits_default();
    argp_parse(assay_limits_argp(), words_of(text, words), words, FLAGS, NULL, &limits);
    check_answer(limits.status, &limits.message);
    assert(limits.backend.seconds > 0 && limits.backend.warmup_seconds > 0);
    assert(limits.backend.memory_bytes >= 0);
    free(text);
}

static void check_trial(const char *input)
{
    char *words[MAX_WORDS + 2], *const text = strdup(input);
    struct assay_trial_options options;
    assay_trial_options_init(&options);
    argp_parse(assay_trial_options_argp(), words_of(text, words), words, FLAGS, NULL,
               &options);
    check_answer(options.status, &options.message);
    assert(options.plan.repeats > 1);
    assert(options.plan.criteria.count >= 0 &&
           options.plan.criteria.count <= ASSAY_MAX_CRITERIA);
    for (int i = 0; i < options.plan.criteria.count; i++)
        assert(options.plan.criteria.name[i][0]);
    int checks = 0;
    while (options.checks[checks])
        checks++;
    assert(checks <= ASSAY_MAX_CHECKS);
    assay_trial_options_free(&options);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const text = input_text(data, size);
    check_limits(text);
    check_trial(text);
    free(text);
    return 0;
}
