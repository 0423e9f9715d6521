/* SPDX-License-Identifier: MIT */
#include "verify/case/list_value.h"

#include "verify/case/setting.h"

#include <stdio.h>
#include <string.h>

enum assay_status assay_list_value_parse(const struct assay_parameter *parameter,
                                         const char *text, struct assay_case *the_case,
                                         struct assay_message *message)
{
    const struct assay_setting setting = assay_setting_of(parameter);
    int64_t values[ASSAY_MAX_LIST_VALUES];
    char copy[ASSAY_MAX_CASE_LINE], *rest = copy;
    int count = 0;
    snprintf(copy, sizeof(copy), "%s", text);
    while (rest) {
        const char *const word = strsep(&rest, ",");
        if (count == ASSAY_MAX_LIST_VALUES) break;
        const enum assay_status status =
            assay_setting_parse(&setting, word, &values[count], message);
        if (status != ASSAY_RAN) return status;
        count++;
    }
    if (!rest && assay_case_set_list(the_case, parameter->name, values, count))
        return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED,
                      "%s=%s is too long a list; the lists of a case hold at most %d "
                      "values together",
                      parameter->name, assay_excerpt(text).text, ASSAY_MAX_LIST_VALUES);
}

void assay_list_value_format(const struct assay_case *the_case,
                             const struct assay_parameter *parameter,
                             struct assay_text *text)
{
    const struct assay_setting setting = assay_setting_of(parameter);
    int count;
    const int64_t *const values = assay_case_list(the_case, parameter->name, &count);
    for (int i = 0; i < count; i++) {
        assay_text_add(text, "%s", i ? "," : "");
        assay_setting_format(&setting, values[i], text);
    }
}
