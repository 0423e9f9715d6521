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
                                   parameter->minimum, parameter->maximum,
                                   parameter->is_fraction };
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
        assay_text_add(&text, "takes %s from ",
                       setting->is_fraction ? "a decimal fraction" : "an integer");
        assay_setting_format(setting, setting->minimum, &text);
        assay_text_add(&text, " to ");
        assay_setting_format(setting, setting->maximum, &text);
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

static const char *fault_of(const struct assay_setting *setting, enum assay_number form)
{
    if (form == ASSAY_NUMBER_TOO_PRECISE) return "given with more than 12 decimals";
    if (form != ASSAY_NUMBER_MALFORMED) return "out of range";
    return setting->is_fraction ? "not a decimal fraction" : "not a decimal integer";
}

/* "; the nearest is 0.2" where only the decimals are too many. */
static struct assay_hint nearest(const struct assay_setting *setting,
                                 enum assay_number form, int64_t number)
{
    struct assay_hint hint;
    struct assay_text text = assay_text_open(hint.text, sizeof(hint.text));
    if (form != ASSAY_NUMBER_TOO_PRECISE) return hint;
    if (number < setting->minimum) number = setting->minimum;
    if (number > setting->maximum) number = setting->maximum;
    assay_text_add(&text, "; the nearest is ");
    assay_setting_format(setting, number, &text);
    return hint;
}

enum assay_status assay_setting_parse(const struct assay_setting *setting,
                                      const char *text, int64_t *value,
                                      struct assay_message *message)
{
    if (setting->choices) return parse_choice(setting, text, value, message);

    int64_t number = 0;
    const enum assay_number form = setting->is_fraction
                                       ? assay_number_fraction(text, &number)
                                       : assay_number_signed(text, &number);
    if (form == ASSAY_NUMBER_VALID && number >= setting->minimum &&
        number <= setting->maximum) {
        *value = number;
        return ASSAY_RAN;
    }
    return assay_fail(message, ASSAY_REFUSED, "%s=%s is %s; %s %s%s", setting->name,
                      assay_excerpt(text).text, fault_of(setting, form), setting->name,
                      assay_setting_rule(setting).text,
                      nearest(setting, form, number).text);
}

static void format_fraction(int64_t value, struct assay_text *text)
{
    const uint64_t unit = (uint64_t)ASSAY_FRACTION_UNIT;
    const uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    uint64_t decimals = magnitude % unit;
    int digits = 12;

    assay_text_add(text, "%s%" PRIu64, value < 0 ? "-" : "", magnitude / unit);
    if (decimals == 0) return;
    for (; decimals % 10 == 0; decimals /= 10)
        digits--;
    assay_text_add(text, ".%0*" PRIu64, digits, decimals);
}

void assay_setting_format(const struct assay_setting *setting, int64_t value,
                          struct assay_text *text)
{
    const struct assay_choice *choice = setting->choices;
    while (choice && choice->name && choice->value != value)
        choice++;
    if (choice && choice->name)
        assay_text_add(text, "%s", choice->name);
    else if (setting->is_fraction)
        format_fraction(value, text);
    else
        assay_text_add(text, "%" PRId64, value);
}
