/* SPDX-License-Identifier: MIT */
/* Guarded memory for the tensors of a case. */
#include "verify/data/buffers.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOTAL_LIMIT ((int64_t)1 << 40)

/* Bytes of the block up to and including the guard behind a tensor that follows @before
 * bytes; its own place is *@start. */
static bool place(int64_t before, const struct assay_tensor *tensor, int64_t *start,
                  int64_t *end)
{
    const int64_t bytes = assay_tensor_bytes(tensor);
    const int64_t alignment = ASSAY_BUFFER_ALIGNMENT;
    *start = (before + alignment - 1) / alignment * alignment;
    if (bytes < 0 || bytes > TOTAL_LIMIT - *start) return false;
    *end = *start + bytes + ASSAY_BUFFER_GUARD_BYTES;
    return true;
}

/* Bytes of the whole block; -1 above the limit, *@above naming the tensor. */
static int64_t block_bytes(const struct assay_tensors *tensors, const char **above)
{
    int64_t end = ASSAY_BUFFER_GUARD_BYTES;
    for (int i = 0; i < tensors->count; i++) {
        const struct assay_tensor *const tensor = &tensors->item[i];
        if (tensor->data) continue;
        int64_t start;
        *above = tensor->name;
        if (!place(end, tensor, &start, &end) || end > TOTAL_LIMIT) return -1;
    }
    return end;
}

enum assay_status assay_buffers_measure(const struct assay_tensors *tensors,
                                        size_t *bytes, struct assay_message *message)
{
    const char *above = NULL;
    const int64_t end = block_bytes(tensors, &above);
    const int64_t physical =
        (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
    if (end < 0)
        return assay_fail(message, ASSAY_REFUSED,
                          "tensor %s brings the case above the limit of %" PRId64
                          " bytes of memory; make its shape smaller",
                          above, TOTAL_LIMIT);
    if (end > physical)
        return assay_fail(message, ASSAY_OUT_OF_MEMORY,
                          "the tensors of the case take %" PRId64 " bytes, but this "
                          "machine has %" PRId64 ": make its shape smaller",
                          end, physical);
    *bytes = (size_t)end;
    return ASSAY_RAN;
}

/* Fills what lies between the tensors with guards, and the tensors themselves. */
static void hand_out(unsigned char *block, struct assay_tensors *tensors)
{
    int64_t end = ASSAY_BUFFER_GUARD_BYTES;
    for (int i = 0; i < tensors->count; i++) {
        struct assay_tensor *const tensor = &tensors->item[i];
        if (tensor->data) continue;
        int64_t start;
        const int64_t guarded = end - ASSAY_BUFFER_GUARD_BYTES;
        place(end, tensor, &start, &end);
        memset(block + guarded, ASSAY_BUFFER_GUARD, (size_t)(start - guarded));
        tensor->data = block + start;
        memset(tensor->data,
               tensor->is_output ? ASSAY_BUFFER_POISON : ASSAY_BUFFER_PADDING,
               (size_t)assay_tensor_bytes(tensor));
    }
    memset(block + end - ASSAY_BUFFER_GUARD_BYTES, ASSAY_BUFFER_GUARD,
           ASSAY_BUFFER_GUARD_BYTES);
}

enum assay_status assay_buffers_open(struct assay_buffers *buffers,
                                     struct assay_tensors *tensors,
                                     struct assay_message *message)
{
    *buffers = (struct assay_buffers){ 0 };
    size_t bytes = 0;
    const enum assay_status status = assay_buffers_measure(tensors, &bytes, message);
    if (status != ASSAY_RAN) return status;
    void *block;
    if (posix_memalign(&block, ASSAY_BUFFER_ALIGNMENT, bytes) != 0)
        return assay_fail(message, ASSAY_OUT_OF_MEMORY,
                          "no memory for the tensors of the case, which take %zu bytes",
                          bytes);
    hand_out(block, tensors);
    *buffers = (struct assay_buffers){ block, bytes };
    return ASSAY_RAN;
}

void assay_buffers_poison(const struct assay_tensors *tensors)
{
    for (int i = 0; i < tensors->count; i++) {
        const struct assay_tensor *const tensor = &tensors->item[i];
        if (tensor->is_output)
            memset(tensor->data, ASSAY_BUFFER_POISON, (size_t)assay_tensor_bytes(tensor));
    }
}

static bool is_guard(const unsigned char *from, const unsigned char *end)
{
    for (; from < end; from++)
        if (*from != ASSAY_BUFFER_GUARD) return false;
    return true;
}

bool assay_buffers_are_intact(const struct assay_buffers *buffers,
                              const struct assay_tensors *tensors)
{
    const unsigned char *const end =
        (const unsigned char *)buffers->block + buffers->bytes;
    const unsigned char *checked = buffers->block;
    for (int i = 0; i < tensors->count; i++) {
        const unsigned char *const data = tensors->item[i].data;
        const bool is_inside = (uintptr_t)data >= (uintptr_t)buffers->block &&
                               (uintptr_t)data < (uintptr_t)end;
        if (!is_inside) continue;
        assert(data >= checked);
        if (!is_guard(checked, data)) return false;
        checked = data + assay_tensor_bytes(&tensors->item[i]);
    }
    return is_guard(checked, end);
}

void assay_buffers_close(struct assay_buffers *buffers)
{
    free(buffers->block);
    *buffers = (struct assay_buffers){ 0 };
}
