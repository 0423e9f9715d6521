/* SPDX-License-Identifier: MIT */
/* key=value, where the value is a choice's name, an integer or a fraction: the keys of
 * operations and the knobs of numerics alike. */
#ifndef ASSAY_VERIFY_CASE_SETTING_H
#define ASSAY_VERIFY_CASE_SETTING_H

#include "verify/case/case.h"
#include "verify/case/text.h"

struct assay_setting {
    const char *name;
    const struct assay_choice *choices; /* NULL: an integer in [minimum, maximum] */
    int64_t minimum, maximum;
    bool is_fraction; /* value, minimum, maximum in units of 1 / ASSAY_FRACTION_UNIT */
};

struct assay_setting assay_setting_of(const struct assay_parameter *parameter);

/* Refuses a value that is malformed, out of range or no choice, saying what is legal. */
enum assay_status assay_setting_parse(const struct assay_setting *setting,
                                      const char *text, int64_t *value,
                                      struct assay_message *message);

/* Appends the choice's name, the fraction without trailing zeros or the integer (also of
 * a value that no choice has). */
void assay_setting_format(const struct assay_setting *setting, int64_t value,
                          struct assay_text *text);

/* "takes one of a, b", "takes an integer from 1 to 8", "takes a decimal fraction from 0
 * to 1". */
struct assay_setting_rule {
    char text[256];
};
struct assay_setting_rule assay_setting_rule(const struct assay_setting *setting);

#endif
