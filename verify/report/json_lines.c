/* SPDX-License-Identifier: MIT */
/* JSON Lines: the facts, for machines. Every other view can be made from them. */
#include "verify/report/report.h"
#include "verify/report/version.h"

#include <cblas.h>
#include <fenv.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { SCHEMA = 1 };

#ifdef __clang__
static const char compiler[] = __VERSION__;
#else
static const char compiler[] = "GCC " __VERSION__;
#endif

/* Members that could not be added (no memory) are noticed once, when the line is
 * written. */
struct json_lines {
    FILE *file;
    bool is_incomplete;
};

static void put(struct json_lines *lines, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value)) lines->is_incomplete = true;
}

static void append(struct json_lines *lines, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value)) lines->is_incomplete = true;
}

static void put_flag(struct json_lines *lines, json_t *object, const char *key,
                     bool value)
{
    put(lines, object, key, json_boolean(value));
}

static void put_count(struct json_lines *lines, json_t *object, const char *key,
                      int64_t value)
{
    put(lines, object, key, json_integer(value));
}

static void put_real(struct json_lines *lines, json_t *object, const char *key,
                     double value)
{
    if (isfinite(value)) put(lines, object, key, json_real(value));
}

static void put_lines(struct json_lines *lines, json_t *object, const char *key,
                      const char *text, bool is_one_line)
{
    if (!text || !*text) return;
    char *const printable = malloc(strlen(text) + 1);
    if (!printable) {
        lines->is_incomplete = true;
        return;
    }
    size_t used = 0;
    while (*text) {
        const size_t length = assay_report_character(text);
        if (length)
            memcpy(printable + used, text, length);
        else
            printable[used] = *text == '\n' && !is_one_line ? '\n' : '?';
        used += length ? length : 1;
        text += length ? length : 1;
    }
    put(lines, object, key, json_stringn(printable, used));
    free(printable);
}

static void put_text(struct json_lines *lines, json_t *object, const char *key,
                     const char *text)
{
    put_lines(lines, object, key, text, true);
}

static enum assay_status write_line(struct json_lines *lines, json_t *object)
{
    const bool is_written = !lines->is_incomplete &&
                            json_dumpf(object, lines->file, JSON_COMPACT) == 0 &&
                            fputc('\n', lines->file) != EOF && fflush(lines->file) == 0;
    json_decref(object);
    return is_written ? ASSAY_RAN : ASSAY_FAILED;
}

/* Reads its operands through volatile, so that the machine computes and not the
 * compiler. */
static const char *float_mode(void)
{
    const volatile float tiny = 0x1p-126F;
    const volatile double factor = 1 + 0x1p-30, square = -1 - 0x1p-29;

    if (fegetround() != FE_TONEAREST) return "directed rounding";
    if (tiny * 0.125F == 0) return "flush to zero";
    if (factor * factor + square != 0) return "contracted or extended";
    return "ieee";
}

static json_t *environment(struct json_lines *lines)
{
    static const char *const names[] = {
        "OMP_NUM_THREADS",         "OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE",
        "CUDA_VISIBLE_DEVICES",    "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING",
        "CUBLAS_WORKSPACE_CONFIG",
    };
    json_t *const object = json_object(), *const variables = json_object();
    put_text(lines, object, "compiler", compiler);
    put_text(lines, object, "blas", openblas_get_config());
    put_text(lines, object, "float_mode", float_mode());
    put_count(lines, object, "threads", omp_get_max_threads());
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put_text(lines, variables, names[i], getenv(names[i]));
    put(lines, object, "variables", variables);
    return object;
}

static enum assay_status begin(void *state, FILE *file,
                               const struct assay_run_header *header)
{
    struct json_lines *const lines = state;
    json_t *const object = json_object();

    *lines = (struct json_lines){ .file = file };
    put_text(lines, object, "type", "header");
    put_count(lines, object, "schema", SCHEMA);
    put_text(lines, object, "tool", "assay");
    put_text(lines, object, "version", ASSAY_VERSION);
    put_text(lines, object, "command", header->command);
    put_text(lines, object, "candidate", header->candidate);
    put_text(lines, object, "require", header->require);
    put(lines, object, "environment", environment(lines));
    return write_line(lines, object);
}

static void put_bits(struct json_lines *lines, json_t *object, const char *key,
                     enum assay_format format, uint32_t bits)
{
    put_text(lines, object, key, assay_report_bits(format, bits).text);
}

static void put_value(struct json_lines *lines, json_t *object, const char *key,
                      enum assay_format format, uint32_t bits)
{
    const double value = assay_report_value(format, bits);
    if (format == ASSAY_I32 || format == ASSAY_U8)
        put_count(lines, object, key, (int64_t)value);
    else
        put_real(lines, object, key, value);
}

static void put_index(struct json_lines *lines, json_t *object,
                      const struct assay_tensor *tensor, int64_t element)
{
    int64_t index[ASSAY_MAX_RANK];
    json_t *const array = json_array();

    assay_report_index(tensor, element, index);
    for (int i = 0; i < tensor->rank; i++)
        append(lines, array, json_integer(index[i]));
    put(lines, object, "index", array);
}

static void put_ulps(struct json_lines *lines, json_t *object, const char *key,
                     uint64_t ulps)
{
    if (ulps != UINT64_MAX) put_count(lines, object, key, (int64_t)ulps);
}

static json_t *difference_object(struct json_lines *lines,
                                 const struct assay_tensor *tensor,
                                 const struct assay_difference *difference)
{
    const enum assay_format format = tensor->format;
    json_t *const object = json_object();

    put_index(lines, object, tensor, difference->index);
    put_bits(lines, object, "candidate", format, difference->candidate);
    put_bits(lines, object, "reference", format, difference->reference);
    put_value(lines, object, "candidate_value", format, difference->candidate);
    put_value(lines, object, "reference_value", format, difference->reference);
    put_ulps(lines, object, "ulp", difference->ulps);
    put_text(lines, object, "place", difference->place.text);
    return object;
}

static void put_bitwise(struct json_lines *lines, json_t *object,
                        const struct assay_output_result *output)
{
    put_count(lines, object, "differ", output->differ);
    put_ulps(lines, object, "max_ulp", output->max_ulps);
    if (output->differ == 0) return;

    json_t *const differences = json_array();
    for (int i = 0; i < output->difference_count; i++)
        append(lines, differences,
               difference_object(lines, &output->tensor, &output->difference[i]));
    put(lines, object, "worst",
        difference_object(lines, &output->tensor, &output->worst));
    put(lines, object, "differences", differences);
}

static void put_bounded(struct json_lines *lines, json_t *object,
                        const struct assay_output_result *output)
{
    put_count(lines, object, "outside", output->outside);
    put_count(lines, object, "unclaimed", output->unclaimed);
    if (output->bound_worst_index < 0) return;

    json_t *const worst = json_object();
    put_real(lines, object, "max_error_over_bound", output->max_error_over_bound);
    put_index(lines, worst, &output->tensor, output->bound_worst_index);
    put_bits(lines, worst, "bits", output->tensor.format, output->bound_worst_bits);
    put_real(lines, worst, "value", output->bound_worst_value);
    put_real(lines, worst, "bound", output->bound_worst_bound);
    put_text(lines, worst, "place", output->bound_worst_place.text);
    put(lines, object, "bound_worst", worst);
}

static void put_hash(struct json_lines *lines, json_t *object, const char *key,
                     uint64_t hash)
{
    char text[24];
    snprintf(text, sizeof text, "0x%016" PRIx64, hash);
    put_text(lines, object, key, text);
}

static json_t *criteria_array(struct json_lines *lines,
                              const struct assay_output_result *output)
{
    json_t *const array = json_array();
    for (int i = 0; i < output->criterion_count; i++) {
        const struct assay_criterion_result *const row = &output->criterion[i];
        json_t *const object = json_object();
        put_text(lines, object, "name", row->criterion->name);
        put_text(lines, object, "source", row->criterion->source);
        put_flag(lines, object, "would_pass", row->passes);
        put_count(lines, object, "elements", row->elements);
        if (row->criterion->rule) put_count(lines, object, "beyond", row->beyond);
        put_count(lines, object, "specials", row->specials);
        if (row->criterion->calc_diff_limit > 0 || row->criterion->cosine_limit > 0)
            put_real(lines, object, "difference", row->difference);
        append(lines, array, object);
    }
    return array;
}

static void put_opinions(struct json_lines *lines, json_t *object,
                         const struct assay_result *result)
{
    if (result->criteria.count == 0) return;
    json_t *const opinions = json_object();
    for (int i = 0; i < result->criteria.count; i++) {
        const char *const name = result->criteria.name[i];
        put_text(lines, opinions, name,
                 assay_opinion_name(assay_result_opinion(result, name)));
    }
    put(lines, object, "criteria", opinions);
}

static json_t *output_object(struct json_lines *lines,
                             const struct assay_output_result *output)
{
    json_t *const object = json_object(), *const shape = json_array();

    for (int i = 0; i < output->tensor.rank; i++)
        append(lines, shape, json_integer(output->tensor.shape[i]));
    put_text(lines, object, "name", output->name);
    put_text(lines, object, "format", assay_format_name(output->tensor.format));
    put(lines, object, "shape", shape);
    put_count(lines, object, "elements", output->elements);
    put_count(lines, object, "defined", output->defined);
    put_hash(lines, object, "candidate_hash", output->candidate_hash);
    if (output->is_constant) put_flag(lines, object, "constant", true);
    if (output->has_bits) put_bitwise(lines, object, output);
    if (output->has_bound) put_bounded(lines, object, output);
    if (output->has_exact) put_count(lines, object, "inexact", output->inexact);
    if (output->inexact > 0)
        put(lines, object, "inexact_worst",
            difference_object(lines, &output->tensor, &output->inexact_worst));
    if (output->criterion_count)
        put(lines, object, "criteria", criteria_array(lines, output));
    return object;
}

static void put_judgement(struct json_lines *lines, json_t *object,
                          const struct assay_result *result)
{
    put_text(lines, object, "status", assay_status_name(result->status));
    put_text(lines, object, "verdict", assay_verdicts[result->verdict].name);
    put_flag(lines, object, "passed", result->has_passed);
    put_flag(lines, object, "decisive", result->is_decisive);
    if (result->is_unverified_profile)
        put_flag(lines, object, "unverified_profile", true);
    put_text(lines, object, "remark", result->remark);
    put_text(lines, object, "numerics", result->numerics);
    put_text(lines, object, "explanation", result->explanation);
    put_text(lines, object, "message", result->message.text);
    put_text(lines, object, "warning", result->warning);
    put_lines(lines, object, "output", result->printed, false);
}

static enum assay_status write_result(void *state, const struct assay_result *result)
{
    struct json_lines *const lines = state;
    json_t *const object = json_object(), *const outputs = json_array();

    put_text(lines, object, "type", "case");
    put_text(lines, object, "case", result->case_line);
    put_text(lines, object, "source", result->source);
    if (result->operation) put_text(lines, object, "operation", result->operation->name);
    put_judgement(lines, object, result);
    put_opinions(lines, object, result);
    for (int i = 0; i < result->output_count; i++)
        append(lines, outputs, output_object(lines, &result->output[i]));
    put(lines, object, "outputs", outputs);
    if (result->model_max_error_over_bound >= 0)
        put_real(lines, object, "model_max_error_over_bound",
                 result->model_max_error_over_bound);
    if (result->model_inexact > 0)
        put_count(lines, object, "model_inexact", result->model_inexact);

    if (result->status == ASSAY_RAN || result->input_hash != 0)
        put_hash(lines, object, "input_hash", result->input_hash);
    put_real(lines, object, "seconds", result->seconds);
    return write_line(lines, object);
}

static enum assay_status end(void *state, const struct assay_summary *summary)
{
    struct json_lines *const lines = state;
    json_t *const object = json_object(), *const verdicts = json_object();

    put_text(lines, object, "type", "summary");
    put_count(lines, object, "cases", summary->cases);
    put_count(lines, object, "passed", summary->passed);
    put_count(lines, object, "failed", summary->failed);
    put_count(lines, object, "indecisive", summary->indecisive);
    put_count(lines, object, "unsupported", summary->unsupported);
    put_count(lines, object, "broken", summary->broken);
    put_count(lines, object, "contradictions", summary->contradictions);
    for (int i = 0; i < ASSAY_VERDICT_COUNT; i++)
        put_count(lines, verdicts, assay_verdicts[i].name, summary->verdicts[i]);
    put(lines, object, "verdicts", verdicts);
    put_count(lines, object, "elements_compared", summary->elements_compared);
    put_count(lines, object, "elements_equal", summary->elements_equal);
    put_real(lines, object, "max_error_over_bound", summary->max_error_over_bound);
    put_count(lines, object, "exit_code", summary->exit_code);
    return write_line(lines, object);
}

const struct assay_report assay_report_json = {
    .name = "json",
    .summary = "JSON Lines: a header, one object a case, a summary",
    .state_bytes = sizeof(struct json_lines),
    .begin = begin,
    .result = write_result,
    .end = end,
};
