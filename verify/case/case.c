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
