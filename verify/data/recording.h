/* SPDX-License-Identifier: MIT */
/* A recorded file: cases that share inputs, with the outputs some GPU gave. Tensors named
 * "N/name" belong to case N, plain "name" to all; metadata "cases" holds one case line
 * each. */
#ifndef ASSAY_VERIFY_DATA_RECORDING_H
#define ASSAY_VERIFY_DATA_RECORDING_H

#include "verify/case/case.h"
#include "verify/data/safetensors.h"

struct assay_recording {
    const char *path; /* borrowed */
    struct assay_safetensors file;
    int count;
    struct assay_case *cases;
};

/* Reads file and case lines. Refuses a tensor that belongs to no case. */
enum assay_status assay_recording_open(struct assay_recording *recording,
                                       const char *path, struct assay_message *message);

/* Points the data of @tensors (shaped by the case) at memory of the recording, inputs and
 * outputs, after checking dtype and shape of each. A tensor with row padding is stored
 * with its stride as last dimension. A tensor that is missing is refused. Memory that is
 * not aligned for its element is copied once into the recording. */
enum assay_status assay_recording_bind(struct assay_recording *recording, int index,
                                       struct assay_tensors *tensors,
                                       struct assay_message *message);

void assay_recording_close(struct assay_recording *recording);

#endif
