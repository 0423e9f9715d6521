/* SPDX-License-Identifier: MIT */
/* data, seed, as, unsafe and bits, to and from text. */
#include "verify/case/universal_key.h"

#include "verify/case/bits_key.h"
#include "verify/case/names.h"
#include "verify/case/number.h"
#include "verify/operation/operation.h"

#include <inttypes.h>
#include <string.h>

static enum assay_status refuse_kind(const char *kind, const struct assay_names *taken,
                                     const char *operation, struct assay_message *message)
{
    char list[256];
    struct assay_text text = assay_text_open(list, sizeof(list));
    assay_names_list(taken, &text);
    return assay_fail(message, ASSAY_REFUSED, "%s does not take data=%s; it takes %s",
                      operation, kind, list);
}

static enum assay_status parse_data(const char *value, struct assay_case *the_case,
                                    struct assay_message *message)
{
    struct assay_names names = { 0 };
    bool is_known = false;
    for (int kind = 0; kind < ASSAY_DATA_KIND_COUNT; kind++) {
        const char *const name = assay_data_kinds[kind].name;
        const bool is_meant = strcmp(name, value) == 0;
        is_known |= is_meant;
        if (!assay_operation_takes(the_case->operation, (enum assay_data_kind)kind))
            continue;
        assay_names_add(&names, name);
        if (!is_meant) continue;
        the_case->data = (enum assay_data_kind)kind;
        return ASSAY_RAN;
    }
    if (is_known) return refuse_kind(value, &names, the_case->operation->name, message);
    return assay_fail(message, ASSAY_REFUSED, "data=%s is not a kind of data%s",
                      assay_excerpt(value).text, assay_names_hint(&names, value).text);
}

static bool is_data_omitted(const struct assay_case *the_case)
{
    return the_case->data == ASSAY_DATA_NORMAL;
}

static void format_data(const struct assay_case *the_case, struct assay_text *text)
{
    assay_text_add(text, "%s", assay_data_kinds[the_case->data].name);
}

static enum assay_status parse_seed(const char *value, struct assay_case *the_case,
                                    struct assay_message *message)
{
    const bool is_hex = strncmp(value, "0x", 2) == 0;
    const enum assay_number form = is_hex
                                       ? assay_number_hex(value + 2, 16, &the_case->seed)
                                       : assay_number_unsigned(value, &the_case->seed);
    if (form == ASSAY_NUMBER_VALID) return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED,
                      "seed=%s is %s; seed takes a decimal integer from 0 to %" PRIu64
                      " or 0x and up to 16 hexadecimal digits",
                      assay_excerpt(value).text,
                      form == ASSAY_NUMBER_MALFORMED ? "not a number" : "out of range",
                      UINT64_MAX);
}

static bool is_seed_omitted(const struct assay_case *the_case)
{
    (void)the_case;
    return false;
}

static void format_seed(const struct assay_case *the_case, struct assay_text *text)
{
    assay_text_add(text, "%" PRIu64, the_case->seed);
}

static enum assay_status parse_as(const char *value, struct assay_case *the_case,
                                  struct assay_message *message)
{
    const size_t legal = strspn(value, "abcdefghijklmnopqrstuvwxyz"
                                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789-_.,=");
    if (value[legal])
        return assay_fail(message, ASSAY_REFUSED,
                          "as=%s has an illegal character '%c'; as takes "
                          "NAME[,knob=value...] of letters, digits, '-', '_' and '.'",
                          assay_excerpt(value).text, value[legal]);
    if (legal >= ASSAY_MAX_NUMERICS_TEXT)
        return assay_fail(message, ASSAY_REFUSED,
                          "as=%s has %zu characters; the limit is %d",
                          assay_excerpt(value).text, legal, ASSAY_MAX_NUMERICS_TEXT - 1);
    memcpy(the_case->numerics, value, legal + 1);
    return ASSAY_RAN;
}

static bool is_as_omitted(const struct assay_case *the_case)
{
    return the_case->numerics[0] == '\0';
}

static void format_as(const struct assay_case *the_case, struct assay_text *text)
{
    assay_text_add(text, "%s", the_case->numerics);
}

static enum assay_status parse_unsafe(const char *value, struct assay_case *the_case,
                                      struct assay_message *message)
{
    the_case->is_unsafe = strcmp(value, "1") == 0;
    if (the_case->is_unsafe || strcmp(value, "0") == 0) return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED,
                      "unsafe=%s is not a choice; unsafe takes 0 or 1",
                      assay_excerpt(value).text);
}

static bool is_unsafe_omitted(const struct assay_case *the_case)
{
    return !the_case->is_unsafe;
}

static void format_unsafe(const struct assay_case *the_case, struct assay_text *text)
{
    assay_text_add(text, "%d", the_case->is_unsafe);
}

static bool is_bits_omitted(const struct assay_case *the_case)
{
    return the_case->explicit_bits_count == 0;
}

const struct assay_universal_key assay_universal_keys[ASSAY_UNIVERSAL_KEYS + 1] = {
    { "data", "kind of input values", parse_data, is_data_omitted, format_data },
    { "seed", "seed of the input values", parse_seed, is_seed_omitted, format_seed },
    { "as", "numerics of the model: NAME[,knob=value...]", parse_as, is_as_omitted,
      format_as },
    { "unsafe", "1 lets a normally refused input through", parse_unsafe,
      is_unsafe_omitted, format_unsafe },
    { "bits", "explicit elements: TENSOR[.INDEX...]:HEX[,...]", assay_bits_key_parse,
      is_bits_omitted, assay_bits_key_format },
    { 0 },
};
