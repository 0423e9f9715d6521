/* SPDX-License-Identifier: MIT */
/* Line of text to case. */
#include "verify/case/case_format.h"
#include "verify/case/list_value.h"
#include "verify/case/names.h"
#include "verify/case/setting.h"
#include "verify/case/universal_key.h"
#include "verify/operation/operation.h"

#include <string.h>

static const char separators[] = " \t";

struct parser {
    const char *line;
    struct assay_case *the_case;
    struct assay_message *message;
    bool has_parameter[ASSAY_MAX_PARAMETERS];
    bool has_universal[ASSAY_UNIVERSAL_KEYS];
};

static enum assay_status check_characters(const char *line, struct assay_message *message)
{
    const size_t length = strlen(line);
    if (length >= ASSAY_MAX_CASE_LINE)
        return assay_fail(message, ASSAY_REFUSED,
                          "case line of %zu characters, '%s'; the limit is %d", length,
                          assay_excerpt(line).text, ASSAY_MAX_CASE_LINE - 1);
    for (size_t i = 0; i < length; i++) {
        const unsigned char byte = (unsigned char)line[i];
        if ((byte < 0x20 && byte != '\t') || byte > 0x7E)
            return assay_fail(message, ASSAY_REFUSED,
                              "byte 0x%02x in column %zu of a case line; only printable "
                              "ASCII, spaces and tabs are legal",
                              byte, i + 1);
    }
    return ASSAY_RAN;
}

static enum assay_status find_operation(const struct parser *parser, const char *name)
{
    if (!name)
        return assay_fail(parser->message, ASSAY_REFUSED,
                          "empty case line; a case is 'OPERATION key=value ...'");
    const struct assay_operation *const operation = assay_operation_find(name);
    if (operation) {
        assay_case_init(parser->the_case, operation);
        return ASSAY_RAN;
    }
    struct assay_names names = { 0 };
    for (const struct assay_operation *const *row = assay_operations; *row; row++)
        assay_names_add(&names, (*row)->name);
    return assay_fail(parser->message, ASSAY_REFUSED, "unknown operation '%s'%s",
                      assay_excerpt(name).text, assay_names_hint(&names, name).text);
}

static int parameter_index(const struct assay_operation *operation, const char *name)
{
    for (int i = 0; operation->parameters[i].name; i++)
        if (strcmp(operation->parameters[i].name, name) == 0) return i;
    return -1;
}

static int universal_index(const char *name)
{
    for (int i = 0; i < ASSAY_UNIVERSAL_KEYS; i++)
        if (strcmp(assay_universal_keys[i].name, name) == 0) return i;
    return -1;
}

static enum assay_status refuse_unknown(const struct parser *parser, const char *key)
{
    struct assay_names names = { 0 };
    assay_names_add_table(&names, parser->the_case->operation->parameters,
                          sizeof(struct assay_parameter));
    assay_names_add_table(&names, assay_universal_keys,
                          sizeof(struct assay_universal_key));
    return assay_fail(parser->message, ASSAY_REFUSED, "unknown key '%s' in '%s'%s",
                      assay_excerpt(key).text, assay_excerpt(parser->line).text,
                      assay_names_hint(&names, key).text);
}

static enum assay_status parse_pair(struct parser *parser, char *token)
{
    char *const equals = strchr(token, '=');
    if (!equals || equals == token)
        return assay_fail(parser->message, ASSAY_REFUSED,
                          "'%s' in '%s' is not of the form key=value",
                          assay_excerpt(token).text, assay_excerpt(parser->line).text);
    *equals = '\0';
    const char *const value = equals + 1;
    const struct assay_operation *const operation = parser->the_case->operation;
    const int parameter = parameter_index(operation, token);
    const int universal = parameter < 0 ? universal_index(token) : -1;
    if (parameter < 0 && universal < 0) return refuse_unknown(parser, token);

    bool *const is_given = parameter < 0 ? &parser->has_universal[universal]
                                         : &parser->has_parameter[parameter];
    if (*is_given)
        return assay_fail(parser->message, ASSAY_REFUSED,
                          "key '%s' is given a second time in '%s'; once is right", token,
                          assay_excerpt(parser->line).text);
    *is_given = true;
    if (!*value)
        return assay_fail(parser->message, ASSAY_REFUSED,
                          "key '%s' has no value in '%s'; leave out the key or write "
                          "%s=VALUE",
                          token, assay_excerpt(parser->line).text, token);
    if (parameter < 0)
        return assay_universal_keys[universal].parse(value, parser->the_case,
                                                     parser->message);
    if (operation->parameters[parameter].is_list)
        return assay_list_value_parse(&operation->parameters[parameter], value,
                                      parser->the_case, parser->message);
    const struct assay_setting setting =
        assay_setting_of(&operation->parameters[parameter]);
    return assay_setting_parse(&setting, value, &parser->the_case->value[parameter],
                               parser->message);
}

static enum assay_status check_complete(const struct parser *parser)
{
    const struct assay_parameter *const parameters =
        parser->the_case->operation->parameters;
    for (int i = 0; parameters[i].name; i++) {
        if (!parameters[i].is_required || parser->has_parameter[i]) continue;
        const struct assay_setting setting = assay_setting_of(&parameters[i]);
        return assay_fail(parser->message, ASSAY_REFUSED,
                          "key '%s' is missing in '%s'; %s %s", parameters[i].name,
                          assay_excerpt(parser->line).text, parameters[i].name,
                          assay_setting_rule(&setting).text);
    }

    char line[ASSAY_MAX_CASE_LINE];
    struct assay_text text = assay_text_open(line, sizeof(line));
    assay_case_add_line(parser->the_case, &text);
    if (assay_text_fits(&text)) return ASSAY_RAN;
    return assay_fail(parser->message, ASSAY_REFUSED,
                      "case '%s' takes %zu characters in canonical form; the limit is %d",
                      assay_excerpt(line).text, text.length, ASSAY_MAX_CASE_LINE - 1);
}

enum assay_status assay_case_parse(const char *line, struct assay_case *the_case,
                                   struct assay_message *message)
{
    enum assay_status status = check_characters(line, message);
    if (status != ASSAY_RAN) return status;

    char copy[ASSAY_MAX_CASE_LINE], *rest;
    memcpy(copy, line, strlen(line) + 1);
    struct parser parser = { .line = line, .the_case = the_case, .message = message };
    status = find_operation(&parser, strtok_r(copy, separators, &rest));
    while (status == ASSAY_RAN) {
        char *const token = strtok_r(NULL, separators, &rest);
        if (!token) return check_complete(&parser);
        status = parse_pair(&parser, token);
    }
    return status;
}
