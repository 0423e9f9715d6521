/* SPDX-License-Identifier: MIT */
/* `assay bench`: how fast candidates compute cases, and models of units their tiles. */
#include "verify/command/bench.h"

#include "verify/check/inputs.h"
#include "verify/command/command.h"
#include "verify/command/limits.h"
#include "verify/command/number_option.h"
#include "verify/command/selection.h"
#include "verify/operation/draw.h"

#include <argp.h>
#include <omp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_OP = 256, KEY_SUITE, KEY_CANDIDATE, KEY_JSON, KEY_REPEATS };
enum { MAX_NAMES = 64, DRAWN_CASES = 5, DRAWN_MULTIPLY_ADDS = 1 << 24 };

struct bench {
    struct assay_selection selection;
    bool has_cases; /* whether any were asked for */
    char *wanted;   /* --op, split into words; NULL: everything */
    size_t wanted_bytes;
    const char *candidate, *json_path;
    struct assay_timing timing;
    struct assay_limits limits;
    const struct assay_backend *backend;
    void *state;
    struct assay_bench_output output;
    enum assay_status status; /* of reading the arguments */
    struct assay_message message;
};

static const struct argp_option options[] = {
    { "op", KEY_OP, "LIST", 0, "operations, or wgmma: the unit's model (all)", 0 },
    { "suite", KEY_SUITE, "FILE", 0, "cases from a file, one a line; - is stdin", 0 },
    { "candidate", KEY_CANDIDATE, "BACKEND", 0, "what is measured (model)", 0 },
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
    if (status == ASSAY_RAN) bench->timing.repeats = (int)repeats;
    return status;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct bench *const bench = state->input;
    if (key == ARGP_KEY_INIT) state->child_inputs[0] = &bench->limits;
    if (bench->status != ASSAY_RAN) return 0;
    switch (key) {
    case KEY_OP: bench->status = parse_wanted(bench, argument); break;
    case KEY_SUITE:
        bench->has_cases = true;
        bench->status = assay_select_suite(&bench->selection, argument, &bench->message);
        break;
    case KEY_CANDIDATE: bench->candidate = argument; break;
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

static enum assay_status
add_figure(struct bench *bench, const struct assay_case *the_case, const void *problem,
           const struct assay_bench_time *time, struct assay_message *message)
{
    char line[ASSAY_MAX_CASE_LINE];
    assay_case_format(the_case, line, sizeof line);
    const struct assay_cost cost = the_case->operation->cost(problem);
    const bool has_products = cost.multiply_adds > 0;
    const struct assay_measurement measurement = {
        .op = the_case->operation->name,
        .case_line = line,
        .candidate = bench->candidate,
        .threads = omp_get_max_threads(),
        .seconds = time->seconds,
        .launches = time->launches,
        .rate = (has_products ? cost.multiply_adds : cost.bytes) / time->seconds,
        .unit = has_products ? "multiply-adds/s" : "bytes/s",
        .ratio_one_core = -1,
    };
    return assay_bench_output_add(&bench->output, &measurement, message);
}

/* Somebody's kernel may turn the case down, which is said and ends nothing. */
static enum assay_status ask_candidate(const struct bench *bench,
                                       const struct assay_run_call *call, bool *does_it,
                                       struct assay_message *message)
{
    struct assay_backend_claim claim;
    *does_it = true;
    if (bench->backend->is_trusted) return ASSAY_RAN;
    const enum assay_status status =
        bench->backend->claim(bench->state, call, &claim, message);
    if (status != ASSAY_UNSUPPORTED) return status;
    char line[ASSAY_MAX_CASE_LINE];
    assay_case_format(call->the_case, line, sizeof line);
    fprintf(stderr, "assay: not measured: %s: %s\n", line, message->text);
    *does_it = false;
    return ASSAY_RAN;
}

static enum assay_status measure_case(void *context, const struct assay_case *the_case,
                                      struct assay_recording *recording, int index,
                                      struct assay_message *message)
{
    (void)recording, (void)index;
    struct bench *const bench = context;
    const struct assay_operation *const operation = the_case->operation;
    union assay_problem_storage problem;
    struct assay_tensors tensors;
    struct assay_buffers buffers = { 0 };
    struct assay_bench_time time;
    bool does_it = false;

    if (!is_wanted(bench, operation->name)) return ASSAY_RAN;
    enum assay_status status =
        assay_inputs_open(the_case, NULL, 0, &problem, &tensors, &buffers, message);
    const struct assay_run_call call = { .the_case = the_case,
                                         .problem = &problem,
                                         .tensors = &tensors };
    if (status == ASSAY_RAN) status = ask_candidate(bench, &call, &does_it, message);
    if (status == ASSAY_RAN && does_it)
        status = assay_bench_call(bench->backend, bench->state, &call, &bench->timing,
                                  &time, message);
    if (status == ASSAY_RAN && does_it)
        status = add_figure(bench, the_case, &problem, &time, message);
    assay_buffers_close(&buffers);
    return status;
}

static enum assay_status run_units(struct bench *bench)
{
    enum assay_status status = ASSAY_RAN;
    const bool is_model = strcmp(bench->candidate, "model") == 0;
    for (const struct assay_unit_bench *unit = assay_unit_benches;
         unit->name && status == ASSAY_RAN; unit++)
        if (is_model && is_wanted(bench, unit->name))
            status =
                unit->run(unit->name, &bench->timing, &bench->output, &bench->message);
    return status;
}

static enum assay_status check_candidate(struct bench *bench)
{
    const enum assay_status status =
        assay_backend_open(bench->candidate, &bench->limits.backend, &bench->backend,
                           &bench->state, &bench->message);
    if (status != ASSAY_RAN) {
        bench->backend = NULL;
        return status;
    }
    for (int i = 0; bench->wanted && !bench->has_cases && assay_unit_benches[i].name; i++)
        if (is_wanted(bench, assay_unit_benches[i].name) &&
            strcmp(bench->candidate, "model") != 0)
            return assay_fail(&bench->message, ASSAY_REFUSED,
                              "--op %s measures the unit's model and not %s; use "
                              "--candidate model",
                              assay_unit_benches[i].name, bench->candidate);
    return ASSAY_RAN;
}

static enum assay_status run(struct bench *bench, int *code)
{
    enum assay_status status = check_candidate(bench);
    if (status == ASSAY_RAN && !bench->has_cases) status = draw_cases(bench);
    if (status == ASSAY_RAN)
        status = assay_bench_output_open(&bench->output, bench->json_path,
                                         bench->candidate, &bench->message);
    if (status == ASSAY_RAN && !bench->has_cases) status = run_units(bench);
    if (status == ASSAY_RAN)
        status =
            assay_selection_walk(&bench->selection, measure_case, bench, &bench->message);
    *code = bench->output.count ? ASSAY_EXIT_PASSED : ASSAY_EXIT_NOTHING_SELECTED;
    if (status != ASSAY_RAN) return status;
    return assay_bench_output_end(&bench->output, *code, &bench->message);
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
    struct bench bench = { .candidate = "model",
                           .timing = { .warm_ups = 1, .repeats = 5 },
                           .limits = assay_limits_default(),
                           .status = ASSAY_RAN };
    int code = ASSAY_EXIT_PASSED;
    argp_parse(&argp, argc, argv, 0, NULL, &bench);
    enum assay_status status = bench.status;
    if (status == ASSAY_RAN && bench.limits.status != ASSAY_RAN) {
        status = bench.limits.status;
        bench.message = bench.limits.message;
    }
    if (status == ASSAY_RAN) status = run(&bench, &code);
    if (status != ASSAY_RAN) code = assay_complain((int)status, &bench.message);
    assay_bench_output_close(&bench.output);
    if (bench.backend) bench.backend->close(bench.state);
    assay_selection_close(&bench.selection);
    return code;
}
