/* SPDX-License-Identifier: MIT */
/* JUnit XML, for CI systems: a document that is written when all is known. */
#include "verify/case/text.h"
#include "verify/check/trial.h"
#include "verify/report/report.h"
#include "verify/report/version.h"

#include <inttypes.h>
#include <libxml/tree.h>
#include <stdlib.h>
#include <string.h>

enum outcome { PASSED, FAILURE, ERROR, SKIPPED, OUTCOME_COUNT };
static const char *const elements[] = { NULL, "failure", "error", "skipped" };

struct junit_case { /* what its name is made from */
    xmlNode *node;
    xmlChar *line, *source;
    int64_t index; /* in the source */
    size_t order;
};

/* What could not be added (no memory) is noticed once, when the document is written. */
struct junit {
    FILE *file;
    struct assay_run_header header;
    xmlDoc *document;
    xmlNode *suite;
    struct junit_case *item;
    size_t count, capacity;
    int64_t outcomes[OUTCOME_COUNT];
    double seconds;
    bool is_incomplete;
};

/* U+FFFE and U+FFFF are well-formed UTF-8 but no characters of XML. */
static size_t xml_character(const char *text)
{
    const bool is_no_character =
        strncmp(text, "\xef\xbf\xbe", 3) == 0 || strncmp(text, "\xef\xbf\xbf", 3) == 0;
    return is_no_character ? 0 : assay_report_character(text);
}

/* A copy that holds characters of XML only; newlines are kept in a text of lines. */
static xmlChar *printable(struct junit *junit, const char *text, bool has_lines)
{
    char *const copy = malloc(strlen(text) + 1);
    if (!copy) {
        junit->is_incomplete = true;
        return NULL;
    }
    size_t used = 0;
    while (*text) {
        const size_t length = xml_character(text);
        if (length)
            memcpy(copy + used, text, length);
        else
            copy[used] = has_lines && *text == '\n' ? '\n' : '?';
        used += length ? length : 1;
        text += length ? length : 1;
    }
    copy[used] = '\0';
    return (xmlChar *)copy;
}

static xmlNode *add(struct junit *junit, xmlNode *parent, const char *name)
{
    xmlNode *const node = parent ? xmlNewChild(parent, NULL, BAD_CAST name, NULL) : NULL;
    if (!node) junit->is_incomplete = true;
    return node;
}

static void set(struct junit *junit, xmlNode *node, const char *name, const char *text)
{
    xmlChar *const value = printable(junit, text, false);
    if (!node || !value || !xmlSetProp(node, BAD_CAST name, value))
        junit->is_incomplete = true;
    free(value);
}

static void set_count(struct junit *junit, xmlNode *node, const char *name, int64_t count)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, count);
    set(junit, node, name, text);
}

static void set_seconds(struct junit *junit, xmlNode *node, double seconds)
{
    char text[32];
    snprintf(text, sizeof text, "%.6f", seconds);
    set(junit, node, "time", text);
}

static void add_property(struct junit *junit, xmlNode *properties, const char *name,
                         const char *value)
{
    if (!value || !*value) return;
    xmlNode *const property = add(junit, properties, "property");
    set(junit, property, "name", name);
    set(junit, property, "value", value);
}

static void release(void *state)
{
    struct junit *const junit = state;
    for (size_t i = 0; i < junit->count; i++) {
        free(junit->item[i].line);
        free(junit->item[i].source);
    }
    free(junit->item);
    xmlFreeDoc(junit->document);
    *junit = (struct junit){ .file = junit->file };
}

static enum assay_status begin(void *state, FILE *file,
                               const struct assay_run_header *header)
{
    struct junit *const junit = state;
    char name[64];

    *junit = (struct junit){ .file = file, .header = *header };
    junit->document = xmlNewDoc(BAD_CAST "1.0");
    xmlNode *const suites = xmlNewNode(NULL, BAD_CAST "testsuites");
    if (!junit->document || !suites) {
        xmlFreeNode(suites);
        release(junit);
        return ASSAY_FAILED;
    }
    xmlDocSetRootElement(junit->document, suites);
    snprintf(name, sizeof name, "assay %s", header->command);
    set(junit, suites, "name", name);
    junit->suite = add(junit, suites, "testsuite");
    set(junit, junit->suite, "name", name);
    xmlNode *const properties = add(junit, junit->suite, "properties");
    add_property(junit, properties, "version", ASSAY_VERSION);
    add_property(junit, properties, "candidate", header->candidate);
    add_property(junit, properties, "require", header->require);
    return junit->is_incomplete ? ASSAY_FAILED : ASSAY_RAN;
}

static enum outcome outcome_of(const struct assay_result *result)
{
    if (result->status == ASSAY_UNSUPPORTED) return SKIPPED;
    if (result->status != ASSAY_RAN) return ERROR;
    if (result->has_passed) return PASSED;
    const bool is_indecisive = !result->is_decisive && result->verdict < ASSAY_OUTSIDE;
    return is_indecisive ? SKIPPED : FAILURE;
}

static void add_checks(struct junit *junit, xmlNode *properties,
                       const struct assay_result *result)
{
    char line[512];
    struct assay_text text = assay_text_open(line, sizeof line);
    for (int i = 0; assay_checks[i]; i++)
        if (result->checks >> i & 1)
            assay_text_add(&text, "%s%s", text.length ? " " : "", assay_checks[i]->name);
    add_property(junit, properties, "checks", line);
    for (int i = 0; i < result->finding_count; i++) {
        if (result->finding[i].is_failure) continue;
        text = assay_text_open(line, sizeof line);
        assay_text_add(&text, "check %s: %s", result->finding[i].check,
                       result->finding[i].sentence);
        add_property(junit, properties, "note", line);
    }
}

static void add_properties(struct junit *junit, xmlNode *node,
                           const struct assay_result *result)
{
    double ratio = -1;
    char text[32];
    for (int i = 0; i < result->output_count; i++)
        if (result->output[i].has_bound && result->output[i].bound_worst_index >= 0 &&
            !(result->output[i].max_error_over_bound <= ratio))
            ratio = result->output[i].max_error_over_bound;
    snprintf(text, sizeof text, "%.6g", ratio);

    xmlNode *const properties = add(junit, node, "properties");
    if (result->status == ASSAY_RAN)
        add_property(junit, properties, "verdict", assay_verdicts[result->verdict].name);
    else
        add_property(junit, properties, "status", assay_status_name(result->status));
    if (*result->reference)
        add_property(junit, properties, "reference", result->reference);
    else
        add_property(junit, properties, "numerics", result->numerics);
    add_property(junit, properties, "explanation", result->explanation);
    if (!(ratio < 0)) add_property(junit, properties, "error/bound", text);
    if (result->is_unverified_profile)
        add_property(junit, properties, "unverified_profile", "true");
    add_property(junit, properties, "remark", result->remark);
    add_property(junit, properties, "warning", result->warning);
    add_checks(junit, properties, result);
    for (int i = 0; i < result->criteria.count; i++) {
        const char *const name = result->criteria.name[i];
        snprintf(text, sizeof text, "criteria/%s", name);
        add_property(junit, properties, text,
                     assay_opinion_name(assay_result_opinion(result, name)));
    }
}

static void describe_failure(const struct junit *junit, const struct assay_result *result,
                             struct assay_text *text)
{
    const char *const require = junit->header.require;

    assay_text_add(text, "%s", assay_verdicts[result->verdict].name);
    if (require && *require) assay_text_add(text, ", %s is required", require);
    if (result->model_max_error_over_bound > 1)
        assay_text_add(text, "; the model itself is at %.3g of the oracle's bound",
                       result->model_max_error_over_bound);
    if (result->model_inexact > 0)
        assay_text_add(text,
                       "; the model itself has %" PRId64 " elements that are not exact",
                       result->model_inexact);
    for (int i = 0; i < result->output_count; i++) {
        const struct assay_output_result *const output = &result->output[i];
        if (output->differ == 0 && output->outside == 0 && output->inexact == 0) continue;
        assay_text_add(text, "; %s:", output->name);
        if (output->has_bits)
            assay_text_add(text, " %" PRId64 " of %" PRId64 " elements differ",
                           output->differ, output->defined);
        if (output->has_bound)
            assay_text_add(text, "%s %" PRId64 " outside the bound",
                           output->has_bits ? "," : "", output->outside);
        if (output->has_exact)
            assay_text_add(text, "%s %" PRId64 " not exact",
                           output->has_bits || output->has_bound ? "," : "",
                           output->inexact);
    }
    for (int i = 0; i < result->finding_count; i++)
        if (result->finding[i].is_failure)
            assay_text_add(text, "; check %s: %s", result->finding[i].check,
                           result->finding[i].sentence);
    if (*result->explanation) assay_text_add(text, "; equals %s", result->explanation);
}

static void describe_skip(const struct assay_result *result, struct assay_text *text)
{
    int64_t defined = 0;
    for (int i = 0; i < result->output_count; i++)
        defined += result->output[i].defined;
    const char *const reason = defined == 0 ? "no element of the outputs is defined"
                               : result->verdict == ASSAY_NOT_JUDGED
                                   ? "there was nothing to compare with"
                                   : "all expected elements are one constant";
    assay_text_add(text, "indecisive: %s", reason);
}

/* One line. */
static void set_message(struct junit *junit, xmlNode *node,
                        const struct assay_result *result, enum outcome outcome)
{
    char message[1024];
    struct assay_text text = assay_text_open(message, sizeof message);

    if (outcome == FAILURE)
        describe_failure(junit, result, &text);
    else if (*result->message.text)
        assay_text_add(&text, "%s", result->message.text);
    else if (result->status == ASSAY_RAN)
        describe_skip(result, &text);
    else
        assay_text_add(&text, "%s", assay_status_name(result->status));
    assay_text_mark_cut(&text);
    set(junit, node, "message", message);
}

/* The repeat line, to be pasted, then what the report for people says. */
static void add_block(struct junit *junit, xmlNode *node,
                      const struct assay_result *result)
{
    char *block = NULL;
    size_t size;
    FILE *const file = open_memstream(&block, &size);
    void *const text_state = calloc(1, assay_report_text.state_bytes);

    bool is_complete = file && text_state;
    if (is_complete) {
        assay_report_repeat(file, &junit->header, result);
        fputs("\n\n", file);
        is_complete =
            assay_report_text.begin(text_state, file, &junit->header) == ASSAY_RAN &&
            assay_report_text.result(text_state, result) == ASSAY_RAN;
    }
    if (file && fclose(file) != 0) is_complete = false;
    xmlChar *const content = is_complete ? printable(junit, block, true) : NULL;
    xmlNode *const text = content && node ? xmlNewText(content) : NULL;
    if (text)
        xmlAddChild(node, text);
    else
        junit->is_incomplete = true;
    free(content);
    free(text_state);
    free(block);
}

static void add_outcome(struct junit *junit, xmlNode *node,
                        const struct assay_result *result, enum outcome outcome)
{
    if (outcome == PASSED) return;
    xmlNode *const element = add(junit, node, elements[outcome]);
    set_message(junit, element, result, outcome);
    set(junit, element, "type",
        outcome == FAILURE            ? assay_verdicts[result->verdict].name
        : result->status == ASSAY_RAN ? "indecisive"
                                      : assay_status_name(result->status));
    if (outcome != SKIPPED) add_block(junit, element, result);
}

/* The cases of a recorded file come one after the other, all of them. */
static void remember(struct junit *junit, xmlNode *node,
                     const struct assay_result *result)
{
    if (junit->count == junit->capacity) {
        const size_t capacity = 2 * junit->capacity + 64;
        void *const grown = realloc(junit->item, capacity * sizeof *junit->item);
        if (!grown) {
            junit->is_incomplete = true;
            return;
        }
        junit->item = grown;
        junit->capacity = capacity;
    }
    struct junit_case *const item = &junit->item[junit->count];
    *item = (struct junit_case){ .node = node,
                                 .line = printable(junit, result->case_line, false),
                                 .source = printable(junit, result->source, false),
                                 .order = junit->count };
    if (*result->source && junit->count > 0 && xmlStrEqual(item[-1].source, item->source))
        item->index = item[-1].index + 1;
    junit->count++;
}

static enum assay_status add_result(void *state, const struct assay_result *result)
{
    struct junit *const junit = state;
    const enum outcome outcome = outcome_of(result);
    xmlNode *const node = add(junit, junit->suite, "testcase");

    set(junit, node, "classname", result->operation ? result->operation->name : "assay");
    set(junit, node, "name", result->case_line);
    if (*result->source) set(junit, node, "file", result->source);
    set_seconds(junit, node, result->seconds);
    add_properties(junit, node, result);
    add_outcome(junit, node, result, outcome);
    remember(junit, node, result);
    junit->outcomes[outcome]++;
    junit->seconds += result->seconds;
    return junit->is_incomplete ? ASSAY_FAILED : ASSAY_RAN;
}

static int by_name(const void *left, const void *right)
{
    const struct junit_case *const a = left, *const b = right;
    const int lines = xmlStrcmp(a->line, b->line);
    if (lines) return lines;
    const int sources = xmlStrcmp(a->source, b->source);
    if (sources) return sources;
    if (a->index != b->index) return a->index < b->index ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

/* Consumers drop what has the name of an earlier case: "LINE (FILE case 3)" where a line
 * is there twice, and "... (2)" where even that is. */
static void rename_repeated(struct junit *junit)
{
    if (junit->count > 0) qsort(junit->item, junit->count, sizeof *junit->item, by_name);
    int64_t occurrence = 1;
    for (size_t i = 0; i < junit->count && !junit->is_incomplete; i++) {
        const struct junit_case *const item = &junit->item[i];
        const bool is_like_last = i > 0 && xmlStrEqual(item->line, item[-1].line);
        const bool is_like_next =
            i + 1 < junit->count && xmlStrEqual(item->line, item[1].line);
        if (!is_like_last && !is_like_next) continue;
        const bool has_source = *item->source;
        const bool is_same = is_like_last && xmlStrEqual(item->source, item[-1].source) &&
                             item->index == item[-1].index;
        occurrence = is_same ? occurrence + 1 : 1;

        char name[ASSAY_MAX_CASE_LINE + 1024];
        struct assay_text text = assay_text_open(name, sizeof name);
        assay_text_add(&text, "%s", (const char *)item->line);
        if (has_source)
            assay_text_add(&text, " (%s case %" PRId64 ")", (const char *)item->source,
                           item->index);
        if (occurrence > 1) assay_text_add(&text, " (%" PRId64 ")", occurrence);
        set(junit, item->node, "name", name);
    }
}

/* A run that compared nothing must not look green. */
static void add_nothing_selected(struct junit *junit, const struct assay_summary *summary)
{
    xmlNode *const node = add(junit, junit->suite, "testcase");
    set(junit, node, "classname", "assay");
    set(junit, node, "name", "no case was selected");
    set_seconds(junit, node, 0);
    xmlNode *const error = add(junit, node, "error");
    set(junit, error, "message",
        summary->cases ? "all selected cases are unsupported" : "no case was selected");
    set(junit, error, "type", "nothing-selected");
    junit->outcomes[ERROR]++;
}

static void set_totals(struct junit *junit, xmlNode *node)
{
    int64_t tests = 0;
    for (int i = 0; i < OUTCOME_COUNT; i++)
        tests += junit->outcomes[i];
    set_count(junit, node, "tests", tests);
    set_count(junit, node, "failures", junit->outcomes[FAILURE]);
    set_count(junit, node, "errors", junit->outcomes[ERROR]);
    set_count(junit, node, "skipped", junit->outcomes[SKIPPED]);
    set_seconds(junit, node, junit->seconds);
}

static enum assay_status end(void *state, const struct assay_summary *summary)
{
    struct junit *const junit = state;
    xmlChar *text = NULL;
    int size = 0;

    if (summary->cases == summary->unsupported) add_nothing_selected(junit, summary);
    rename_repeated(junit);
    set_totals(junit, xmlDocGetRootElement(junit->document));
    set_totals(junit, junit->suite);
    if (!junit->is_incomplete)
        xmlDocDumpFormatMemoryEnc(junit->document, &text, &size, "UTF-8", 1);
    const bool is_written = text && size > 0 &&
                            fwrite(text, 1, (size_t)size, junit->file) == (size_t)size &&
                            fflush(junit->file) == 0;
    xmlFree(text);
    release(junit);
    return is_written ? ASSAY_RAN : ASSAY_FAILED;
}

const struct assay_report assay_report_junit = {
    .name = "junit",
    .summary = "JUnit XML for CI systems: a testcase a case",
    .state_bytes = sizeof(struct junit),
    .begin = begin,
    .result = add_result,
    .end = end,
    .close = release,
};
