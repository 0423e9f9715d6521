/* SPDX-License-Identifier: MIT */
#include "ref/tensor.h"

#include <assert.h>
#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
} format_table[ASSAY_FORMAT_COUNT] = {
    [ASSAY_FORMAT_NONE] = { "none", 0 }, [ASSAY_E4M3] = { "e4m3", 1 },
    [ASSAY_E5M2] = { "e5m2", 1 },        [ASSAY_E2M1] = { "e2m1", 1 },
    [ASSAY_UE8M0] = { "ue8m0", 1 },      [ASSAY_BF16] = { "bf16", 2 },
    [ASSAY_F16] = { "f16", 2 },          [ASSAY_TF32] = { "tf32", 4 },
    [ASSAY_F32] = { "f32", 4 },          [ASSAY_U8] = { "u8", 1 },
    [ASSAY_I32] = { "i32", 4 },
};

const char *assay_format_name(enum assay_format format)
{
    assert(format < ASSAY_FORMAT_COUNT);
    return format_table[format].name;
}

enum assay_format assay_format_find(const char *name)
{
    for (int i = ASSAY_FORMAT_NONE + 1; i < ASSAY_FORMAT_COUNT; i++)
        if (strcmp(format_table[i].name, name) == 0) return (enum assay_format)i;
    return ASSAY_FORMAT_NONE;
}

size_t assay_format_bytes(enum assay_format format)
{
    assert(format < ASSAY_FORMAT_COUNT);
    return format_table[format].bytes;
}

void assay_tensor_set_dense(struct assay_tensor *tensor)
{
    int64_t stride = 1;
    for (int i = tensor->rank - 1; i >= 0; i--) {
        tensor->stride[i] = stride;
        stride *= tensor->shape[i];
    }
}

int64_t assay_tensor_elements(const struct assay_tensor *tensor)
{
    int64_t elements = 1;
    for (int i = 0; i < tensor->rank; i++)
        if (__builtin_mul_overflow(elements, tensor->shape[i], &elements)) return -1;
    return elements;
}

int64_t assay_tensor_bytes(const struct assay_tensor *tensor)
{
    int64_t bytes = (int64_t)assay_format_bytes(tensor->format);
    if (tensor->rank == 0) return bytes;
    if (assay_tensor_elements(tensor) == 0) return 0;
    if (__builtin_mul_overflow(bytes, tensor->shape[0], &bytes) ||
        __builtin_mul_overflow(bytes, tensor->stride[0], &bytes))
        return -1;
    return bytes;
}

/* Whether elements lie one behind the other. */
static bool is_packed(const struct assay_tensor *tensor)
{
    int64_t packed = 1;
    for (int i = tensor->rank - 1; i >= 0; i--) {
        if (tensor->stride[i] != packed) return false;
        packed *= tensor->shape[i];
    }
    return true;
}

int64_t assay_tensor_offset(const struct assay_tensor *tensor, int64_t element)
{
    int64_t offset = 0;
    if (is_packed(tensor)) return element;
    for (int i = tensor->rank - 1; i > 0; i--) {
        offset += element % tensor->shape[i] * tensor->stride[i];
        element /= tensor->shape[i];
    }
    return offset + element * tensor->stride[0];
}

static unsigned char *place_of(const struct assay_tensor *tensor, int64_t element,
                               size_t bytes)
{
    return (unsigned char *)tensor->data +
           (size_t)assay_tensor_offset(tensor, element) * bytes;
}

/* Copies of a constant size, as all of them are here, need no call. */
uint32_t assay_tensor_bits(const struct assay_tensor *tensor, int64_t element)
{
    const size_t bytes = assay_format_bytes(tensor->format);
    const unsigned char *const from = place_of(tensor, element, bytes);
    uint16_t low = 0;
    uint32_t bits = 0;
    switch (bytes) {
    case sizeof(*from): return *from;
    case sizeof(low): memcpy(&low, from, sizeof(low)); return low;
    case sizeof(bits): memcpy(&bits, from, sizeof(bits)); return bits;
    default: return 0;
    }
}

void assay_tensor_set_bits(const struct assay_tensor *tensor, int64_t element,
                           uint32_t bits)
{
    const size_t bytes = assay_format_bytes(tensor->format);
    unsigned char *const to = place_of(tensor, element, bytes);
    const uint16_t low = (uint16_t)bits;
    switch (bytes) {
    case sizeof(*to): *to = (unsigned char)bits; break;
    case sizeof(low): memcpy(to, &low, sizeof(low)); break;
    case sizeof(bits): memcpy(to, &bits, sizeof(bits)); break;
    default: break;
    }
}

struct assay_tensor assay_tensor_rows(const struct assay_tensor *tensor, int64_t first,
                                      int64_t count)
{
    struct assay_tensor rows = *tensor;
    const int64_t bytes = (int64_t)assay_format_bytes(tensor->format);
    rows.data = (char *)tensor->data + first * tensor->stride[0] * bytes;
    rows.shape[0] = count;
    return rows;
}

struct assay_tensor assay_tensor_slice(const struct assay_tensor *tensor, int64_t index)
{
    struct assay_tensor slice = assay_tensor_rows(tensor, index, 1);
    slice.rank--;
    for (int i = 0; i < slice.rank; i++) {
        slice.shape[i] = tensor->shape[i + 1];
        slice.stride[i] = tensor->stride[i + 1];
    }
    return slice;
}

struct assay_tensor assay_tensor_transposed(const struct assay_tensor *tensor)
{
    assert(tensor->rank == 2);
    struct assay_tensor transposed = *tensor;
    for (int i = 0; i < 2; i++) {
        transposed.shape[i] = tensor->shape[1 - i];
        transposed.stride[i] = tensor->stride[1 - i];
    }
    return transposed;
}

const struct assay_tensor *assay_tensors_find(const struct assay_tensors *tensors,
                                              const char *name)
{
    for (int i = 0; i < tensors->count; i++)
        if (strcmp(tensors->item[i].name, name) == 0) return &tensors->item[i];
    return NULL;
}
