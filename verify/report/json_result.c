/* SPDX-License-Identifier: MIT */
/* The case object of the json report; json_read.c reads it back. */
#include "verify/report/json_result.h"

#include "verify/check/trial.h"
#include "verify/report/json_put.h"
#include "verify/report/report.h"

static void put_bits(struct assay_json_output *json, json_t *object, const char *key,
                     enum assay_format format, uint32_t bits)
{
    assay_json_put_text(json, object, key, assay_report_bits(format, bits).text);
}

static void put_value(struct assay_json_output *json, json_t *object, const char *key,
                      enum assay_format format, uint32_t bits)
{
    const double value = assay_report_value(format, bits);
    if (format == ASSAY_I32 || format == ASSAY_U8)
        assay_json_put_count(json, object, key, (int64_t)value);
    else
        assay_json_put_value(json, object, key, value);
}

static void put_index(struct assay_json_output *json, json_t *object,
                      const struct assay_tensor *tensor, int64_t element)
{
    int64_t index[ASSAY_MAX_RANK];
    json_t *const array = json_array();

    assay_report_index(tensor, element, index);
    for (int i = 0; i < tensor->rank; i++)
        assay_json_append(json, array, json_integer(index[i]));
    assay_json_put(json, object, "index", array);
}

static void put_tensor(struct assay_json_output *json, json_t *object,
                       const struct assay_tensor *tensor)
{
    json_t *const shape = json_array();
    for (int i = 0; i < tensor->rank; i++)
        assay_json_append(json, shape, json_integer(tensor->shape[i]));
    assay_json_put_text(json, object, "format", assay_format_name(tensor->format));
    assay_json_put(json, object, "shape", shape);
}

static void put_ulps(struct assay_json_output *json, json_t *object, const char *key,
                     uint64_t ulps)
{
    if (ulps != UINT64_MAX) assay_json_put_count(json, object, key, (int64_t)ulps);
}

static void put_difference(struct assay_json_output *json, json_t *object,
                           const struct assay_tensor *tensor,
                           const struct assay_difference *difference)
{
    const enum assay_format format = tensor->format;

    put_index(json, object, tensor, difference->index);
    put_bits(json, object, "candidate", format, difference->candidate);
    put_bits(json, object, "reference", format, difference->reference);
    put_value(json, object, "candidate_value", format, difference->candidate);
    put_value(json, object, "reference_value", format, difference->reference);
    put_ulps(json, object, "ulp", difference->ulps);
    assay_json_put_text(json, object, "place", difference->place.text);
}

static json_t *difference_object(struct assay_json_output *json,
                                 const struct assay_tensor *tensor,
                                 const struct assay_difference *difference)
{
    json_t *const object = json_object();
    put_difference(json, object, tensor, difference);
    return object;
}

static void put_bitwise(struct assay_json_output *json, json_t *object,
                        const struct assay_output_result *output)
{
    assay_json_put_count(json, object, "differ", output->differ);
    if (output->touched > 0)
        assay_json_put_count(json, object, "touched", output->touched);
    put_ulps(json, object, "max_ulp", output->max_ulps);
    if (output->differ == 0) return;

    json_t *const differences = json_array();
    for (int i = 0; i < output->difference_count; i++)
        assay_json_append(
            json, differences,
            difference_object(json, &output->tensor, &output->difference[i]));
    assay_json_put(json, object, "worst",
                   difference_object(json, &output->tensor, &output->worst));
    assay_json_put(json, object, "differences", differences);
}

static void put_bounded(struct assay_json_output *json, json_t *object,
                        const struct assay_output_result *output)
{
    assay_json_put_count(json, object, "outside", output->outside);
    assay_json_put_count(json, object, "unclaimed", output->unclaimed);
    if (output->bound_worst_index < 0) return;

    json_t *const worst = json_object();
    assay_json_put_real(json, object, "max_error_over_bound",
                        output->max_error_over_bound);
    put_index(json, worst, &output->tensor, output->bound_worst_index);
    put_bits(json, worst, "bits", output->tensor.format, output->bound_worst_bits);
    assay_json_put_real(json, worst, "value", output->bound_worst_value);
    assay_json_put_real(json, worst, "bound", output->bound_worst_bound);
    assay_json_put_text(json, worst, "place", output->bound_worst_place.text);
    assay_json_put(json, object, "bound_worst", worst);
}

static json_t *criterion_object(struct assay_json_output *json,
                                const struct assay_criterion_result *row)
{
    const struct assay_criterion *const criterion = row->criterion;
    json_t *const object = json_object();
    char rule[256];
    struct assay_text text = assay_text_open(rule, sizeof rule);

    assay_criterion_describe(criterion, &text);
    assay_json_put_text(json, object, "name", criterion->name);
    assay_json_put_text(json, object, "source", criterion->source);
    assay_json_put_text(json, object, "rule", rule);
    assay_json_put_flag(json, object, "would_pass", row->passes);
    assay_json_put_count(json, object, "elements", row->elements);
    if (criterion->rule) assay_json_put_count(json, object, "beyond", row->beyond);
    assay_json_put_count(json, object, "specials", row->specials);
    if (criterion->calc_diff_limit > 0 || criterion->cosine_limit > 0)
        assay_json_put_real(json, object, "difference", row->difference);
    return object;
}

static void put_opinions(struct assay_json_output *json, json_t *object,
                         const struct assay_result *result)
{
    if (result->criteria.count == 0) return;
    json_t *const opinions = json_object();
    for (int i = 0; i < result->criteria.count; i++) {
        const char *const name = result->criteria.name[i];
        assay_json_put_text(json, opinions, name,
                            assay_opinion_name(assay_result_opinion(result, name)));
    }
    assay_json_put(json, object, "criteria", opinions);
}

static json_t *output_object(struct assay_json_output *json,
                             const struct assay_output_result *output)
{
    json_t *const object = json_object(), *const criteria = json_array();

    assay_json_put_text(json, object, "name", output->name);
    put_tensor(json, object, &output->tensor);
    assay_json_put_count(json, object, "elements", output->elements);
    assay_json_put_count(json, object, "defined", output->defined);
    assay_json_put_hash(json, object, "candidate_hash", output->candidate_hash);
    if (output->is_constant) assay_json_put_flag(json, object, "constant", true);
    if (output->has_bits) put_bitwise(json, object, output);
    if (output->has_bound) put_bounded(json, object, output);
    if (output->has_exact) assay_json_put_count(json, object, "inexact", output->inexact);
    if (output->inexact > 0)
        assay_json_put(json, object, "inexact_worst",
                       difference_object(json, &output->tensor, &output->inexact_worst));
    for (int i = 0; i < output->criterion_count; i++)
        assay_json_append(json, criteria, criterion_object(json, &output->criterion[i]));
    if (output->criterion_count)
        assay_json_put(json, object, "criteria", criteria);
    else
        json_decref(criteria);
    return object;
}

static void put_judgement(struct assay_json_output *json, json_t *object,
                          const struct assay_result *result)
{
    assay_json_put_text(json, object, "status", assay_status_name(result->status));
    assay_json_put_text(json, object, "verdict", assay_verdicts[result->verdict].name);
    assay_json_put_flag(json, object, "passed", result->has_passed);
    assay_json_put_flag(json, object, "decisive", result->is_decisive);
    if (result->is_unverified_profile)
        assay_json_put_flag(json, object, "unverified_profile", true);
    assay_json_put_text(json, object, "remark", result->remark);
    assay_json_put_text(json, object, "numerics", result->numerics);
    assay_json_put_exact_text(json, object, "reference", result->reference);
    assay_json_put_text(json, object, "explanation", result->explanation);
    assay_json_put_text(json, object, "message", result->message.text);
    assay_json_put_text(json, object, "warning", result->warning);
    assay_json_put_text(json, object, "note", result->note);
    assay_json_put_lines(json, object, "output", result->printed);
    if (result->printed_bytes > 0)
        assay_json_put_count(json, object, "output_bytes", result->printed_bytes);
}

static json_t *finding_object(struct assay_json_output *json,
                              const struct assay_finding *finding)
{
    json_t *const object = json_object();
    assay_json_put_text(json, object, "check", finding->check);
    assay_json_put_flag(json, object, "failure", finding->is_failure);
    assay_json_put_text(json, object, "message", finding->sentence);
    if (!finding->output) return object;
    assay_json_put_text(json, object, "output", finding->output);
    put_tensor(json, object, &finding->tensor);
    assay_json_put_count(json, object, "elements", finding->elements);
    put_difference(json, object, &finding->tensor, &finding->worst);
    return object;
}

static void put_checks(struct assay_json_output *json, json_t *object,
                       const struct assay_result *result)
{
    json_t *const checks = json_array(), *const findings = json_array();
    for (int i = 0; assay_checks[i]; i++)
        if (result->checks >> i & 1)
            assay_json_append(json, checks, json_string(assay_checks[i]->name));
    for (int i = 0; i < result->finding_count; i++)
        assay_json_append(json, findings, finding_object(json, &result->finding[i]));

    if (result->checks) assay_json_put(json, object, "checks", json_incref(checks));
    if (result->candidate_runs > 0)
        assay_json_put_count(json, object, "candidate_runs", result->candidate_runs);
    if (result->finding_count > 0)
        assay_json_put(json, object, "findings", json_incref(findings));
    json_decref(checks);
    json_decref(findings);
}

static json_t *case_object(struct assay_json_output *json,
                           const struct assay_result *result)
{
    json_t *const object = json_object(), *const outputs = json_array();

    assay_json_put_text(json, object, "type", "case");
    assay_json_put_exact_text(json, object, "case", result->case_line);
    assay_json_put_exact_text(json, object, "source", result->source);
    if (result->operation)
        assay_json_put_text(json, object, "operation", result->operation->name);
    put_judgement(json, object, result);
    put_checks(json, object, result);
    put_opinions(json, object, result);
    for (int i = 0; i < result->output_count; i++)
        assay_json_append(json, outputs, output_object(json, &result->output[i]));
    assay_json_put(json, object, "outputs", outputs);
    if (!(result->model_max_error_over_bound < 0))
        assay_json_put_real(json, object, "model_max_error_over_bound",
                            result->model_max_error_over_bound);
    if (result->model_inexact > 0)
        assay_json_put_count(json, object, "model_inexact", result->model_inexact);
    if (result->status == ASSAY_RAN || result->input_hash != 0)
        assay_json_put_hash(json, object, "input_hash", result->input_hash);
    assay_json_put_real(json, object, "seconds", result->seconds);
    return object;
}

enum assay_status assay_json_result_write(FILE *file, const struct assay_result *result)
{
    struct assay_json_output json = { .file = file };
    json_t *const object = case_object(&json, result);
    return assay_json_write_line(&json, object);
}
