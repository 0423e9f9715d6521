/* SPDX-License-Identifier: MIT */
#include "verify/report/json_read.h"

#include "verify/check/trial.h"
#include "verify/report/json_get.h"
#include "verify/report/json_read_output.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SECONDS 1e9

static const struct assay_operation *read_operation(struct assay_json_reader *reader,
                                                    const json_t *object)
{
    if (!assay_json_has(object, "operation")) return NULL;
    const struct assay_operation *const operation =
        assay_operation_find(assay_json_string(reader, object, "operation"));
    if (!operation)
        assay_json_refuse(reader, object, "operation", "the name of an operation");
    return operation;
}

/* Row of assay_checks; -1 if there is none of that name. */
static int find_check(const char *name)
{
    for (int i = 0; assay_checks[i]; i++)
        if (name && strcmp(name, assay_checks[i]->name) == 0) return i;
    return -1;
}

static uint32_t read_checks(struct assay_json_reader *reader, const json_t *object)
{
    const json_t *const array = json_object_get(object, "checks");
    uint32_t checks = 0;
    bool is_right = !array || json_is_array(array);
    for (size_t i = 0; is_right && i < json_array_size(array); i++) {
        const int row = find_check(json_string_value(json_array_get(array, i)));
        is_right = row >= 0;
        if (is_right) checks |= UINT32_C(1) << row;
    }
    if (!is_right)
        assay_json_refuse(reader, object, "checks", "an array of names of checks");
    return checks;
}

static void read_findings(struct assay_json_reader *reader, const json_t *object,
                          struct assay_result *result, struct assay_json_texts *texts)
{
    if (!assay_json_has(object, "findings")) return;
    const json_t *const array =
        assay_json_objects(reader, object, "findings", ASSAY_MAX_FINDINGS);
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *const item = json_array_get(array, i);
        struct assay_finding *const finding = &result->finding[result->finding_count++];
        assay_json_at(reader, "finding %zu", i);
        const int row = find_check(assay_json_string(reader, item, "check"));
        if (row < 0)
            assay_json_refuse(reader, item, "check", "the name of a check");
        else
            finding->check = assay_checks[row]->name;
        finding->is_failure = assay_json_flag(reader, item, "failure");
        assay_json_text(reader, item, "message", finding->sentence,
                        sizeof finding->sentence);
        assay_json_read_finding_element(reader, item, texts, finding);
    }
}

/* The criteria that were asked for, in their order; what they say follows from the
 * outputs. */
static void read_criteria(struct assay_json_reader *reader, const json_t *object,
                          struct assay_criteria *criteria)
{
    json_t *const opinions = json_object_get(object, "criteria");
    const char *key;
    json_t *value;
    bool is_right = !opinions || (json_is_object(opinions) &&
                                  json_object_size(opinions) <= ASSAY_MAX_CRITERIA);
    if (is_right) {
        json_object_foreach(opinions, key, value)
        {
            struct assay_criteria one;
            struct assay_message ignored;
            is_right =
                assay_criteria_parse(key, &one, &ignored) == ASSAY_RAN && one.count == 1;
            if (!is_right) break;
            criteria->name[criteria->count++] = one.name[0];
        }
    }
    if (!is_right)
        assay_json_refuse(reader, object, "criteria", "an object of names of criteria");
}

static void read_judgement(struct assay_json_reader *reader, const json_t *object,
                           struct assay_result *result, struct assay_json_texts *texts)
{
    result->status = assay_json_status(reader, object);
    result->verdict = assay_json_verdict(reader, object);
    result->has_passed = assay_json_flag(reader, object, "passed");
    result->is_decisive = assay_json_flag(reader, object, "decisive");
    result->is_unverified_profile = assay_json_flag(reader, object, "unverified_profile");
    if (assay_json_has(object, "remark"))
        result->remark =
            assay_json_keep(texts, assay_json_string(reader, object, "remark"));
    assay_json_text(reader, object, "numerics", result->numerics,
                    sizeof result->numerics);
    assay_json_exact_text(reader, object, "reference", result->reference,
                          sizeof result->reference);
    assay_json_text(reader, object, "explanation", result->explanation,
                    sizeof result->explanation);
    assay_json_text(reader, object, "message", result->message.text,
                    sizeof result->message.text);
    assay_json_text(reader, object, "warning", result->warning, sizeof result->warning);
    assay_json_text(reader, object, "note", result->note, sizeof result->note);
    assay_json_text(reader, object, "output", result->printed, sizeof result->printed);
    if (assay_json_has(object, "output_bytes"))
        result->printed_bytes =
            assay_json_count(reader, object, "output_bytes", ASSAY_JSON_MAX_COUNT);
}

static void read_figures(struct assay_json_reader *reader, const json_t *object,
                         struct assay_result *result)
{
    result->checks = read_checks(reader, object);
    read_criteria(reader, object, &result->criteria);
    if (assay_json_has(object, "candidate_runs"))
        result->candidate_runs =
            (int)assay_json_count(reader, object, "candidate_runs", INT_MAX);
    result->model_max_error_over_bound = -1;
    if (assay_json_has(object, "model_max_error_over_bound") ||
        assay_json_has(object, "model_max_error_over_bound_bits"))
        result->model_max_error_over_bound =
            assay_json_real(reader, object, "model_max_error_over_bound");
    if (assay_json_has(object, "model_inexact"))
        result->model_inexact =
            assay_json_count(reader, object, "model_inexact", ASSAY_JSON_MAX_COUNT);
    if (assay_json_has(object, "input_hash"))
        result->input_hash = assay_json_bits(reader, object, "input_hash", 16);
    result->seconds = assay_json_real(reader, object, "seconds");
    if (!(result->seconds >= 0 && result->seconds < MAX_SECONDS))
        assay_json_refuse(reader, object, "seconds", "a number from 0 to %g",
                          MAX_SECONDS);
}

static void read_outputs(struct assay_json_reader *reader, const json_t *object,
                         struct assay_result *result, struct assay_json_texts *texts)
{
    const json_t *const array =
        assay_json_objects(reader, object, "outputs", ASSAY_MAX_TENSORS);
    const size_t count = json_array_size(array);
    if (count == 0) return;
    result->output = calloc(count, sizeof *result->output);
    if (!result->output) {
        reader->status = assay_fail(reader->message, ASSAY_OUT_OF_MEMORY,
                                    "no memory for the outputs of a result");
        return;
    }
    result->output_count = (int)count;
    for (size_t i = 0; i < count; i++)
        assay_json_read_output(reader, json_array_get(array, i), (int)i, texts,
                               &result->output[i]);
}

static void read_case(struct assay_json_reader *reader, const json_t *object,
                      struct assay_result *result, struct assay_json_texts *texts)
{
    assay_json_at(reader, "the case");
    if (strcmp(assay_json_string(reader, object, "type"), "case") != 0)
        assay_json_refuse(reader, object, "type", "'case'");
    assay_json_exact_text(reader, object, "case", result->case_line,
                          sizeof result->case_line);
    assay_json_exact_text(reader, object, "source", result->source,
                          sizeof result->source);
    result->operation = read_operation(reader, object);
    read_judgement(reader, object, result, texts);
    read_figures(reader, object, result);
    read_outputs(reader, object, result, texts);
    read_findings(reader, object, result, texts);
}

enum assay_status assay_json_result_read(const char *line, struct assay_result *result,
                                         struct assay_message *message)
{
    struct assay_json_reader reader = { .message = message };
    /* A string takes more bytes in the line than in memory. */
    struct assay_json_texts texts = { malloc(strlen(line) + 1), 0 };
    json_error_t error;
    json_t *const object = json_loads(line, JSON_REJECT_DUPLICATES, &error);

    *result = (struct assay_result){ .texts = texts.text };
    if (!texts.text)
        reader.status = assay_fail(message, ASSAY_OUT_OF_MEMORY,
                                   "no memory for the texts of a result");
    else if (!object)
        reader.status =
            assay_fail(message, ASSAY_REFUSED, "a result is no JSON: %s", error.text);
    else if (!json_is_object(object))
        reader.status = assay_fail(message, ASSAY_REFUSED,
                                   "a result is no JSON object, {\"type\":\"case\",...}");
    else
        read_case(&reader, object, result, &texts);
    json_decref(object);
    if (reader.status != ASSAY_RAN) {
        assay_result_close(result);
        *result = (struct assay_result){ 0 };
    }
    return reader.status;
}
