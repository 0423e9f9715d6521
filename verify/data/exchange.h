/* SPDX-License-Identifier: MIT */
/* A case as a program gets it: a folder of its own with `inputs.safetensors`, in which
 * the program leaves `outputs.safetensors`.
 *
 * Inputs are stored as in a recorded file, row padding included. Metadata, all of them
 * strings, those marked * in JSON:
 *
 *   case          the case line
 *   operation     its operation
 *   parameters *  {KEY: VALUE}: every key of the operation, also those left at their
 *                 defaults; the name of a choice, a number, or a list of numbers
 *   inputs *      {NAME: {"dtype", "format", "shape", "stride"}}: dtype as safetensors
 *                 has it, format as a case line has it ("e2m1"), the shape without row
 *                 padding, strides in elements of the stored tensor
 *   outputs *     the same for what is to be computed
 *   launches      how often the outputs are to be computed, 1 or more
 *
 * Outputs are stored like inputs, or contiguous in their shape; then row padding keeps
 * what it held. Beside them there may be `tile_scheduler_metadata` and `num_splits`,
 * where they are inputs: the plan that was used instead. */
#ifndef ASSAY_VERIFY_DATA_EXCHANGE_H
#define ASSAY_VERIFY_DATA_EXCHANGE_H

#include "ref/tensor.h"
#include "verify/case/case.h"

struct assay_exchange {
    char folder[4096]; /* an absolute path; empty: none */
};

/* Makes a folder that only this user may enter, in TMPDIR or else /tmp, and writes the
 * inputs. On failure @exchange may be closed. */
enum assay_status assay_exchange_open(struct assay_exchange *exchange,
                                      const struct assay_case *the_case,
                                      const struct assay_tensors *tensors, int launches,
                                      struct assay_message *message);

/* Whether the tensor is an input that a returned plan replaces. */
bool assay_exchange_takes_plan(const struct assay_tensor *tensor);

/* Whether there is a file of outputs at all. */
bool assay_exchange_is_answered(const struct assay_exchange *exchange);

/* Copies the outputs of the file to @tensors, and a plan to the inputs; *@has_plan says
 * whether there was one. ASSAY_FAILED, nothing copied, when the file is not as it has to
 * be, or the plan is not one that a kernel may be given. */
enum assay_status assay_exchange_fetch(const struct assay_exchange *exchange,
                                       const struct assay_case *the_case,
                                       const void *problem,
                                       const struct assay_tensors *tensors,
                                       bool *has_plan, struct assay_message *message);

/* Removes the folder with all that is in it. */
void assay_exchange_close(struct assay_exchange *exchange);

#endif
