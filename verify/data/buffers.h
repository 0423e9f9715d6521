/* SPDX-License-Identifier: MIT */
/* Memory for the tensors of a case: one block, guard bytes around every tensor, outputs
 * poisoned. */
#ifndef ASSAY_VERIFY_DATA_BUFFERS_H
#define ASSAY_VERIFY_DATA_BUFFERS_H

#include "ref/tensor.h"
#include "verify/case/message.h"

struct assay_buffers {
    void *block;
    size_t bytes;
};

/* Gives every tensor with data == NULL its memory (tensors that have some keep it). */
enum assay_status assay_buffers_open(struct assay_buffers *buffers,
                                     struct assay_tensors *tensors,
                                     struct assay_message *message);

/* Fills the outputs, row padding included, with the poison byte. */
void assay_buffers_poison(const struct assay_tensors *tensors);

/* Whether all guard bytes are as assay_buffers_open left them. */
bool assay_buffers_are_intact(const struct assay_buffers *buffers,
                              const struct assay_tensors *tensors);

void assay_buffers_close(struct assay_buffers *buffers);

/* XXH3-64 over names, formats, shapes and logical elements of the inputs. */
uint64_t assay_inputs_hash(const struct assay_tensors *tensors);

#endif
