/* SPDX-License-Identifier: MIT */
/* A recorded file: cases that share inputs, with the outputs some GPU gave. Tensors named
 * "N/name" belong to case N, plain "name" to all; metadata "cases" holds one case line
 * each. */
#ifndef ASSAY_VERIFY_DATA_RECORDING_H
#define ASSAY_VERIFY_DATA_RECORDING_H

#include "verify/case/case.h"
#include "verify/data/safetensors.h"

enum { ASSAY_MAX_RECORDED_CASES = 10000 };

struct assay_recording {
    const char *path; /* borrowed */
    struct assay_safetensors file;
    int count;
    struct assay_case *cases;
};

/* Reads file and case lines. Refuses a tensor that belongs to no case. On failure
 * @recording holds nothing and may be closed. */
enum assay_status assay_recording_open(struct assay_recording *recording,
                                       const char *path, struct assay_message *message);

/* Points the data of @tensors (shaped by the case) at memory of the recording, inputs and
 * outputs, after checking dtype and shape of each. "N/name" comes before plain "name". A
 * tensor that is missing is refused. Memory is aligned for the element (what the file
 * does not align is copied when it is opened). */
enum assay_status assay_recording_bind(struct assay_recording *recording, int index,
                                       struct assay_tensors *tensors,
                                       struct assay_message *message);

/* The same where outputs need not be there, as in a file of inputs for some candidate:
 * data of those that are not is NULL. */
enum assay_status assay_recording_bind_inputs(struct assay_recording *recording,
                                              int index, struct assay_tensors *tensors,
                                              struct assay_message *message);

/* The shape under which @tensor is stored: row padding belongs to it, so the last
 * dimension is the stride of the one before. Each stride must be a multiple of the next
 * (asserted). */
void assay_recording_stored_shape(const struct assay_tensor *tensor,
                                  int64_t shape[ASSAY_MAX_RANK]);

void assay_recording_close(struct assay_recording *recording);

#endif
