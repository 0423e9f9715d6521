/* SPDX-License-Identifier: MIT */
/* Memory of one case that a worker may have: a sealed memfd with copies of the tensors,
 * inputs in a region to be mapped read-only, outputs in one to be written, guard bytes
 * around every tensor. */
#ifndef ASSAY_VERIFY_WORKER_ARENA_H
#define ASSAY_VERIFY_WORKER_ARENA_H

#include "ref/tensor.h"
#include "verify/case/message.h"

#include <stddef.h>

struct assay_arena {
    int fd;                    /* -1: none */
    size_t bytes, input_bytes; /* inputs come first; a multiple of the page size */
    void *memory;
    struct assay_tensors tensors; /* inputs first, then outputs; data is in memory */
    int place[ASSAY_MAX_TENSORS]; /* of the tensors it was opened with, in tensors */
};

/* Takes the memory and copies inputs and outputs (their poison). The caller's tensors
 * must hold data. On failure @arena may be closed. */
enum assay_status assay_arena_open(struct assay_arena *arena,
                                   const struct assay_tensors *tensors,
                                   struct assay_message *message);

/* Bytes from the beginning of the memory to tensor @index of those given to open. */
size_t assay_arena_offset(const struct assay_arena *arena, int index);

/* Whether all guard bytes are as they were. */
bool assay_arena_is_intact(const struct assay_arena *arena);

/* Copies the outputs back to the tensors given to open. */
void assay_arena_fetch(const struct assay_arena *arena,
                       const struct assay_tensors *tensors);

void assay_arena_close(struct assay_arena *arena);

/* Maps an arena's memfd as a worker has it: inputs read-only. NULL on failure. */
void *assay_arena_map(int fd, size_t bytes, size_t input_bytes);

#endif
