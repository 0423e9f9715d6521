/* SPDX-License-Identifier: MIT */
#include "verify/report/json_read_output.h"

#include <string.h>

const char *assay_json_keep(struct assay_json_texts *texts, const char *text)
{
    char *const copy = texts->text + texts->used;
    texts->used += strlen(text) + 1;
    return strcpy(copy, text);
}

static void read_tensor(struct assay_json_reader *reader, const json_t *object,
                        const char *name, struct assay_tensor *tensor)
{
    const json_t *const shape = json_object_get(object, "shape");
    const enum assay_format format =
        assay_format_find(assay_json_string(reader, object, "format"));
    struct assay_tensor read = { .name = name, .format = format, .is_output = true };

    bool is_right = json_is_array(shape) && json_array_size(shape) <= ASSAY_MAX_RANK;
    for (size_t i = 0; is_right && i < json_array_size(shape); i++) {
        const json_t *const extent = json_array_get(shape, i);
        read.shape[read.rank++] = json_integer_value(extent);
        is_right = json_is_integer(extent) && json_integer_value(extent) >= 0;
    }
    const int64_t elements = is_right ? assay_tensor_elements(&read) : -1;
    if (elements < 0 || elements > ASSAY_JSON_MAX_COUNT)
        assay_json_refuse(reader, object, "shape",
                          "at most %d extents of a tensor of at most 2^53 elements",
                          (int)ASSAY_MAX_RANK);
    if (!format) assay_json_refuse(reader, object, "format", "the name of a format");
    if (reader->status == ASSAY_RAN) *tensor = read;
}

/* The row-major index; 0 if it is wrong. */
static int64_t read_index(struct assay_json_reader *reader, const json_t *object,
                          const struct assay_tensor *tensor)
{
    const json_t *const array = json_object_get(object, "index");
    int64_t element = 0;
    bool is_right =
        json_is_array(array) && json_array_size(array) == (size_t)tensor->rank;
    for (int i = 0; is_right && i < tensor->rank; i++) {
        const json_t *const item = json_array_get(array, (size_t)i);
        const int64_t index = json_integer_value(item);
        is_right = json_is_integer(item) && index >= 0 && index < tensor->shape[i];
        if (is_right) element = element * tensor->shape[i] + index;
    }
    if (is_right) return element;
    assay_json_refuse(reader, object, "index", "the place of an element in the shape");
    return 0;
}

static uint32_t read_bits(struct assay_json_reader *reader, const json_t *object,
                          const char *key, enum assay_format format)
{
    if (reader->status != ASSAY_RAN) return 0;
    const uint32_t bits = (uint32_t)assay_json_bits(reader, object, key,
                                                    2 * (int)assay_format_bytes(format));
    if (format != ASSAY_E2M1 || bits <= 0xf) return bits;
    assay_json_refuse(reader, object, key, "a code of four bits");
    return 0;
}

static uint64_t read_ulps(struct assay_json_reader *reader, const json_t *object,
                          const char *key)
{
    if (!assay_json_has(object, key)) return UINT64_MAX;
    return (uint64_t)assay_json_count(reader, object, key, ASSAY_JSON_MAX_COUNT);
}

static void read_difference(struct assay_json_reader *reader, const json_t *object,
                            const struct assay_tensor *tensor,
                            struct assay_difference *difference)
{
    difference->index = read_index(reader, object, tensor);
    difference->candidate = read_bits(reader, object, "candidate", tensor->format);
    difference->reference = read_bits(reader, object, "reference", tensor->format);
    difference->ulps = read_ulps(reader, object, "ulp");
    assay_json_text(reader, object, "place", difference->place.text,
                    sizeof difference->place.text);
}

/* Member @key, the one difference that stands for many. */
static void read_worst(struct assay_json_reader *reader, const json_t *object, int number,
                       const char *key, const struct assay_tensor *tensor,
                       struct assay_difference *worst)
{
    const json_t *const item = json_object_get(object, key);
    if (!json_is_object(item)) assay_json_refuse(reader, object, key, "an object");
    assay_json_at(reader, "'%s' of output %d", key, number);
    read_difference(reader, item, tensor, worst);
    assay_json_at(reader, "output %d", number);
}

static void read_bitwise(struct assay_json_reader *reader, const json_t *object,
                         int number, struct assay_output_result *output)
{
    output->has_bits = assay_json_has(object, "differ");
    if (!output->has_bits) return;
    output->differ = assay_json_count(reader, object, "differ", output->elements);
    if (assay_json_has(object, "touched"))
        output->touched = assay_json_count(reader, object, "touched", output->differ);
    output->max_ulps = read_ulps(reader, object, "max_ulp");
    if (output->differ == 0) return;

    read_worst(reader, object, number, "worst", &output->tensor, &output->worst);
    const json_t *const array =
        assay_json_objects(reader, object, "differences", ASSAY_MAX_DIFFERENCES);
    for (size_t i = 0; i < json_array_size(array); i++) {
        assay_json_at(reader, "difference %zu of output %d", i, number);
        read_difference(reader, json_array_get(array, i), &output->tensor,
                        &output->difference[output->difference_count++]);
    }
    assay_json_at(reader, "output %d", number);
}

static void read_bounded(struct assay_json_reader *reader, const json_t *object,
                         int number, struct assay_output_result *output)
{
    output->bound_worst_index = -1;
    output->has_bound = assay_json_has(object, "outside");
    if (!output->has_bound) return;
    output->outside = assay_json_count(reader, object, "outside", output->elements);
    output->unclaimed = assay_json_count(reader, object, "unclaimed", output->elements);
    const json_t *const worst = json_object_get(object, "bound_worst");
    if (!worst) return;

    if (!json_is_object(worst))
        assay_json_refuse(reader, object, "bound_worst", "an object");
    output->max_error_over_bound =
        assay_json_real(reader, object, "max_error_over_bound");
    assay_json_at(reader, "'bound_worst' of output %d", number);
    output->bound_worst_index = read_index(reader, worst, &output->tensor);
    output->bound_worst_bits = read_bits(reader, worst, "bits", output->tensor.format);
    output->bound_worst_value = assay_json_real(reader, worst, "value");
    output->bound_worst_bound = assay_json_real(reader, worst, "bound");
    assay_json_text(reader, worst, "place", output->bound_worst_place.text,
                    sizeof output->bound_worst_place.text);
    assay_json_at(reader, "output %d", number);
}

static void read_exact(struct assay_json_reader *reader, const json_t *object, int number,
                       struct assay_output_result *output)
{
    output->has_exact = assay_json_has(object, "inexact");
    if (!output->has_exact) return;
    output->inexact = assay_json_count(reader, object, "inexact", output->elements);
    if (output->inexact > 0)
        read_worst(reader, object, number, "inexact_worst", &output->tensor,
                   &output->inexact_worst);
}

/* A name has several rows; the wording of the rule tells them apart. */
static const struct assay_criterion *find_criterion(const char *name, const char *source,
                                                    const char *rule)
{
    for (const struct assay_criterion *row = assay_criteria_table; row->name; row++) {
        char described[256];
        struct assay_text text = assay_text_open(described, sizeof described);
        assay_criterion_describe(row, &text);
        if (strcmp(row->name, name) == 0 && strcmp(row->source, source) == 0 &&
            strcmp(described, rule) == 0)
            return row;
    }
    return NULL;
}

static void read_criterion(struct assay_json_reader *reader, const json_t *object,
                           struct assay_criterion_result *result)
{
    const struct assay_criterion *const criterion =
        find_criterion(assay_json_string(reader, object, "name"),
                       assay_json_string(reader, object, "source"),
                       assay_json_string(reader, object, "rule"));
    if (!criterion) {
        assay_json_refuse(reader, object, "name",
                          "the name of a criterion with that source and rule");
        return;
    }
    result->criterion = criterion;
    result->passes = assay_json_flag(reader, object, "would_pass");
    result->elements = assay_json_count(reader, object, "elements", ASSAY_JSON_MAX_COUNT);
    result->specials = assay_json_count(reader, object, "specials", ASSAY_JSON_MAX_COUNT);
    if (criterion->rule)
        result->beyond = assay_json_count(reader, object, "beyond", ASSAY_JSON_MAX_COUNT);
    if (criterion->calc_diff_limit > 0 || criterion->cosine_limit > 0)
        result->difference = assay_json_real(reader, object, "difference");
}

static void read_criteria(struct assay_json_reader *reader, const json_t *object,
                          int number, struct assay_output_result *output)
{
    if (!assay_json_has(object, "criteria")) return;
    const json_t *const array =
        assay_json_objects(reader, object, "criteria", ASSAY_MAX_CRITERIA);
    for (size_t i = 0; i < json_array_size(array); i++) {
        assay_json_at(reader, "criterion %zu of output %d", i, number);
        read_criterion(reader, json_array_get(array, i),
                       &output->criterion[output->criterion_count++]);
    }
}

void assay_json_read_output(struct assay_json_reader *reader, const json_t *object,
                            int number, struct assay_json_texts *texts,
                            struct assay_output_result *output)
{
    assay_json_at(reader, "output %d", number);
    output->name = assay_json_keep(texts, assay_json_string(reader, object, "name"));
    read_tensor(reader, object, output->name, &output->tensor);
    output->elements = assay_json_count(reader, object, "elements", ASSAY_JSON_MAX_COUNT);
    if (output->elements != assay_tensor_elements(&output->tensor))
        assay_json_refuse(reader, object, "elements", "the product of the shape");
    output->defined = assay_json_count(reader, object, "defined", output->elements);
    output->candidate_hash = assay_json_bits(reader, object, "candidate_hash", 16);
    output->is_constant = assay_json_flag(reader, object, "constant");
    read_bitwise(reader, object, number, output);
    read_bounded(reader, object, number, output);
    read_exact(reader, object, number, output);
    read_criteria(reader, object, number, output);
}

void assay_json_read_finding_element(struct assay_json_reader *reader,
                                     const json_t *object, struct assay_json_texts *texts,
                                     struct assay_finding *finding)
{
    if (!assay_json_has(object, "output")) return;
    finding->output = assay_json_keep(texts, assay_json_string(reader, object, "output"));
    read_tensor(reader, object, finding->output, &finding->tensor);
    finding->elements =
        assay_json_count(reader, object, "elements", ASSAY_JSON_MAX_COUNT);
    read_difference(reader, object, &finding->tensor, &finding->worst);
}
