/* SPDX-License-Identifier: MIT */
/* `assay bench`: how fast candidates compute cases, and models of units their tiles. */
#include "verify/command/bench_groups.h"
#include "verify/command/command.h"
#include "verify/command/limits.h"
#include "verify/command/number_option.h"
#include "verify/command/selection.h"
#include "verify/operation/draw.h"

#include <argp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_OP = 256,
    KEY_SUITE,
    KEY_CANDIDATE,
    KEY_BESIDE,
    KEY_UPSTREAM,
    KEY_COLD,
    KEY_HOT,
    KEY_JSON,
    KEY_REPEATS
};
enum { MAX_NAMES = 64, DRAWN_CASES = 5, DRAWN_MULTIPLY_ADDS = 1 << 24 };

struct bench {
    struct assay_selection selection;
    bool has_cases; /* whether any were asked for */
    char *wanted;   /* --op, split into words; NULL: everything */
    size_t wanted_bytes;
    int candidates;
    const char *candidate[1 + ASSAY_MAX_BESIDE]; /* the first one counts */
    bool is_cold, is_hot;                        /* asked for */
    const char *json_path;
    struct assay_limits limits;
    struct assay_bench_job job;
    enum assay_status status; /* of reading the arguments */
    struct assay_message message;
};

static const struct argp_option options[] = {
    { "op", KEY_OP, "LIST", 0, "operations, or wgmma: the unit's model (all)", 0 },
    { "suite", KEY_SUITE, "FILE", 0, "cases from a file, one a line; - is stdin", 0 },
    { "candidate", KEY_CANDIDATE, "BACKEND", 0, "what is measured (model)", 0 },
    { "beside", KEY_BESIDE, "BACKEND", 0,
      "measured on the same inputs, for the ratio; may be repeated", 0 },
    { "cold", KEY_COLD, NULL, 0, "flush the GPU's cache before each launch", 0 },
    { "hot", KEY_HOT, NULL, 0, "launches back to back; with --cold: both", 0 },
    { "upstream", KEY_UPSTREAM, "FILE", 0,
      "a suite with figures of others beside its cases (those of --suite)", 0 },
    { "json", KEY_JSON, "FILE", 0, "figures as JSON Lines; - replaces the text", 0 },
    { "repeats", KEY_REPEATS, "N", 0, "the median of so many runs (5)", 0 },
    { 0 },
};

static bool is_unit(const char *name)
{
    for (const struct assay_unit_bench *unit = assay_unit_benches; unit->name; unit++)
        if (strcmp(unit->name, name) == 0) return true;
    return false;
}

static bool is_wanted(const struct bench *bench, const char *name)
{
    if (!bench->wanted) return true;
    for (size_t at = 0; at < bench->wanted_bytes; at += strlen(bench->wanted + at) + 1)
        if (strcmp(bench->wanted + at, name) == 0) return true;
    return false;
}

static enum assay_status parse_wanted(struct bench *bench, char *list)
{
    const char *names[MAX_NAMES + 1] = { NULL };
    int count = 0;
    for (int i = 0; assay_operations[i] && count < MAX_NAMES; i++)
        names[count++] = assay_operations[i]->name;
    for (int i = 0; assay_unit_benches[i].name && count < MAX_NAMES; i++)
        names[count++] = assay_unit_benches[i].name;
    bench->wanted = list;
    bench->wanted_bytes = strlen(list) + 1;
    for (char *word; (word = strsep(&list, ","));) {
        if (is_unit(word) || assay_operation_find(word)) continue;
        const char *const nearest = assay_nearest(word, names);
        return assay_fail(&bench->message, ASSAY_REFUSED,
                          "--op names '%s', which is no operation; %s%s%s", word,
                          nearest ? "did you mean '" : "see `assay list operations`",
                          nearest ? nearest : "", nearest ? "'?" : "");
    }
    return ASSAY_RAN;
}

static enum assay_status parse_repeats(struct bench *bench, const char *text)
{
    uint64_t repeats = 0;
    const enum assay_status status = assay_option_count(
        "--repeats", text, 1, ASSAY_MAX_REPEATS, &repeats, &bench->message);
    if (status == ASSAY_RAN) bench->job.timing.repeats = (int)repeats;
    return status;
}

static enum assay_status add_beside(struct bench *bench, const char *backend)
{
    if (bench->candidates == 1 + ASSAY_MAX_BESIDE)
        return assay_fail(&bench->message, ASSAY_REFUSED,
                          "--beside %s is one too many; at most %d are measured beside a "
                          "candidate",
                          backend, ASSAY_MAX_BESIDE);
    bench->candidate[bench->candidates++] = backend;
    return ASSAY_RAN;
}

static enum assay_status add_suite(struct bench *bench, const char *path)
{
    bench->has_cases = true;
    const enum assay_status status =
        assay_select_suite(&bench->selection, path, &bench->message);
    return status == ASSAY_RAN && strcmp(path, "-") != 0
               ? assay_upstream_read(bench->job.upstream, path, &bench->message)
               : status;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct bench *const bench = state->input;
    if (key == ARGP_KEY_INIT) state->child_inputs[0] = &bench->limits;
    if (bench->status != ASSAY_RAN) return 0;
    switch (key) {
    case KEY_OP: bench->status = parse_wanted(bench, argument); break;
    case KEY_SUITE: bench->status = add_suite(bench, argument); break;
    case KEY_CANDIDATE: bench->candidate[0] = argument; break;
    case KEY_BESIDE: bench->status = add_beside(bench, argument); break;
    case KEY_COLD: bench->is_cold = true; break;
    case KEY_HOT: bench->is_hot = true; break;
    case KEY_UPSTREAM:
        bench->status =
            assay_upstream_read(bench->job.upstream, argument, &bench->message);
        break;
    case KEY_JSON: bench->json_path = argument; break;
    case KEY_REPEATS: bench->status = parse_repeats(bench, argument); break;
    case ARGP_KEY_ARG:
        bench->has_cases = true;
        bench->status = assay_select_case(&bench->selection, argument, &bench->message);
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* Without cases: a few of each operation, the same ones always. */
static enum assay_status draw_cases(struct bench *bench)
{
    enum assay_status status = ASSAY_RAN;
    for (int i = 0; assay_operations[i]; i++) {
        const struct assay_operation *const operation = assay_operations[i];
        if (!is_wanted(bench, operation->name) || is_unit(operation->name)) continue;
        for (int at = 0; at < DRAWN_CASES && status == ASSAY_RAN; at++) {
            struct assay_stream stream;
            struct assay_case the_case;
            char line[ASSAY_MAX_CASE_LINE];
            assay_stream_open(&stream, 0, operation->name, "case", at);
            assay_draw(operation, &stream, DRAWN_MULTIPLY_ADDS, &the_case);
            assay_case_format(&the_case, line, sizeof line);
            status = assay_select_case(&bench->selection, line, &bench->message);
        }
    }
    return status;
}

static enum assay_status measure_case(void *context, const struct assay_case *the_case,
                                      struct assay_recording *recording, int index,
                                      struct assay_message *message)
{
    (void)recording, (void)index;
    struct bench *const bench = context;
    return is_wanted(bench, the_case->operation->name)
               ? assay_bench_case(&bench->job, the_case, message)
               : ASSAY_RAN;
}

static enum assay_status run_units(struct bench *bench)
{
    enum assay_status status = ASSAY_RAN;
    const bool is_model = strcmp(bench->candidate[0], "model") == 0;
    for (const struct assay_unit_bench *unit = assay_unit_benches;
         unit->name && status == ASSAY_RAN; unit++)
        if (is_model && is_wanted(bench, unit->name))
            status = unit->run(unit->name, &bench->job.timing, &bench->job.output,
                               &bench->message);
    return status;
}

static enum assay_status open_set(struct bench *bench, const char *cache)
{
    return assay_bench_set_open(&bench->job.set[bench->job.set_count++], bench->candidate,
                                bench->candidates, cache, &bench->limits.backend,
                                &bench->message);
}

static enum assay_status open_candidates(struct bench *bench)
{
    enum assay_status status = ASSAY_RAN;
    if (bench->is_cold) status = open_set(bench, "cold");
    if (bench->is_hot && status == ASSAY_RAN) status = open_set(bench, "hot");
    if (!bench->is_cold && !bench->is_hot) status = open_set(bench, NULL);
    return status;
}

static enum assay_status check_candidate(struct bench *bench)
{
    const enum assay_status status = open_candidates(bench);
    if (status != ASSAY_RAN) return status;
    for (int i = 0; bench->wanted && !bench->has_cases && assay_unit_benches[i].name; i++)
        if (is_wanted(bench, assay_unit_benches[i].name) &&
            strcmp(bench->candidate[0], "model") != 0)
            return assay_fail(&bench->message, ASSAY_REFUSED,
                              "--op %s measures the unit's model and not %s; use "
                              "--candidate model",
                              assay_unit_benches[i].name, bench->candidate[0]);
    return ASSAY_RAN;
}

static enum assay_status run(struct bench *bench, int *code)
{
    struct assay_bench_output *const output = &bench->job.output;
    enum assay_status status = check_candidate(bench);
    if (status == ASSAY_RAN && !bench->has_cases) status = draw_cases(bench);
    if (status == ASSAY_RAN)
        status = assay_bench_output_open(output, bench->json_path, bench->candidate[0],
                                         &bench->message);
    if (status == ASSAY_RAN && !bench->has_cases) status = run_units(bench);
    if (status == ASSAY_RAN)
        status =
            assay_selection_walk(&bench->selection, measure_case, bench, &bench->message);
    if (status == ASSAY_RAN)
        status = assay_bench_groups_write(bench->job.groups, output, &bench->message);
    *code = output->broken  ? ASSAY_EXIT_BROKEN
            : output->count ? ASSAY_EXIT_PASSED
                            : ASSAY_EXIT_NOTHING_SELECTED;
    if (status != ASSAY_RAN) return status;
    return assay_bench_output_end(output, *code, &bench->message);
}

static enum assay_status open_job(struct bench *bench)
{
    bench->job.timing = (struct assay_timing){ .warm_ups = 1, .repeats = 5 };
    bench->job.upstream = assay_upstream_open();
    bench->job.groups = assay_bench_groups_open();
    return bench->job.upstream && bench->job.groups
               ? ASSAY_RAN
               : assay_fail(&bench->message, ASSAY_OUT_OF_MEMORY,
                            "no memory for a bench");
}

static void close_job(struct assay_bench_job *job)
{
    assay_bench_output_close(&job->output);
    for (int i = 0; i < job->set_count; i++)
        assay_bench_set_close(&job->set[i]);
    assay_bench_groups_close(job->groups);
    assay_upstream_close(job->upstream);
    assay_device_close(job->device);
}

int assay_command_bench(int argc, char **argv)
{
    const struct argp_child children[] = { { assay_limits_argp(), 0, NULL, 0 }, { 0 } };
    const struct argp argp = {
        .options = options,
        .children = children,
        .parser = parse_option,
        .args_doc = "[CASE]...",
        .doc =
            "Measures how fast a candidate computes each case; without cases, a few of "
            "each operation, and the models of the hardware's units beside sgemm.",
    };
    struct bench bench = { .candidates = 1,
                           .candidate = { "model" },
                           .limits = assay_limits_default() };
    int code = ASSAY_EXIT_PASSED;
    bench.status = open_job(&bench);
    argp_parse(&argp, argc, argv, 0, NULL, &bench);
    enum assay_status status = bench.status;
    if (status == ASSAY_RAN && bench.limits.status != ASSAY_RAN) {
        status = bench.limits.status;
        bench.message = bench.limits.message;
    }
    if (status == ASSAY_RAN) bench.job.device = assay_device_open();
    if (status == ASSAY_RAN) status = run(&bench, &code);
    if (status != ASSAY_RAN) code = assay_complain((int)status, &bench.message);
    close_job(&bench.job);
    assay_selection_close(&bench.selection);
    return code;
}
