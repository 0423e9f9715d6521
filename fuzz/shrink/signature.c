/* SPDX-License-Identifier: MIT */
#include "fuzz/shrink/signature.h"

#include "verify/case/text.h"
#include "verify/check/trial.h"
#include "verify/report/report.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

bool assay_result_is_failure(const struct assay_result *result)
{
    switch (result->status) {
    case ASSAY_RAN: return !result->has_passed && result->is_decisive;
    case ASSAY_UNSUPPORTED:
    case ASSAY_REFUSED: return false;
    default: return true;
    }
}

/* --- how a run that did not come to its end ended ----------------------------------- */

struct ending {
    char text[160];
};

/* A message of somebody's code may hold addresses, counts and times. */
static void copy_without_numbers(const char *message, struct ending *ending)
{
    struct assay_text text = assay_text_open(ending->text, sizeof(ending->text));
    bool is_in_word = false;
    for (; *message; message++) {
        const bool is_number = !is_in_word && isdigit((unsigned char)*message);
        is_in_word = isalnum((unsigned char)*message);
        if (is_number)
            while (isalnum((unsigned char)message[1]))
                message++;
        assay_text_add(&text, "%c", is_number ? '#' : *message);
    }
    assay_text_mark_cut(&text);
}

static struct ending ending_of(const struct assay_result *result)
{
    struct ending ending = { "" };
    const char *const message = result->message.text;
    const char *const signal = strstr(message, "(SIG");
    struct assay_text text = assay_text_open(ending.text, sizeof(ending.text));
    if (result->status == ASSAY_HUNG) return ending;
    if (signal)
        assay_text_add(&text, "%.*s", (int)strcspn(signal + 1, ")"), signal + 1);
    else if (strstr(message, "wrote outside its tensors"))
        assay_text_add(&text, "wrote outside its tensors");
    else
        copy_without_numbers(message, &ending);
    return ending;
}

/* --- what is wrong with the outputs ------------------------------------------------- */

static uint32_t bit_of(const char *check)
{
    for (int i = 0; assay_checks[i]; i++)
        if (strcmp(assay_checks[i]->name, check) == 0) return UINT32_C(1) << i;
    return 0;
}

uint32_t assay_result_failed_checks(const struct assay_result *result)
{
    uint32_t failed = 0;
    for (int i = 0; i < result->output_count; i++) {
        const struct assay_output_result *const output = &result->output[i];
        if (output->differ > 0) failed |= bit_of("bitwise");
        if (output->outside > 0) failed |= bit_of("bound");
        if (output->inexact > 0) failed |= bit_of("exact");
    }
    for (int i = 0; i < result->finding_count; i++)
        if (result->finding[i].is_failure) failed |= bit_of(result->finding[i].check);
    return failed;
}

static bool is_at_fault(const struct assay_result *result, const char *name)
{
    for (int i = 0; i < result->output_count; i++) {
        const struct assay_output_result *const output = &result->output[i];
        if (strcmp(output->name, name) == 0 &&
            (output->differ > 0 || output->outside > 0 || output->inexact > 0))
            return true;
    }
    for (int i = 0; i < result->finding_count; i++) {
        const struct assay_finding *const finding = &result->finding[i];
        if (finding->is_failure && finding->output && strcmp(finding->output, name) == 0)
            return true;
    }
    return false;
}

static bool output_has_nan(const struct assay_output_result *output)
{
    const enum assay_format format = output->tensor.format;
    if (output->differ > 0 && output->max_ulps == UINT64_MAX) return true;
    if (output->inexact > 0 && output->inexact_worst.ulps == UINT64_MAX) return true;
    return output->outside > 0 &&
           (isnan(output->bound_worst_value) ||
            isnan(assay_report_value(format, output->bound_worst_bits)));
}

static bool has_nan(const struct assay_result *result)
{
    bool found = false;
    for (int i = 0; i < result->output_count; i++)
        found |= output_has_nan(&result->output[i]);
    for (int i = 0; i < result->finding_count; i++)
        found |= result->finding[i].is_failure && result->finding[i].output &&
                 result->finding[i].worst.ulps == UINT64_MAX;
    return found;
}

/* --- places ------------------------------------------------------------------------- */

static int64_t coordinate(const struct assay_tensor *tensor, int64_t element, int axis)
{
    int64_t index[ASSAY_MAX_RANK];
    assay_report_index(tensor, element, index);
    return index[axis];
}

/* Whether every coordinate of the dimension has one of the differences kept. */
static bool covers(const struct assay_output_result *output, int axis)
{
    bool is_seen[ASSAY_MAX_DIFFERENCES] = { false };
    const int64_t extent = output->tensor.shape[axis];
    int64_t seen = 0;
    if (extent > ASSAY_MAX_DIFFERENCES) return false;
    for (int i = 0; i < output->difference_count; i++) {
        const int64_t at = coordinate(&output->tensor, output->difference[i].index, axis);
        seen += !is_seen[at];
        is_seen[at] = true;
    }
    return seen == extent;
}

static bool all_are_at(const struct assay_output_result *output, int axis, int64_t at)
{
    for (int i = 0; i < output->difference_count; i++)
        if (coordinate(&output->tensor, output->difference[i].index, axis) != at)
            return false;
    return output->difference_count > 0;
}

/* So many wrong elements leave no coordinate out, whichever they are. */
static bool must_cover(const struct assay_output_result *output, int axis, int64_t wrong)
{
    const int64_t extent = output->tensor.shape[axis];
    return wrong == output->defined ||
           (extent > 0 && wrong > output->elements - output->elements / extent);
}

static const char *pattern(const struct assay_output_result *output, int axis)
{
    const int64_t extent = output->tensor.shape[axis];
    const int64_t wrong = output->differ > 0    ? output->differ
                          : output->outside > 0 ? output->outside
                                                : output->inexact;
    if (must_cover(output, axis, wrong) || covers(output, axis)) return "all";
    if (output->difference_count < output->differ) return "some";
    if (all_are_at(output, axis, 0)) return "first";
    return all_are_at(output, axis, extent - 1) ? "last" : "some";
}

static void add_places(const struct assay_output_result *output, struct assay_text *text)
{
    const bool is_known =
        output->differ > 0 || output->outside > 0 || output->inexact > 0;
    const int rank = output->tensor.rank;
    if (!is_known || rank == 0) return;
    for (int axis = 0; axis < rank; axis++)
        assay_text_add(text, "%s%s", axis ? "," : "[", pattern(output, axis));
    assay_text_add(text, "]");
}

/* --- the line ----------------------------------------------------------------------- */

static void add_checks(uint32_t checks, struct assay_text *text)
{
    const char *separator = " by ";
    for (int i = 0; assay_checks[i]; i++) {
        if (!(checks >> i & 1)) continue;
        assay_text_add(text, "%s%s", separator, assay_checks[i]->name);
        separator = ", ";
    }
}

static void add_outputs(const struct assay_result *result, struct assay_text *text)
{
    const char *separator = ": ";
    for (int i = 0; i < result->output_count; i++) {
        const struct assay_output_result *const output = &result->output[i];
        if (!is_at_fault(result, output->name)) continue;
        assay_text_add(text, "%s%s", separator, output->name);
        add_places(output, text);
        separator = " ";
    }
}

struct assay_signature assay_signature_of(const struct assay_result *result)
{
    struct assay_signature signature;
    struct assay_text text = assay_text_open(signature.text, sizeof(signature.text));
    assay_text_add(&text, "%s ", result->operation ? result->operation->name : "?");
    if (result->status == ASSAY_RAN) {
        assay_text_add(&text, "%s", assay_verdicts[result->verdict].name);
        add_checks(assay_result_failed_checks(result), &text);
        add_outputs(result, &text);
        if (has_nan(result)) assay_text_add(&text, " NaN");
        if (*result->explanation)
            assay_text_add(&text, "; explained by %s", result->explanation);
    } else {
        const struct ending ending = ending_of(result);
        assay_text_add(&text, "%s%s%s", assay_status_name(result->status),
                       *ending.text ? ": " : "", ending.text);
    }
    assay_text_mark_cut(&text);
    return signature;
}

static bool faults_are_among(const struct assay_result *smaller,
                             const struct assay_result *original)
{
    for (int i = 0; i < smaller->output_count; i++)
        if (is_at_fault(smaller, smaller->output[i].name) &&
            !is_at_fault(original, smaller->output[i].name))
            return false;
    return true;
}

bool assay_signature_is_like(const struct assay_result *smaller,
                             const struct assay_result *original)
{
    if (!assay_result_is_failure(smaller) || smaller->operation != original->operation ||
        smaller->status != original->status)
        return false;
    if (original->status != ASSAY_RAN)
        return strcmp(ending_of(smaller).text, ending_of(original).text) == 0;
    const uint32_t failed = assay_result_failed_checks(smaller);
    return smaller->verdict == original->verdict && failed &&
           !(failed & ~assay_result_failed_checks(original)) &&
           has_nan(smaller) == has_nan(original) && faults_are_among(smaller, original);
}
