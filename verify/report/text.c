/* SPDX-License-Identifier: MIT */
/* The report for people: what passed in a line each, what did not in a block each. */
#include "verify/check/trial.h"
#include "verify/report/text_print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum colour { RED = 31, GREEN = 32, YELLOW = 33 };

struct text_report {
    FILE *file;
    struct assay_run_header header;
    bool is_coloured, has_bound; /* whether any result had a bound */
    uint32_t checks;             /* that judged any result */
    int64_t candidate_runs;
    char source[sizeof((struct assay_result *)NULL)->source]; /* of the current group */
};

static void print_mark(const struct text_report *report, enum colour colour, int width,
                       const char *word)
{
    if (report->is_coloured)
        fprintf(report->file, "\033[%dm%-*s\033[0m", (int)colour, width, word);
    else
        fprintf(report->file, "%-*s", width, word);
}

static void print_named(FILE *file, const char *name, const char *text)
{
    if (!*text) return;
    fprintf(file, "  %s: ", name);
    assay_text_print(file, text);
    fputc('\n', file);
}

static void print_constant_outputs(FILE *file, const struct assay_result *result)
{
    for (int i = 0; i < result->output_count; i++) {
        const struct assay_output_result *const output = &result->output[i];
        if (!output->is_constant || output->defined == 0) continue;
        fprintf(file, "  proves nothing: all expected elements of ");
        assay_text_print(file, output->name);
        fprintf(file, " are the same constant\n");
    }
}

static void print_lack_of_evidence(FILE *file, const struct assay_result *result)
{
    int64_t defined = 0;
    for (int i = 0; i < result->output_count; i++)
        defined += result->output[i].defined;

    if (defined == 0)
        fprintf(file, "  proves nothing: no element of the outputs is defined\n");
    else if (result->verdict == ASSAY_NOT_JUDGED)
        fprintf(file, "  proves nothing: there was nothing to compare with\n");
    else
        print_constant_outputs(file, result);
}

/* "deepgemm would pass, torch would fail" */
static void print_opinions(FILE *file, const struct assay_result *result)
{
    for (int i = 0; i < result->criteria.count; i++) {
        const char *const name = result->criteria.name[i];
        fprintf(file, "%s%s %s", i ? ", " : "", name,
                assay_opinion_name(assay_result_opinion(result, name)));
    }
}

static void print_criteria(FILE *file, const struct assay_result *result)
{
    if (result->criteria.count == 0) return;
    fprintf(file, "  no part of the verdict: ");
    print_opinions(file, result);
    fputc('\n', file);
    for (int i = 0; i < result->output_count; i++) {
        const struct assay_output_result *const output = &result->output[i];
        for (int at = 0; at < output->criterion_count; at++) {
            char line[256];
            struct assay_text text = assay_text_open(line, sizeof line);
            assay_criterion_describe_result(&output->criterion[at], &text);
            assay_text_mark_cut(&text);
            fprintf(file, "    %s, ", output->criterion[at].criterion->name);
            assay_text_print(file, output->name);
            fprintf(file, ": %s\n", line);
        }
    }
}

static void print_headline(const struct text_report *report,
                           const struct assay_result *result, bool has_failed)
{
    const bool has_run = result->status == ASSAY_RAN;
    const bool is_indecisive = has_run && !has_failed;
    const char *const word = is_indecisive ? "indecisive"
                             : has_run     ? assay_verdicts[result->verdict].name
                                           : assay_status_name(result->status);

    if (has_failed) print_mark(report, RED, 0, "FAILED ");
    print_mark(report, has_failed ? RED : YELLOW, 0, word);
    fputs("  ", report->file);
    assay_text_print(report->file, result->case_line);
    fputc('\n', report->file);
}

static void print_explanations(const struct text_report *report,
                               const struct assay_result *result)
{
    FILE *const file = report->file;
    const double model_ratio = result->model_max_error_over_bound;

    if (result->verdict == ASSAY_CONTRADICTION && model_ratio >= 0)
        fprintf(file,
                "  contradiction: the model itself is at %.3g of the oracle's bound; "
                "this is a defect of assay\n",
                model_ratio);
    if (result->verdict == ASSAY_CONTRADICTION && result->model_inexact > 0)
        fprintf(file,
                "  contradiction: the model itself differs from exact results in %" PRId64
                " element%s; this is a defect of assay\n",
                result->model_inexact, assay_text_plural(result->model_inexact));
    if (*result->explanation) {
        fprintf(file, "  explanation: equals ");
        assay_text_print(file, result->explanation);
        fputc('\n', file);
    }
    if (*result->reference)
        print_named(file, "reference", result->reference);
    else
        print_named(file, "reference numerics", result->numerics);
    if (result->is_unverified_profile)
        fprintf(file, "  unverified profile: its constants are published, not measured "
                      "by this project\n");
    if (result->remark) print_named(file, "remark", result->remark);
    print_named(file, "warning", result->warning);
    if (report->header.require) print_named(file, "required", report->header.require);
}

static void print_block(const struct text_report *report,
                        const struct assay_result *result)
{
    const bool has_run = result->status == ASSAY_RAN;
    const bool has_failed = has_run
                                ? result->is_decisive || result->verdict >= ASSAY_OUTSIDE
                                : result->status != ASSAY_UNSUPPORTED;

    print_headline(report, result, has_failed);
    if (*result->message.text) {
        fprintf(report->file, "  ");
        assay_text_print(report->file, result->message.text);
        fputc('\n', report->file);
    }
    if (has_run && (!result->is_decisive || result->verdict == ASSAY_NOT_JUDGED))
        print_lack_of_evidence(report->file, result);
    for (int i = 0; i < result->output_count; i++)
        assay_text_print_output(report->file, &result->output[i]);
    assay_text_print_findings(report->file, result);
    if (has_run) print_explanations(report, result);
    print_criteria(report->file, result);
    assay_report_printed(report->file, result);
    if (result->status == ASSAY_UNSUPPORTED) return;
    fprintf(report->file, "  repeat: ");
    assay_report_repeat(report->file, &report->header, result);
    fputc('\n', report->file);
}

static void print_pass(const struct text_report *report,
                       const struct assay_result *result)
{
    FILE *const file = report->file;

    print_mark(report, GREEN, 10, assay_verdicts[result->verdict].name);
    for (int i = 0; i < result->output_count; i++) {
        if (i > 0) fputs(" | ", file);
        assay_text_print_output_line(file, &result->output[i]);
    }
    if (*result->reference) {
        fputs("; reference ", file);
        assay_text_print(file, result->reference);
    }
    if (*result->explanation) {
        fputs("; equals ", file);
        assay_text_print(file, result->explanation);
    }
    if (result->is_unverified_profile) fputs("; unverified profile", file);
    if (result->remark) {
        fputs("; ", file);
        assay_text_print(file, result->remark);
    }
    if (*result->warning) {
        fputs("; warning: ", file);
        assay_text_print(file, result->warning);
    }
    assay_text_print_notes(file, result);
    if (result->criteria.count) fputs("; ", file);
    print_opinions(file, result);
    fputs("   ", file);
    assay_text_print(file, result->case_line);
    fputc('\n', file);
}

static void print_source_when_new(struct text_report *report, const char *source)
{
    if (strcmp(report->source, source) == 0) return;
    strcpy(report->source, source);
    if (!*source) return;
    assay_text_print(report->file, source);
    fputs(":\n", report->file);
}

static bool wants_colour(FILE *file)
{
    const char *const no_color = getenv("NO_COLOR"), *const term = getenv("TERM");
    return isatty(fileno(file)) && !(no_color && *no_color) && term &&
           strcmp(term, "dumb") != 0;
}

static enum assay_status flush(FILE *file)
{
    return fflush(file) == 0 && !ferror(file) ? ASSAY_RAN : ASSAY_FAILED;
}

static enum assay_status begin(void *state, FILE *file,
                               const struct assay_run_header *header)
{
    struct text_report *const report = state;
    *report = (struct text_report){ .file = file,
                                    .header = *header,
                                    .is_coloured = wants_colour(file) };
    return flush(file);
}

static enum assay_status print_result(void *state, const struct assay_result *result)
{
    struct text_report *const report = state;

    for (int i = 0; i < result->output_count; i++)
        if (result->output[i].has_bound) report->has_bound = true;
    report->checks |= result->checks;
    report->candidate_runs += result->candidate_runs;
    print_source_when_new(report, result->source);
    if (result->has_passed)
        print_pass(report, result);
    else
        print_block(report, result);
    return flush(report->file);
}

static void print_verdict_counts(FILE *file, const struct assay_summary *summary)
{
    const char *before = "verdicts: ";
    for (int i = ASSAY_EQUAL; i < ASSAY_VERDICT_COUNT; i++) {
        if (summary->verdicts[i] == 0) continue;
        fprintf(file, "%s%" PRId64 " %s", before, summary->verdicts[i],
                assay_verdicts[i].name);
        before = ", ";
    }
    if (*before == ',') fputc('\n', file);
}

/* Bits, bound and exactness are said of every case; that a candidate ran again is not. */
static void print_checks(const struct text_report *report)
{
    bool has_rerun = false;
    for (int i = 0; assay_checks[i]; i++)
        has_rerun |= report->checks >> i & 1 && assay_checks[i]->runs_candidate;
    if (!has_rerun) return;

    const char *before = "checks: ";
    for (int i = 0; assay_checks[i]; i++) {
        if (!(report->checks >> i & 1)) continue;
        fprintf(report->file, "%s%s", before, assay_checks[i]->name);
        before = ", ";
    }
    fprintf(report->file, "; %" PRId64 " run%s of the candidate\n",
            report->candidate_runs, assay_text_plural(report->candidate_runs));
}

/* A run in which nothing was selected never reads as passed. */
static void print_final_word(const struct text_report *report,
                             const struct assay_summary *summary)
{
    if (summary->cases == 0 && (summary->exit_code == 0 || summary->exit_code == 5))
        print_mark(report, RED, 0, "nothing was selected");
    else if (summary->exit_code == 0)
        print_mark(report, GREEN, 0, "PASSED");
    else
        print_mark(report, RED, 0, "FAILED");
    fputc('\n', report->file);
}

static enum assay_status end(void *state, const struct assay_summary *summary)
{
    struct text_report *const report = state;
    FILE *const file = report->file;

    fprintf(file,
            "\n%" PRId64 " case%s: %" PRId64 " passed, %" PRId64 " failed, %" PRId64
            " indecisive, %" PRId64 " unsupported",
            summary->cases, assay_text_plural(summary->cases), summary->passed,
            summary->failed, summary->indecisive, summary->unsupported);
    if (summary->broken) fprintf(file, ", %" PRId64 " broken", summary->broken);
    fputc('\n', file);
    print_verdict_counts(file, summary);
    print_checks(report);
    fprintf(file, "%" PRId64 " element%s compared bit for bit, %" PRId64 " equal",
            summary->elements_compared, assay_text_plural(summary->elements_compared),
            summary->elements_equal);
    if (report->has_bound)
        fprintf(file, "; largest error/bound %.3g", summary->max_error_over_bound);
    fputc('\n', file);
    print_final_word(report, summary);
    return flush(file);
}

const struct assay_report assay_report_text = {
    .name = "text",
    .summary = "for people, on standard output",
    .state_bytes = sizeof(struct text_report),
    .begin = begin,
    .result = print_result,
    .end = end,
};
