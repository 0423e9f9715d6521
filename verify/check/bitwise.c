/* SPDX-License-Identifier: MIT */
/* Check "bitwise": every bit of every defined element equals the reference, NaN and the
 * sign of zero included. */
#include "verify/check/difference.h"

#include <string.h>

extern const struct assay_check assay_check_bitwise;

static void note_difference(const struct assay_trial *trial, int output, int64_t element,
                            struct assay_output_result *result)
{
    const uint32_t reference =
        assay_tensor_bits(&trial->reference->item[output], element);
    const struct assay_difference difference =
        assay_difference_at(trial, output, element, reference);
    if (assay_definedness_at(trial->map[output], element) == ASSAY_UNTOUCHED)
        result->touched++;
    if (result->difference_count < ASSAY_MAX_DIFFERENCES)
        result->difference[result->difference_count++] = difference;
    if (result->differ++ == 0 || difference.ulps > result->max_ulps) {
        result->worst = difference;
        result->max_ulps = difference.ulps;
    }
}

/* What recordings hold in elements that nobody may touch is no poison of ours. */
static bool is_compared(const struct assay_trial *trial, int output, int64_t element)
{
    const struct assay_backend *const reference = trial->plan->reference;
    return assay_element_is_judged(trial, output, element) &&
           !(reference && reference->is_recording &&
             assay_definedness_at(trial->map[output], element) == ASSAY_UNTOUCHED);
}

/* Rows of equal bytes are passed over whole. */
static void compare(const struct assay_trial *trial, int output,
                    struct assay_output_result *result)
{
    const struct assay_tensor *const candidate = &trial->candidate->item[output];
    const struct assay_tensor *const reference = &trial->reference->item[output];
    const int64_t columns = candidate->rank ? candidate->shape[candidate->rank - 1] : 1;
    const size_t bytes = assay_format_bytes(candidate->format);
    for (int64_t first = 0; first < result->elements; first += columns) {
        const size_t offset = (size_t)assay_tensor_offset(candidate, first) * bytes;
        if (memcmp((const char *)candidate->data + offset,
                   (const char *)reference->data + offset, (size_t)columns * bytes) == 0)
            continue;
        for (int64_t element = first; element < first + columns; element++)
            if (assay_tensor_bits(candidate, element) !=
                    assay_tensor_bits(reference, element) &&
                is_compared(trial, output, element))
                note_difference(trial, output, element, result);
    }
}

static bool applies(const struct assay_trial *trial)
{
    return trial->reference != NULL;
}

static enum assay_status judge(struct assay_trial *trial, struct assay_result *result)
{
    int place = 0;
    for (int i = 0; i < trial->candidate->count; i++) {
        if (!trial->candidate->item[i].is_output) continue;
        struct assay_output_result *const output = &result->output[place++];
        output->has_bits = true;
        compare(trial, i, output);
    }
    return ASSAY_RAN;
}

const struct assay_check assay_check_bitwise = {
    .name = "bitwise",
    .proves = "all bits of all defined outputs are those the numerics specify, or those "
              "of the backend named as reference",
    .applies = applies,
    .judge = judge,
};
