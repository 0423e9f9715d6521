/* SPDX-License-Identifier: MIT */
#include "verify/data/overrides.h"

static enum assay_status check_index(const struct assay_explicit_bits *bits,
                                     const struct assay_tensor *tensor,
                                     struct assay_message *message)
{
    if (bits->rank != tensor->rank)
        return assay_fail(message, ASSAY_REFUSED,
                          "bits= gives %d indices for tensor %s; it has %d dimensions",
                          bits->rank, bits->tensor, tensor->rank);
    for (int i = 0; i < tensor->rank; i++)
        if (bits->index[i] < 0 || bits->index[i] >= tensor->shape[i])
            return assay_fail(message, ASSAY_REFUSED,
                              "bits= names index %lld in dimension %d of tensor %s; it "
                              "must be below %lld",
                              (long long)bits->index[i], i, bits->tensor,
                              (long long)tensor->shape[i]);
    return ASSAY_RAN;
}

static enum assay_status check_one(const struct assay_explicit_bits *bits,
                                   const struct assay_tensors *tensors,
                                   struct assay_message *message)
{
    const struct assay_tensor *const tensor = assay_tensors_find(tensors, bits->tensor);
    if (!tensor || tensor->is_output)
        return assay_fail(message, ASSAY_REFUSED,
                          "bits= names '%s', which is no input of this case",
                          bits->tensor);
    const size_t width = 8 * assay_format_bytes(tensor->format);
    if (width < 32 && bits->bits >> width)
        return assay_fail(message, ASSAY_REFUSED,
                          "bits= gives 0x%x for tensor %s, whose elements have %zu bits",
                          bits->bits, bits->tensor, width);
    return check_index(bits, tensor, message);
}

enum assay_status assay_overrides_check(const struct assay_case *the_case,
                                        const struct assay_tensors *tensors,
                                        struct assay_message *message)
{
    enum assay_status status = ASSAY_RAN;
    for (int i = 0; i < the_case->explicit_bits_count && status == ASSAY_RAN; i++)
        status = check_one(&the_case->explicit_bits[i], tensors, message);
    return status;
}

enum assay_status assay_overrides_apply(const struct assay_case *the_case,
                                        const struct assay_tensors *tensors,
                                        struct assay_message *message)
{
    const enum assay_status status = assay_overrides_check(the_case, tensors, message);
    for (int i = 0; i < the_case->explicit_bits_count && status == ASSAY_RAN; i++) {
        const struct assay_explicit_bits *const bits = &the_case->explicit_bits[i];
        const struct assay_tensor *const tensor =
            assay_tensors_find(tensors, bits->tensor);
        int64_t element = 0;
        for (int axis = 0; axis < tensor->rank; axis++)
            element = element * tensor->shape[axis] + bits->index[axis];
        assay_tensor_set_bits(tensor, element, bits->bits);
    }
    return status;
}
