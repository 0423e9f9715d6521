/* SPDX-License-Identifier: MIT */
/* Memory for the tensors of a case: one block, guard bytes around every tensor, outputs
 * poisoned. */
#ifndef ASSAY_VERIFY_DATA_BUFFERS_H
#define ASSAY_VERIFY_DATA_BUFFERS_H

#include "ref/tensor.h"
#include "verify/case/message.h"

enum {
    ASSAY_BUFFER_ALIGNMENT = 64,    /* bytes, of every tensor */
    ASSAY_BUFFER_GUARD_BYTES = 256, /* at least, before and behind every tensor */
    ASSAY_BUFFER_GUARD = 0xA5,
    ASSAY_BUFFER_POISON = 0xDB,
    ASSAY_BUFFER_PADDING = 0xFF, /* NaN in every floating-point format */
};

struct assay_buffers {
    void *block;
    size_t bytes;
};

/* Bytes that assay_buffers_open would take. ASSAY_REFUSED above 2^40, which is no case
 * anybody means; ASSAY_OUT_OF_MEMORY above what this machine has. */
enum assay_status assay_buffers_measure(const struct assay_tensors *tensors,
                                        size_t *bytes, struct assay_message *message);

/* Gives every tensor with data == NULL its memory (tensors that have some keep it).
 * Outputs are poisoned; inputs, row padding included, hold ASSAY_BUFFER_PADDING until
 * they are filled. More memory than the machine has is refused before it is taken; then
 * and on any failure @buffers may be closed. */
enum assay_status assay_buffers_open(struct assay_buffers *buffers,
                                     struct assay_tensors *tensors,
                                     struct assay_message *message);

/* Fills the outputs, row padding included, with the poison byte. */
void assay_buffers_poison(const struct assay_tensors *tensors);

/* Whether all guard bytes are as assay_buffers_open left them. @tensors must be those it
 * was given. */
bool assay_buffers_are_intact(const struct assay_buffers *buffers,
                              const struct assay_tensors *tensors);

void assay_buffers_close(struct assay_buffers *buffers);

/* XXH3-64 over names, formats, shapes and logical elements of the inputs: for each input
 * its name and its format's name, each with its final zero byte; rank and sizes as 64-bit
 * little-endian integers; the elements in row-major order, without row padding. */
uint64_t assay_inputs_hash(const struct assay_tensors *tensors);

/* XXH3-64 over the logical elements of one tensor. */
uint64_t assay_tensor_hash(const struct assay_tensor *tensor);

/* XXH3-64 of a text without its NUL. */
uint64_t assay_text_hash(const char *text);

#endif
