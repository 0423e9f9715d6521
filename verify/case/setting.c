/* SPDX-License-Identifier: MIT */
/* Values of keys and knobs, to and from text. */
#include "verify/case/setting.h"

#include "verify/case/names.h"
#include "verify/case/number.h"

#include <inttypes.h>
#include <string.h>

struct assay_setting assay_setting_of(const struct assay_parameter *parameter)
{
    return (struct assay_setting){ parameter->name, parameter->choices,
                                   parameter->minimum, parameter->maximum };
}

struct assay_setting_rule assay_setting_rule(const struct assay_setting *setting)
{
    struct assay_setting_rule rule;
    struct assay_text text = assay_text_open(rule.text, sizeof(rule.text));
    if (setting->choices) {
        struct assay_names names = { 0 };
        assay_names_add_table(&names, setting->choices, sizeof(*setting->choices));
        assay_text_add(&text, "takes one of ");
        assay_names_list(&names, &text);
    } else {
        assay_text_add(&text, "takes an integer from %" PRId64 " to %" PRId64,
                       setting->minimum, setting->maximum);
    }
    assay_text_mark_cut(&text);
    return rule;
}

static enum assay_status parse_choice(const struct assay_setting *setting,
                                      const char *text, int64_t *value,
                                      struct assay_message *message)
{
    struct assay_names names = { 0 };
    for (const struct assay_choice *choice = setting->choices; choice->name; choice++) {
        if (strcmp(choice->name, text) == 0) {
            *value = choice->value;
            return ASSAY_RAN;
        }
        assay_names_add(&names, choice->name);
    }
    return assay_fail(message, ASSAY_REFUSED, "%s=%s is not a choice; %s %s%s",
                      setting->name, assay_excerpt(text).text, setting->name,
                      assay_setting_rule(setting).text,
                      assay_names_suggest(&names, text).text);
}

enum assay_status assay_setting_parse(const struct assay_setting *setting,
                                      const char *text, int64_t *value,
                                      struct assay_message *message)
{
    if (setting->choices) return parse_choice(setting, text, value, message);

    int64_t number = 0;
    const enum assay_number form = assay_number_signed(text, &number);
    if (form == ASSAY_NUMBER_VALID && number >= setting->minimum &&
        number <= setting->maximum) {
        *value = number;
        return ASSAY_RAN;
    }
    return assay_fail(message, ASSAY_REFUSED, "%s=%s is %s; %s %s", setting->name,
                      assay_excerpt(text).text,
                      form == ASSAY_NUMBER_MALFORMED ? "not a decimal integer"
                                                     : "out of range",
                      setting->name, assay_setting_rule(setting).text);
}

void assay_setting_format(const struct assay_setting *setting, int64_t value,
                          struct assay_text *text)
{
    const struct assay_choice *choice = setting->choices;
    while (choice && choice->name && choice->value != value)
        choice++;
    if (choice && choice->name)
        assay_text_add(text, "%s", choice->name);
    else
        assay_text_add(text, "%" PRId64, value);
}
