/* SPDX-License-Identifier: MIT */
/* The values of a case, by name. */
#include "verify/case/case.h"

#include "verify/operation/operation.h"

#include <assert.h>
#include <string.h>

static int parameter_index(const struct assay_case *the_case, const char *name)
{
    const struct assay_parameter *const parameters = the_case->operation->parameters;
    int i = 0;
    while (parameters[i].name && strcmp(parameters[i].name, name) != 0)
        i++;
    assert(parameters[i].name);
    return i;
}

int64_t assay_case_value(const struct assay_case *the_case, const char *name)
{
    return the_case->value[parameter_index(the_case, name)];
}

void assay_case_set(struct assay_case *the_case, const char *name, int64_t value)
{
    the_case->value[parameter_index(the_case, name)] = value;
}

/* Both operands are doubles without rounding. */
double assay_case_fraction(const struct assay_case *the_case, const char *name)
{
    const int64_t value = assay_case_value(the_case, name);
    const int64_t limit = INT64_C(1) << 53;
    assert(value >= -limit && value <= limit);
    return (double)value / (double)ASSAY_FRACTION_UNIT;
}

enum { COUNT_BITS = 16 };

const int64_t *assay_case_list(const struct assay_case *the_case, const char *name,
                               int *count)
{
    const int64_t place = assay_case_value(the_case, name);
    *count = (int)(place & ((1 << COUNT_BITS) - 1));
    return &the_case->list_value[place >> COUNT_BITS];
}

bool assay_case_set_list(struct assay_case *the_case, const char *name,
                         const int64_t *values, int count)
{
    const int first = the_case->list_values;
    if (count > ASSAY_MAX_LIST_VALUES - first) return false;
    for (int i = 0; i < count; i++)
        the_case->list_value[first + i] = values[i];
    the_case->list_values += count;
    assay_case_set(the_case, name, (int64_t)first << COUNT_BITS | count);
    return true;
}

bool assay_operation_takes(const struct assay_operation *operation,
                           enum assay_data_kind kind)
{
    const uint32_t general = (UINT32_C(1) << ASSAY_GENERAL_DATA_KINDS) - 1;
    const uint32_t kinds = operation->data_kinds ? operation->data_kinds : general;
    return kind == ASSAY_DATA_RECORDED || kinds >> kind & 1;
}

void assay_case_init(struct assay_case *the_case, const struct assay_operation *operation)
{
    memset(the_case, 0, sizeof(*the_case));
    the_case->operation = operation;
    const struct assay_parameter *const parameters = operation->parameters;
    for (int i = 0; parameters[i].name; i++) {
        assert(i < ASSAY_MAX_PARAMETERS);
        if (!parameters[i].is_required) the_case->value[i] = parameters[i].default_value;
    }
}
