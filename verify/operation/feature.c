/* SPDX-License-Identifier: MIT */
/* Classes of features, from their text. */
#include "verify/operation/feature.h"

#include "verify/case/number.h"
#include "verify/case/setting.h"
#include "verify/operation/operation.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char all[] = "*", left_out[] = "-", digits[] = "0123456789";

static int count_pieces(const char *text, char separator)
{
    int count = 1;
    for (; *text; text++)
        count += *text == separator;
    return count;
}

static struct assay_class_text piece_of(const char *text, char separator, int index)
{
    struct assay_class_text piece;
    for (; index > 0; index--)
        text = strchr(text, separator) + 1;
    const char *const end = strchrnul(text, separator);
    const size_t length = (size_t)(end - text);
    assert(length > 0 && length < sizeof(piece.text));
    memcpy(piece.text, text, length);
    piece.text[length] = '\0';
    return piece;
}

static uint32_t pick(struct assay_stream *stream, uint32_t count)
{
    return stream && count > 1 ? assay_stream_below(stream, count) : 0;
}

static struct assay_class_text alternative(const char *values,
                                           struct assay_stream *stream)
{
    const uint32_t count = (uint32_t)count_pieces(values, '|');
    return piece_of(values, '|', (int)pick(stream, count));
}

static int parameter_of(const struct assay_operation *operation, const char *key)
{
    for (int i = 0; operation->parameters[i].name; i++)
        if (strcmp(operation->parameters[i].name, key) == 0) return i;
    return -1;
}

static bool is_key(const struct assay_feature *feature, const char *key)
{
    return strcmp(feature->key, key) == 0;
}

/* --- what there is ---------------------------------------------------------------- */

static bool is_offered(const struct assay_operation *operation, int kind)
{
    return kind != ASSAY_DATA_RECORDED && kind != ASSAY_DATA_ZERO &&
           assay_operation_takes(operation, (enum assay_data_kind)kind);
}

/* The name that class @index of "*" stands for; NULL if there are fewer. */
static const char *name_of(const struct assay_operation *operation,
                           const struct assay_feature *feature, int index)
{
    if (is_key(feature, "data")) {
        int kind = 0;
        while (kind < ASSAY_DATA_KIND_COUNT &&
               (!is_offered(operation, kind) || index-- > 0))
            kind++;
        return kind < ASSAY_DATA_KIND_COUNT ? assay_data_kinds[kind].name : NULL;
    }
    if (is_key(feature, "as")) {
        if (index == 0) return left_out;
        const struct assay_named_numerics *row = operation->numerics;
        for (; row->name && index > 1; index--)
            row++;
        return row->name;
    }
    const struct assay_choice *choice =
        operation->parameters[parameter_of(operation, feature->key)].choices;
    assert(choice);
    for (; choice->name && index > 0; index--)
        choice++;
    return choice->name;
}

int assay_feature_count(const struct assay_operation *operation)
{
    int count = 0;
    while (operation->features[count].key)
        count++;
    assert(count <= ASSAY_MAX_FEATURES);
    return count;
}

int assay_feature_classes(const struct assay_operation *operation, int feature)
{
    const struct assay_feature *const row = &operation->features[feature];
    int count = 0;
    if (strcmp(row->classes, all) != 0) return count_pieces(row->classes, ' ');
    while (name_of(operation, row, count))
        count++;
    return count;
}

uint64_t assay_feature_tuples(const struct assay_operation *operation)
{
    uint64_t tuples = 1;
    const int count = assay_feature_count(operation);
    for (int i = 0; i < count; i++) {
        const uint64_t classes = (uint64_t)assay_feature_classes(operation, i);
        assert(tuples <= UINT64_MAX / classes);
        tuples *= classes;
    }
    return tuples;
}

struct assay_class_text assay_feature_class(const struct assay_operation *operation,
                                            int feature, int feature_class)
{
    const struct assay_feature *const row = &operation->features[feature];
    if (strcmp(row->classes, all) != 0) return piece_of(row->classes, ' ', feature_class);
    return piece_of(name_of(operation, row, feature_class), ' ', 0);
}

/* --- values ----------------------------------------------------------------------- */

static int64_t number_of(const struct assay_setting *setting, const char *text)
{
    int64_t value = 0;
    struct assay_message message;
    const enum assay_status status = assay_setting_parse(setting, text, &value, &message);
    assert(status == ASSAY_RAN);
    (void)status;
    return value;
}

static int64_t term_of(const struct assay_case *the_case,
                       const struct assay_setting *setting, const char *text)
{
    if (setting->choices || strchr(digits, text[text[0] == '-']))
        return number_of(setting, text);
    const char *const sign = text + strcspn(text, "+-");
    char key[64];
    int64_t more = 0;
    snprintf(key, sizeof(key), "%.*s", (int)(sign - text), text);
    if (*sign) {
        const enum assay_number form = assay_number_signed(sign + (*sign == '+'), &more);
        assert(form == ASSAY_NUMBER_VALID);
        (void)form;
    }
    return assay_case_value(the_case, key) + more;
}

/* One of the numbers from TERM to TERM. */
static bool draw_from(const struct assay_case *the_case,
                      const struct assay_setting *setting, const char *first, char *last,
                      struct assay_stream *stream, int64_t *value)
{
    const struct assay_setting any = { .name = setting->name,
                                       .minimum = 1,
                                       .maximum = INT64_MAX,
                                       .is_fraction = setting->is_fraction };
    char *const slash = strchr(last, '/');
    if (slash) *slash = '\0';
    const int64_t step = slash ? number_of(&any, slash + 1) : 1;
    const int64_t low = term_of(the_case, setting, first);
    const int64_t high = term_of(the_case, setting, last);
    if (high < low) return false;
    const int64_t steps = (high - low) / step;
    assert(steps < UINT32_MAX);
    *value = low + step * pick(stream, (uint32_t)steps + 1);
    return true;
}

/* One of VALUES. */
static bool draw_value(const struct assay_case *the_case,
                       const struct assay_setting *setting, int64_t default_value,
                       const char *values, struct assay_stream *stream, int64_t *value)
{
    struct assay_class_text text = alternative(values, stream);
    char *const dots = setting->choices ? NULL : strstr(text.text, "..");
    *value = default_value;
    if (strcmp(text.text, left_out) == 0) return true;
    if (dots) *dots = '\0';
    if (!dots)
        *value = term_of(the_case, setting, text.text);
    else if (!draw_from(the_case, setting, text.text, dots + 2, stream, value))
        return false;
    return setting->choices || (*value >= setting->minimum && *value <= setting->maximum);
}

static bool set_list(struct assay_case *the_case, const struct assay_parameter *parameter,
                     char *values, struct assay_stream *stream)
{
    static const struct assay_setting lengths = { .name = "values of a list",
                                                  .minimum = 1,
                                                  .maximum = ASSAY_MAX_LIST_VALUES };
    const struct assay_setting setting = assay_setting_of(parameter);
    int64_t count = 1, list[ASSAY_MAX_LIST_VALUES] = { 0 };
    char *const star = strchr(values, '*');
    if (star) *star = '\0';
    if (strcmp(values, left_out) == 0)
        return assay_case_set_list(the_case, parameter->name, list, 0);
    if (star && !draw_value(the_case, &lengths, 1, star + 1, stream, &count))
        return false;
    for (int64_t i = 0; i < count; i++)
        if (!draw_value(the_case, &setting, 0, values, stream, &list[i])) return false;
    return assay_case_set_list(the_case, parameter->name, list, (int)count);
}

static bool set_parameter(struct assay_case *the_case, const char *key, char *text,
                          struct assay_stream *stream)
{
    const int place = parameter_of(the_case->operation, key);
    assert(place >= 0);
    const struct assay_parameter *const parameter =
        &the_case->operation->parameters[place];
    if (parameter->is_list) return set_list(the_case, parameter, text, stream);
    const struct assay_setting setting = assay_setting_of(parameter);
    return draw_value(the_case, &setting, parameter->default_value, text, stream,
                      &the_case->value[place]);
}

static void set_data(struct assay_case *the_case, const char *name)
{
    int kind = 0;
    while (kind < ASSAY_DATA_KIND_COUNT && strcmp(assay_data_kinds[kind].name, name) != 0)
        kind++;
    assert(kind < ASSAY_DATA_KIND_COUNT);
    the_case->data = (enum assay_data_kind)kind;
}

static bool set_key(struct assay_case *the_case, const char *key, char *text,
                    struct assay_stream *stream)
{
    const bool is_data = strcmp(key, "data") == 0, is_unsafe = strcmp(key, "unsafe") == 0;
    if (!is_data && !is_unsafe && strcmp(key, "as") != 0)
        return set_parameter(the_case, key, text, stream);
    const struct assay_class_text name = alternative(text, stream);
    if (is_data)
        set_data(the_case, name.text);
    else if (is_unsafe)
        the_case->is_unsafe = strcmp(name.text, "1") == 0;
    else
        snprintf(the_case->numerics, sizeof(the_case->numerics), "%s",
                 strcmp(name.text, left_out) == 0 ? "" : name.text);
    return true;
}

bool assay_feature_set(struct assay_case *the_case, int feature, int feature_class,
                       struct assay_stream *stream)
{
    const char *const keys = the_case->operation->features[feature].key;
    const struct assay_class_text text =
        assay_feature_class(the_case->operation, feature, feature_class);
    const int count = count_pieces(keys, ',');
    assert(count_pieces(text.text, ',') == count);
    for (int i = 0; i < count; i++) {
        const struct assay_class_text key = piece_of(keys, ',', i);
        struct assay_class_text values = piece_of(text.text, ',', i);
        if (!set_key(the_case, key.text, values.text, stream)) return false;
    }
    return true;
}

bool assay_feature_follows(const struct assay_operation *operation, int feature)
{
    const int place = parameter_of(operation, operation->features[feature].key);
    if (place < 0 || operation->parameters[place].choices) return false;
    const struct assay_class_text first = assay_feature_class(operation, feature, 0);
    return strpbrk(first.text, "abcdefghijklmnopqrstuvwxyz");
}
