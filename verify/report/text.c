/* SPDX-License-Identifier: MIT */
/* The report for people: what passed in a line each, what did not in a block each. */
#include "verify/report/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LISTED_DIFFERENCES = 10 };
enum colour { RED = 31, GREEN = 32, YELLOW = 33 };

struct text_report {
    FILE *file;
    struct assay_run_header header;
    bool is_coloured, has_bound; /* whether any result had a bound */
    char source[sizeof((struct assay_result *)NULL)->source]; /* of the current group */
};

/* The name's plural but for one: "1 element", "2 elements". */
static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

static void print_text(FILE *file, const char *text)
{
    while (*text) {
        const size_t length = assay_report_character(text);
        if (length)
            fwrite(text, 1, length, file);
        else
            fputc('?', file);
        text += length ? length : 1;
    }
}

static bool is_printable(const char *text)
{
    size_t length;
    while ((length = assay_report_character(text)))
        text += length;
    return *text == '\0';
}

/* A word for the shell: as it is, in '', or in $'' when it holds unprintable bytes. */
static void print_word(FILE *file, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_./:=,+-@%";
    const bool is_bare = *word && word[strspn(word, plain)] == '\0';
    const bool has_escapes = !is_printable(word);

    if (is_bare) {
        fputs(word, file);
        return;
    }
    fputs(has_escapes ? "$'" : "'", file);
    for (; *word; word++) {
        const unsigned char byte = (unsigned char)*word;
        if (has_escapes && (byte < 0x20 || byte >= 0x7f || byte == '\'' || byte == '\\'))
            fprintf(file, "\\%03o", byte);
        else if (byte == '\'')
            fputs("'\\''", file);
        else
            fputc(byte, file);
    }
    fputc('\'', file);
}

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
    print_text(file, text);
    fputc('\n', file);
}

struct index_text {
    char text[128];
};

static struct index_text index_text(const struct assay_tensor *tensor, int64_t element)
{
    struct index_text text = { "[" };
    int64_t index[ASSAY_MAX_RANK];
    int used = 1;

    assay_report_index(tensor, element, index);
    for (int i = 0; i < tensor->rank; i++)
        used += snprintf(text.text + used, sizeof text.text - (size_t)used, "%s%" PRId64,
                         i ? ", " : "", index[i]);
    snprintf(text.text + used, sizeof text.text - (size_t)used, "]");
    return text;
}

struct value_text {
    char text[32];
};

static struct value_text value_text(double value)
{
    struct value_text text = { "NaN" };
    if (!isnan(value)) snprintf(text.text, sizeof text.text, "%.10g", value);
    return text;
}

static struct value_text ulps_text(uint64_t ulps)
{
    struct value_text text = { "NaN" };
    if (ulps != UINT64_MAX) snprintf(text.text, sizeof text.text, "%" PRIu64, ulps);
    return text;
}

static void print_at(FILE *file, const struct assay_tensor *tensor, int64_t element,
                     const struct assay_place *place)
{
    fprintf(file, "%s%s", index_text(tensor, element).text, *place->text ? ", " : "");
    print_text(file, place->text);
    fputc('\n', file);
}

static void print_element(FILE *file, const char *role, enum assay_format format,
                          uint32_t bits)
{
    fprintf(file, "      %-9s  %s  %s\n", role, assay_report_bits(format, bits).text,
            value_text(assay_report_value(format, bits)).text);
}

static void print_bound_summary(FILE *file, const struct assay_output_result *output)
{
    if (output->bound_worst_index >= 0)
        fprintf(file, "; error/bound %.3g", output->max_error_over_bound);
    if (output->outside)
        fprintf(file, "; %" PRId64 " outside the bound", output->outside);
    if (output->unclaimed)
        fprintf(file, "; %" PRId64 " without a bound", output->unclaimed);
}

/* "d: 24576 elements, 0 differ; error/bound 0.41" */
static void print_output_line(FILE *file, const struct assay_output_result *output)
{
    print_text(file, output->name);
    if (output->defined == output->elements)
        fprintf(file, ": %" PRId64 " element%s", output->elements,
                plural(output->elements));
    else
        fprintf(file, ": %" PRId64 " of %" PRId64 " element%s defined", output->defined,
                output->elements, plural(output->elements));
    if (output->has_bits)
        fprintf(file, ", %" PRId64 " differ%s", output->differ,
                output->differ == 1 ? "s" : "");
    if (output->has_bound) print_bound_summary(file, output);
    if (output->has_exact && output->inexact)
        fprintf(file, "; %" PRId64 " not exact", output->inexact);
    else if (output->has_exact)
        fprintf(file, "; exact");
}

static void print_worst(FILE *file, const char *what, const char *reference,
                        const struct assay_output_result *output,
                        const struct assay_difference *worst)
{
    const enum assay_format format = output->tensor.format;

    fprintf(file, "    worst %s at ", what);
    print_at(file, &output->tensor, worst->index, &worst->place);
    print_element(file, "candidate", format, worst->candidate);
    print_element(file, reference, format, worst->reference);
    if (worst->ulps == UINT64_MAX)
        fprintf(file, "      distance   none: one of them is NaN\n");
    else
        fprintf(file, "      distance   %" PRIu64 " unit%s in the last place\n",
                worst->ulps, plural((int64_t)worst->ulps));
}

static void print_difference_table(FILE *file, const struct assay_output_result *output)
{
    const int listed = output->difference_count < LISTED_DIFFERENCES
                           ? output->difference_count
                           : LISTED_DIFFERENCES;
    int width = (int)strlen("index");
    for (int i = 0; i < listed; i++) {
        const int64_t element = output->difference[i].index;
        const int length = (int)strlen(index_text(&output->tensor, element).text);
        if (length > width) width = length;
    }

    if (listed < output->differ)
        fprintf(file, "    the first %d of %" PRId64 " that differ:\n", listed,
                output->differ);
    else
        fprintf(file, "    all that differ:\n");
    fprintf(file, "      %-*s  candidate   reference   %-10s  place\n", width, "index",
            "ulp");
    for (int i = 0; i < listed; i++) {
        const struct assay_difference *const item = &output->difference[i];
        const enum assay_format format = output->tensor.format;
        fprintf(file, "      %-*s  %-10s  %-10s  %-10s  ", width,
                index_text(&output->tensor, item->index).text,
                assay_report_bits(format, item->candidate).text,
                assay_report_bits(format, item->reference).text,
                ulps_text(item->ulps).text);
        print_text(file, item->place.text);
        fputc('\n', file);
    }
}

static void print_places(FILE *file, const struct assay_output_result *output)
{
    const struct assay_difference *const item = output->difference;
    int places = 0;

    for (int i = 0; i < output->difference_count; i++) {
        int earlier = 0;
        while (strcmp(item[earlier].place.text, item[i].place.text) != 0)
            earlier++;
        places += earlier == i;
    }
    if (places == 0 || !*item->place.text) return;

    const bool has_all = output->difference_count == output->differ;
    fprintf(file, "    where: ");
    if (has_all)
        fprintf(file, "all ");
    else
        fprintf(file, "the first %d ", output->difference_count);
    if (places > 1) {
        fprintf(file, "in %d different places\n", places);
        return;
    }
    fprintf(file, "in one place, ");
    print_text(file, item->place.text);
    fputc('\n', file);
}

static void print_bound(FILE *file, const struct assay_output_result *output)
{
    const enum assay_format format = output->tensor.format;

    fprintf(file, "    worst error/bound %.3g at ", output->max_error_over_bound);
    print_at(file, &output->tensor, output->bound_worst_index,
             &output->bound_worst_place);
    print_element(file, "candidate", format, output->bound_worst_bits);
    fprintf(file, "      %-9s  %-*s  %s\n", "oracle",
            2 + 2 * (int)assay_format_bytes(format), "",
            value_text(output->bound_worst_value).text);
    fprintf(file, "      %-9s  %-*s  %s\n", "bound",
            2 + 2 * (int)assay_format_bytes(format), "",
            value_text(output->bound_worst_bound).text);
}

static void print_output_block(FILE *file, const struct assay_output_result *output)
{
    fprintf(file, "  ");
    print_output_line(file, output);
    fputc('\n', file);
    if (output->has_bits && output->differ > 0) {
        print_worst(file, "bits", "reference", output, &output->worst);
        print_difference_table(file, output);
        print_places(file, output);
    }
    const bool is_of_interest = output->differ > 0 || output->outside > 0;
    if (output->has_bound && output->bound_worst_index >= 0 && is_of_interest)
        print_bound(file, output);
    if (output->inexact > 0)
        print_worst(file, "inexact bits", "oracle", output, &output->inexact_worst);
}

static void print_constant_outputs(FILE *file, const struct assay_result *result)
{
    for (int i = 0; i < result->output_count; i++) {
        const struct assay_output_result *const output = &result->output[i];
        if (!output->is_constant || output->defined == 0) continue;
        fprintf(file, "  proves nothing: all expected elements of ");
        print_text(file, output->name);
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
            print_text(file, output->name);
            fprintf(file, ": %s\n", line);
        }
    }
}

/* Only what differs from a plain `assay verify CASE`, where the candidate is the model,
 * or `assay verify --recorded FILE`, where it is the file. */
void assay_report_repeat(FILE *file, const struct assay_run_header *header,
                         const struct assay_result *result)
{
    const char *const candidate = header->candidate;
    const char *const usual = *result->source ? "recorded" : "model";
    const bool is_usual =
        !candidate || !*candidate || strcmp(candidate, usual) == 0 ||
        (*result->source && strncmp(candidate, "recorded:", strlen("recorded:")) == 0);

    fprintf(file, "assay verify ");
    if (*result->source) fprintf(file, "--recorded ");
    print_word(file, *result->source ? result->source : result->case_line);
    if (!is_usual) {
        fprintf(file, " --candidate ");
        print_word(file, candidate);
    }
    if (header->require && *header->require) {
        fprintf(file, " --require ");
        print_word(file, header->require);
    }
    for (int i = 0; i < result->criteria.count; i++)
        fprintf(file, "%s%s", i ? "," : " --criteria ", result->criteria.name[i]);
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
    print_text(report->file, result->case_line);
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
                result->model_inexact, plural(result->model_inexact));
    if (*result->explanation) {
        fprintf(file, "  explanation: equals ");
        print_text(file, result->explanation);
        fputc('\n', file);
    }
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
    const bool has_failed =
        has_run ? result->is_decisive : result->status != ASSAY_UNSUPPORTED;

    print_headline(report, result, has_failed);
    if (*result->message.text) {
        fprintf(report->file, "  ");
        print_text(report->file, result->message.text);
        fputc('\n', report->file);
    }
    if (has_run && (!result->is_decisive || result->verdict == ASSAY_NOT_JUDGED))
        print_lack_of_evidence(report->file, result);
    for (int i = 0; i < result->output_count; i++)
        print_output_block(report->file, &result->output[i]);
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
        print_output_line(file, &result->output[i]);
    }
    if (*result->explanation) {
        fputs("; equals ", file);
        print_text(file, result->explanation);
    }
    if (result->is_unverified_profile) fputs("; unverified profile", file);
    if (result->remark) {
        fputs("; ", file);
        print_text(file, result->remark);
    }
    if (*result->warning) {
        fputs("; warning: ", file);
        print_text(file, result->warning);
    }
    if (result->criteria.count) fputs("; ", file);
    print_opinions(file, result);
    fputs("   ", file);
    print_text(file, result->case_line);
    fputc('\n', file);
}

static void print_source_when_new(struct text_report *report, const char *source)
{
    if (strcmp(report->source, source) == 0) return;
    strcpy(report->source, source);
    if (!*source) return;
    print_text(report->file, source);
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
            summary->cases, plural(summary->cases), summary->passed, summary->failed,
            summary->indecisive, summary->unsupported);
    if (summary->broken) fprintf(file, ", %" PRId64 " broken", summary->broken);
    fputc('\n', file);
    print_verdict_counts(file, summary);
    fprintf(file, "%" PRId64 " element%s compared bit for bit, %" PRId64 " equal",
            summary->elements_compared, plural(summary->elements_compared),
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
