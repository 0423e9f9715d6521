/* SPDX-License-Identifier: MIT */
/* Single hardware units as operations: wgmma, sfu, convert. What the files of this folder
 * share. */
#ifndef ASSAY_VERIFY_OPERATION_UNIT_UNIT_H
#define ASSAY_VERIFY_OPERATION_UNIT_UNIT_H

#include "ref/kernel/unit.h"
#include "verify/data/runs.h"
#include "verify/operation/operation.h"

extern const struct assay_operation assay_wgmma;
extern const struct assay_operation assay_sfu;
extern const struct assay_operation assay_convert;

/* unit_features.c */
extern const struct assay_feature assay_wgmma_features[];
extern const struct assay_feature assay_sfu_features[];
extern const struct assay_feature assay_convert_features[];

/* --- wgmma ------------------------------------------------------------------------ */

struct assay_wgmma_problem {
    int64_t blocks, steps, n;
    int64_t elements; /* of K in a step: 32 bytes of either operand */
    enum assay_format a_format, b_format;
};

/* Places of the tensors. */
enum { ASSAY_WGMMA_A, ASSAY_WGMMA_B, ASSAY_WGMMA_C, ASSAY_WGMMA_D, ASSAY_WGMMA_TENSORS };

/* wgmma_numerics.c */
extern const struct assay_named_numerics assay_wgmma_numerics_table[];
extern const struct assay_knob assay_wgmma_knobs[];
enum assay_status assay_wgmma_check_numerics(const void *problem, const void *numerics,
                                             struct assay_message *);
bool assay_wgmma_is_measured(const void *numerics);

/* wgmma_data.c */
void assay_wgmma_fill(const void *problem, enum assay_data_kind kind, uint64_t seed,
                      const struct assay_tensors *tensors);

/* wgmma_bound.c: what a bound may rely on, and value and bound of d of block @block.
 * ASSAY_RAN, or ASSAY_OUT_OF_MEMORY. */
struct assay_wgmma_precision {
    int64_t instructions; /* a chain */
    int groups;           /* dot-adds an instruction, one after the other */
    int align_bits, result_bits;
    bool adds_accumulator_last; /* rn(sum of the products + accumulator) in f32 */
};
enum assay_status assay_wgmma_expect(const struct assay_wgmma_precision *precision,
                                     const struct assay_tensors *tensors, int64_t block,
                                     const struct assay_expected *d);

/* --- sfu and convert: y[i] = f(x[i]) ---------------------------------------------- */

enum { ASSAY_UNARY_X, ASSAY_UNARY_Y, ASSAY_UNARY_TENSORS };

struct assay_unary_problem {
    int64_t count;
    enum assay_format to;             /* of y */
    enum assay_sfu_function function; /* sfu only */
};

/* unary.c: parts of 4,096 elements. */
void assay_unary_shape(const void *problem, struct assay_tensors *tensors);
int64_t assay_unary_parts(const void *problem);
void assay_unary_region(const void *problem, int64_t part, int output,
                        struct assay_region *region);
void assay_unary_place(const void *problem, int output, int64_t element,
                       struct assay_place *place);
struct assay_cost assay_unary_cost(const void *problem);
bool assay_unary_is_constant_by_design(const void *problem);
/* Runs in rows of 64 elements. */
void assay_unary_fill_runs(const struct assay_tensor *x, uint64_t seed,
                           const struct assay_run_range *range);
/* Calls @draw for every element of x with a stream of 64 elements' row: it takes the same
 * number of draws for each. */
void assay_unary_fill(const struct assay_tensor *x, enum assay_data_kind kind,
                      uint64_t seed, const void *context,
                      uint32_t (*draw)(struct assay_stream *stream, const void *context));

/* sfu_data.c */
bool assay_sfu_has_data(enum assay_data_kind kind);
void assay_sfu_fill(const void *problem, enum assay_data_kind kind, uint64_t seed,
                    const struct assay_tensors *tensors);

/* convert_data.c */
bool assay_convert_has_data(enum assay_data_kind kind);
void assay_convert_fill(const void *problem, enum assay_data_kind kind, uint64_t seed,
                        const struct assay_tensors *tensors);

#endif
