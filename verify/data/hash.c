/* SPDX-License-Identifier: MIT */
/* The fingerprint of a case's inputs. */
#include "verify/data/buffers.h"

#include <endian.h>
#include <string.h>

/* The state on the stack needs its definition, which only this gives. */
#define XXH_INLINE_ALL
#include <xxhash.h>

static void add_number(XXH3_state_t *state, int64_t number)
{
    const uint64_t bytes = htole64((uint64_t)number);
    XXH3_64bits_update(state, &bytes, sizeof bytes);
}

static void add_text(XXH3_state_t *state, const char *text)
{
    XXH3_64bits_update(state, text, strlen(text) + 1);
}

static void add_elements(XXH3_state_t *state, const struct assay_tensor *tensor)
{
    const size_t size = assay_format_bytes(tensor->format);
    const int64_t elements = assay_tensor_elements(tensor);
    const int last = tensor->rank - 1;
    const bool has_runs = tensor->rank > 0 && tensor->stride[last] == 1;
    const int64_t run = has_runs ? tensor->shape[last] : 1;
    const unsigned char *const from = tensor->data;
    for (int64_t i = 0; i < elements; i += run)
        XXH3_64bits_update(state, from + (size_t)assay_tensor_offset(tensor, i) * size,
                           (size_t)run * size);
}

uint64_t assay_inputs_hash(const struct assay_tensors *tensors)
{
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_64bits_reset(&state);
    for (int i = 0; i < tensors->count; i++) {
        const struct assay_tensor *const tensor = &tensors->item[i];
        if (tensor->is_output) continue;
        add_text(&state, tensor->name);
        add_text(&state, assay_format_name(tensor->format));
        add_number(&state, tensor->rank);
        for (int axis = 0; axis < tensor->rank; axis++)
            add_number(&state, tensor->shape[axis]);
        add_elements(&state, tensor);
    }
    return XXH3_64bits_digest(&state);
}

uint64_t assay_tensor_hash(const struct assay_tensor *tensor)
{
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_64bits_reset(&state);
    add_elements(&state, tensor);
    return XXH3_64bits_digest(&state);
}

uint64_t assay_text_hash(const char *text)
{
    return XXH3_64bits(text, strlen(text));
}
