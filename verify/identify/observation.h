/* SPDX-License-Identifier: MIT */
/* Outputs that somebody computed, and how settings of knobs compare with them, part by
 * part. */
#ifndef ASSAY_VERIFY_IDENTIFY_OBSERVATION_H
#define ASSAY_VERIFY_IDENTIFY_OBSERVATION_H

#include "verify/data/buffers.h"
#include "verify/operation/operation.h"

struct assay_observation {
    const struct assay_operation *operation;
    const void *problem;
    const struct assay_tensors *tensors; /* inputs, and the outputs to be explained */
    bool is_recording; /* elements that had to keep what they held tell nothing */
    uint8_t *map[ASSAY_MAX_TENSORS]; /* of outputs: see definedness.h */
    int64_t parts;
    int64_t judged; /* elements whose bits are compared */
};

/* Completes an observation whose first four members are set: ASSAY_RAN or
 * ASSAY_OUT_OF_MEMORY. To be closed whatever the status. */
enum assay_status assay_observation_open(struct assay_observation *observation);
void assay_observation_close(struct assay_observation *observation);

/* Elements of a part whose bits are compared. */
int64_t assay_judged_in_part(const struct assay_observation *observation, int64_t part);

/* Memory for the outputs of the model beside the observed ones. */
struct assay_scratch {
    struct assay_tensors tensors;
    struct assay_buffers buffers;
};
enum assay_status assay_scratch_open(const struct assay_observation *observation,
                                     struct assay_scratch *scratch);
void assay_scratch_close(struct assay_scratch *scratch);

/* What a part came to. */
struct assay_part_comparison {
    int64_t equal, elements; /* judged ones */
    uint64_t bits;           /* hash of the judged elements that the model computed */
};

/* Computes one part as @numerics do and compares it: ASSAY_RAN or ASSAY_OUT_OF_MEMORY.
 * Different parts may go into one scratch at the same time. */
enum assay_status assay_compare_part(const struct assay_observation *observation,
                                     const void *numerics, struct assay_scratch *scratch,
                                     int64_t part,
                                     struct assay_part_comparison *comparison);

#endif
