/* SPDX-License-Identifier: MIT */
/* Case to canonical line. */
#include "verify/case/case_format.h"

#include "verify/case/list_value.h"
#include "verify/case/setting.h"
#include "verify/case/universal_key.h"
#include "verify/operation/operation.h"

#include <assert.h>

void assay_case_add_line(const struct assay_case *the_case, struct assay_text *text)
{
    assay_text_add(text, "%s", the_case->operation->name);

    const struct assay_parameter *const parameters = the_case->operation->parameters;
    for (int i = 0; parameters[i].name; i++) {
        const struct assay_parameter *const parameter = &parameters[i];
        const int64_t value = the_case->value[i];
        if (!parameter->is_required && value == parameter->default_value) continue;
        const struct assay_setting setting = assay_setting_of(parameter);
        assay_text_add(text, " %s=", parameter->name);
        if (parameter->is_list)
            assay_list_value_format(the_case, parameter, text);
        else
            assay_setting_format(&setting, value, text);
    }
    for (const struct assay_universal_key *key = assay_universal_keys; key->name; key++) {
        if (key->is_omitted(the_case)) continue;
        assay_text_add(text, " %s=", key->name);
        key->format(the_case, text);
    }
}

void assay_case_format(const struct assay_case *the_case, char *line, size_t size)
{
    assert(size == ASSAY_MAX_CASE_LINE);
    struct assay_text text = assay_text_open(line, size);
    assay_case_add_line(the_case, &text);
    assert(assay_text_fits(&text));
}
