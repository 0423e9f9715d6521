/* SPDX-License-Identifier: MIT */
/* Random cases: class by class, each as soon as it is legal. */
#include "verify/operation/draw.h"

#include "verify/operation/numerics.h"

#include <assert.h>
#include <string.h>

enum { TRIES = 6, GRANTED = 3 };

/* What making a byte of an input and judging an element of an output take, in the time of
 * multiply-adds: much memory with little to multiply is no small case. */
static const double multiply_adds_an_input_byte = 2, multiply_adds_an_output = 12;

struct drawing {
    struct assay_case *the_case;
    struct assay_stream *stream;
    int features;
    bool follows[ASSAY_MAX_FEATURES]; /* its first values build on other keys */
    double most;                      /* cost */
};

/* What a feature may change. */
struct kept {
    int64_t value[ASSAY_MAX_PARAMETERS];
    int list_values;
    enum assay_data_kind data;
    bool is_unsafe;
    char numerics[ASSAY_MAX_NUMERICS_TEXT];
};

static void keep(const struct assay_case *the_case, struct kept *kept)
{
    memcpy(kept->value, the_case->value, sizeof(kept->value));
    memcpy(kept->numerics, the_case->numerics, sizeof(kept->numerics));
    kept->list_values = the_case->list_values;
    kept->data = the_case->data;
    kept->is_unsafe = the_case->is_unsafe;
}

static void restore(const struct kept *kept, struct assay_case *the_case)
{
    memcpy(the_case->value, kept->value, sizeof(kept->value));
    memcpy(the_case->numerics, kept->numerics, sizeof(kept->numerics));
    the_case->list_values = kept->list_values;
    the_case->data = kept->data;
    the_case->is_unsafe = kept->is_unsafe;
}

static double cost_of(const struct assay_operation *operation, const void *problem)
{
    struct assay_tensors tensors;
    double cost = operation->cost(problem).multiply_adds;
    operation->shape(problem, &tensors);
    for (int i = 0; i < tensors.count; i++) {
        const struct assay_tensor *const tensor = &tensors.item[i];
        cost += tensor->is_output
                    ? multiply_adds_an_output * (double)assay_tensor_elements(tensor)
                    : multiply_adds_an_input_byte * (double)assay_tensor_bytes(tensor);
    }
    return cost;
}

/* Whether the case is legal, and what it costs. */
static bool is_legal(const struct assay_case *the_case, double *cost)
{
    const struct assay_operation *const operation = the_case->operation;
    union assay_problem_storage problem;
    union assay_numerics_storage numerics;
    struct assay_message message;
    if (!assay_operation_takes(operation, the_case->data) ||
        operation->bind(the_case, &problem, &message) != ASSAY_RAN ||
        assay_numerics_parse(operation, &problem, the_case->numerics, &numerics,
                             &message) != ASSAY_RAN)
        return false;
    *cost = cost_of(operation, &problem);
    return true;
}

/* Gives the feature a value, and those after it that build on others their first anew. */
static bool set(const struct drawing *drawing, int feature, int feature_class)
{
    struct assay_case *const the_case = drawing->the_case;
    if (!assay_feature_set(the_case, feature, feature_class, drawing->stream))
        return false;
    for (int i = feature + 1; i < drawing->features; i++)
        if (drawing->follows[i] && !assay_feature_set(the_case, i, 0, NULL)) return false;
    return true;
}

static bool takes_class(const struct drawing *drawing, int feature, int feature_class,
                        const struct kept *kept)
{
    for (int i = 0; i < TRIES; i++) {
        double cost;
        if (set(drawing, feature, feature_class) && is_legal(drawing->the_case, &cost) &&
            cost <= drawing->most)
            return true;
        restore(kept, drawing->the_case);
    }
    return false;
}

/* The class that feature really gets when @wanted is asked for. */
static int draw_feature(const struct drawing *drawing, int feature, int wanted)
{
    const int classes = assay_feature_classes(drawing->the_case->operation, feature);
    struct kept kept;
    keep(drawing->the_case, &kept);
    for (int i = 0; i < classes; i++) {
        const int feature_class = (wanted + i) % classes;
        if (takes_class(drawing, feature, feature_class, &kept)) return feature_class;
    }
    return 0;
}

/* Sets the smallest case; returns what it costs. */
static double set_least(struct drawing *drawing)
{
    struct assay_case *const the_case = drawing->the_case;
    drawing->features = assay_feature_count(the_case->operation);
    for (int i = 0; i < drawing->features; i++) {
        drawing->follows[i] = assay_feature_follows(the_case->operation, i);
        assay_feature_set(the_case, i, 0, NULL);
    }
    double cost = 0;
    const bool is_fit = is_legal(the_case, &cost);
    assert(is_fit);
    (void)is_fit;
    return cost;
}

/* Lists one behind the other in the order of the keys, as in a parsed case. */
static void tidy_lists(struct assay_case *the_case)
{
    const struct assay_parameter *const parameters = the_case->operation->parameters;
    const struct assay_case from = *the_case;
    memset(the_case->list_value, 0, sizeof(the_case->list_value));
    the_case->list_values = 0;
    for (int i = 0; parameters[i].name; i++) {
        if (!parameters[i].is_list) continue;
        int count;
        const int64_t *const list = assay_case_list(&from, parameters[i].name, &count);
        the_case->value[i] = 0;
        if (count) assay_case_set_list(the_case, parameters[i].name, list, count);
    }
}

static bool is_size(const struct assay_operation *operation, const char *key)
{
    const struct assay_parameter *const parameters = operation->parameters;
    for (int i = 0; parameters[i].name; i++)
        if (strcmp(parameters[i].name, key) == 0)
            return parameters[i].is_required && !parameters[i].choices &&
                   !parameters[i].is_list && !parameters[i].is_fraction;
    return false;
}

static int leading_sizes(const struct drawing *drawing)
{
    const struct assay_operation *const operation = drawing->the_case->operation;
    int sizes = 0;
    while (sizes < drawing->features && !drawing->follows[sizes] &&
           is_size(operation, operation->features[sizes].key))
        sizes++;
    return sizes;
}

void assay_draw_tuple(const struct assay_operation *operation, uint64_t tuple,
                      struct assay_stream *stream, double multiply_adds,
                      struct assay_case *the_case, int *classes)
{
    assay_case_init(the_case, operation);
    the_case->seed = assay_stream_next(stream);
    struct drawing drawing = { .the_case = the_case, .stream = stream };
    const double granted = GRANTED * set_least(&drawing);
    drawing.most = multiply_adds > granted ? multiply_adds : granted;
    int wanted[ASSAY_MAX_FEATURES];
    for (int i = 0; i < drawing.features; i++) {
        const uint64_t count = (uint64_t)assay_feature_classes(operation, i);
        wanted[i] = (int)(tuple % count);
        tuple /= count;
    }
    assert(tuple == 0);
    const int sizes = leading_sizes(&drawing);
    const int first = sizes ? (int)assay_stream_below(stream, (uint32_t)sizes) : 0;
    for (int i = 0; i < drawing.features; i++) {
        const int feature = i < sizes ? (first + i) % sizes : i;
        const int taken = draw_feature(&drawing, feature, wanted[feature]);
        if (classes) classes[feature] = taken;
    }
    tidy_lists(the_case);
}

void assay_draw(const struct assay_operation *operation, struct assay_stream *stream,
                double multiply_adds, struct assay_case *the_case)
{
    uint64_t tuple = 0, weight = 1;
    const int count = assay_feature_count(operation);
    for (int i = 0; i < count; i++) {
        const uint32_t classes = (uint32_t)assay_feature_classes(operation, i);
        tuple += weight * assay_stream_below(stream, classes);
        weight *= classes;
    }
    assay_draw_tuple(operation, tuple, stream, multiply_adds, the_case, NULL);
}
