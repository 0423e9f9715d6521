/* SPDX-License-Identifier: MIT */
/* Numerics to and from text, by the tables of an operation. */
#include "verify/operation/numerics.h"

#include "verify/case/names.h"
#include "verify/case/setting.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

enum { MAX_KNOBS = 64 };

struct reader {
    const struct assay_operation *operation;
    void *numerics;
    bool is_turned[MAX_KNOBS];
    struct assay_message *message;
};

static int knob_value(const struct assay_knob *knob, const void *numerics)
{
    int value;
    memcpy(&value, (const char *)numerics + knob->offset, sizeof(value));
    return value;
}

static struct assay_setting setting_of(const struct assay_knob *knob)
{
    return (struct assay_setting){ .name = knob->name,
                                   .choices = knob->choices,
                                   .minimum = knob->minimum,
                                   .maximum = knob->maximum };
}

static enum assay_status read_name(const struct reader *reader, const char *name)
{
    const struct assay_operation *const operation = reader->operation;
    const struct assay_named_numerics *row = operation->numerics;
    while (row->name && strcmp(row->name, name) != 0)
        row++;
    if (row->name) {
        memcpy(reader->numerics, row->numerics, operation->numerics_bytes);
        return ASSAY_RAN;
    }
    struct assay_names names = { 0 };
    assay_names_add_table(&names, operation->numerics, sizeof(*operation->numerics));
    return assay_fail(reader->message, ASSAY_REFUSED, "unknown numerics '%s' of %s%s",
                      assay_excerpt(name).text, operation->name,
                      assay_names_hint(&names, name).text);
}

static enum assay_status turn_knob(struct reader *reader, int index, const char *text)
{
    const struct assay_knob *const knob = &reader->operation->knobs[index];
    assert(index < MAX_KNOBS);
    if (reader->is_turned[index])
        return assay_fail(reader->message, ASSAY_REFUSED,
                          "knob '%s' of %s is turned a second time by %s=%s; once is "
                          "right",
                          knob->name, reader->operation->name, knob->name,
                          assay_excerpt(text).text);
    reader->is_turned[index] = true;

    const struct assay_setting setting = setting_of(knob);
    int64_t value;
    const enum assay_status status =
        assay_setting_parse(&setting, text, &value, reader->message);
    if (status != ASSAY_RAN) return status;
    assert(value >= INT_MIN && value <= INT_MAX);
    const int number = (int)value;
    memcpy((char *)reader->numerics + knob->offset, &number, sizeof(number));
    return ASSAY_RAN;
}

static enum assay_status read_knob(struct reader *reader, char *token)
{
    const struct assay_operation *const operation = reader->operation;
    char *const equals = strchr(token, '=');
    if (!equals)
        return assay_fail(reader->message, ASSAY_REFUSED,
                          "'%s' in numerics of %s is not of the form knob=value",
                          assay_excerpt(token).text, operation->name);
    *equals = '\0';
    for (int i = 0; operation->knobs[i].name; i++)
        if (strcmp(operation->knobs[i].name, token) == 0)
            return turn_knob(reader, i, equals + 1);

    struct assay_names names = { 0 };
    assay_names_add_table(&names, operation->knobs, sizeof(*operation->knobs));
    return assay_fail(reader->message, ASSAY_REFUSED, "unknown knob '%s' of %s%s",
                      assay_excerpt(token).text, operation->name,
                      assay_names_hint(&names, token).text);
}

enum assay_status assay_numerics_parse(const struct assay_operation *operation,
                                       const void *problem, const char *text,
                                       void *numerics, struct assay_message *message)
{
    char copy[ASSAY_MAX_NUMERICS_TEXT], *rest = copy;
    if (strlen(text) >= sizeof(copy))
        return assay_fail(
            message, ASSAY_REFUSED, "numerics '%s' of %zu characters; the limit is %d",
            assay_excerpt(text).text, strlen(text), ASSAY_MAX_NUMERICS_TEXT - 1);
    memcpy(copy, text, strlen(text) + 1);

    struct reader reader = { operation, numerics, { false }, message };
    memcpy(numerics, operation->default_numerics(problem)->numerics,
           operation->numerics_bytes);
    enum assay_status status = ASSAY_RAN;
    const size_t first = strcspn(text, ",=");
    if (text[0] && text[first] != '=') status = read_name(&reader, strsep(&rest, ","));
    for (char *token; status == ASSAY_RAN && text[0] && (token = strsep(&rest, ","));)
        status = read_knob(&reader, token);
    if (status != ASSAY_RAN) return status;
    return operation->check_numerics(problem, numerics, message);
}

static int differing_knobs(const struct assay_operation *operation, const void *a,
                           const void *b)
{
    int count = 0;
    for (const struct assay_knob *knob = operation->knobs; knob->name; knob++)
        count += knob_value(knob, a) != knob_value(knob, b);
    return count;
}

void assay_numerics_format(const struct assay_operation *operation, const void *numerics,
                           char *text, size_t size)
{
    const struct assay_named_numerics *nearest = NULL;
    int fewest = INT_MAX;
    for (const struct assay_named_numerics *row = operation->numerics; row->name; row++) {
        const int count = differing_knobs(operation, numerics, row->numerics);
        if (count >= fewest) continue;
        fewest = count;
        nearest = row;
    }
    assert(nearest);

    struct assay_text out = assay_text_open(text, size);
    assay_text_add(&out, "%s", nearest->name);
    for (const struct assay_knob *knob = operation->knobs; knob->name; knob++) {
        const int value = knob_value(knob, numerics);
        if (value == knob_value(knob, nearest->numerics)) continue;
        const struct assay_setting setting = setting_of(knob);
        assay_text_add(&out, ",%s=", knob->name);
        assay_setting_format(&setting, value, &out);
    }
    assert(assay_text_fits(&out));
}
