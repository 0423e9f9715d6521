/* SPDX-License-Identifier: MIT */
#include "verify/report/brief.h"

#include "verify/report/json_get.h"
#include "verify/report/json_put.h"

#include <string.h>

struct assay_brief assay_brief_of(const struct assay_result *result)
{
    struct assay_brief brief = { .status = result->status,
                                 .verdict = result->verdict,
                                 .has_passed = result->has_passed,
                                 .is_decisive = result->is_decisive };
    memcpy(brief.note, result->note, sizeof brief.note);
    if (result->status != ASSAY_RAN) return brief;
    for (int i = 0; i < result->output_count; i++) {
        const struct assay_output_result *const output = &result->output[i];
        if (output->has_bits) {
            brief.compared += output->defined;
            brief.equal += output->defined - (output->differ - output->touched);
        }
        if (output->has_bound &&
            output->max_error_over_bound > brief.max_error_over_bound)
            brief.max_error_over_bound = output->max_error_over_bound;
    }
    return brief;
}

bool assay_brief_is_enough(const struct assay_result *result)
{
    const bool is_indecisive = result->status == ASSAY_RAN && !result->is_decisive &&
                               result->verdict < ASSAY_OUTSIDE;
    return result->has_passed || is_indecisive || result->status == ASSAY_UNSUPPORTED;
}

char *assay_brief_line(const struct assay_brief *brief)
{
    struct assay_json_output json = { .file = NULL };
    json_t *const object = json_object();
    assay_json_put_text(&json, object, "type", "brief");
    if (brief->status != ASSAY_RAN)
        assay_json_put_text(&json, object, "status", assay_status_name(brief->status));
    assay_json_put_text(&json, object, "verdict", assay_verdicts[brief->verdict].name);
    if (!brief->has_passed) assay_json_put_flag(&json, object, "passed", false);
    if (!brief->is_decisive) assay_json_put_flag(&json, object, "decisive", false);
    if (brief->compared > 0)
        assay_json_put_count(&json, object, "compared", brief->compared);
    if (brief->equal > 0) assay_json_put_count(&json, object, "equal", brief->equal);
    if (brief->max_error_over_bound != 0)
        assay_json_put_real(&json, object, "error", brief->max_error_over_bound);
    assay_json_put_text(&json, object, "note", brief->note);
    char *const line = json.is_incomplete ? NULL : json_dumps(object, JSON_COMPACT);
    json_decref(object);
    return line;
}

/* A flag that is there where it is not true. */
static bool flag(struct assay_json_reader *reader, const json_t *object, const char *key)
{
    return !assay_json_has(object, key) || assay_json_flag(reader, object, key);
}

static int64_t count(struct assay_json_reader *reader, const json_t *object,
                     const char *key)
{
    return assay_json_has(object, key)
               ? assay_json_count(reader, object, key, ASSAY_JSON_MAX_COUNT)
               : 0;
}

static void read_members(struct assay_json_reader *reader, const json_t *object,
                         struct assay_brief *brief)
{
    *brief = (struct assay_brief){
        .status = assay_json_has(object, "status") ? assay_json_status(reader, object)
                                                   : ASSAY_RAN,
        .verdict = assay_json_verdict(reader, object),
        .has_passed = flag(reader, object, "passed"),
        .is_decisive = flag(reader, object, "decisive"),
        .compared = count(reader, object, "compared"),
        .equal = count(reader, object, "equal"),
    };
    if (assay_json_has(object, "error") || assay_json_has(object, "error_bits"))
        brief->max_error_over_bound = assay_json_real(reader, object, "error");
    assay_json_text(reader, object, "note", brief->note, sizeof brief->note);
    if (brief->equal > brief->compared)
        assay_json_refuse(reader, object, "equal", "at most \"compared\"");
}

enum assay_status assay_brief_read(const char *line, struct assay_brief *brief,
                                   bool *is_brief, struct assay_message *message)
{
    struct assay_json_reader reader = { .message = message };
    json_error_t error;
    json_t *const object = json_loads(line, JSON_REJECT_DUPLICATES, &error);
    const char *const type = json_string_value(json_object_get(object, "type"));
    *is_brief = type && strcmp(type, "brief") == 0;
    assay_json_at(&reader, "the brief result");
    if (*is_brief) read_members(&reader, object, brief);
    json_decref(object);
    return object ? reader.status
                  : assay_fail(message, ASSAY_REFUSED, "a result is no JSON: %s",
                               error.text);
}
