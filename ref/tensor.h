/* SPDX-License-Identifier: MIT */
/* A typed, strided window on memory somebody else owns: the only thing that model,
 * oracle, generator and backends exchange. It knows sizes, not arithmetic. */
#ifndef ASSAY_REF_TENSOR_H
#define ASSAY_REF_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum assay_format {
    ASSAY_FORMAT_NONE,
    ASSAY_E4M3, /* e4m3fn: no infinity, NaN is 0x7F and 0xFF */
    ASSAY_E5M2,
    ASSAY_E2M1,  /* one code a byte, in the low four bits */
    ASSAY_UE8M0, /* exponent only: 2^(code - 127), 255 is NaN */
    ASSAY_BF16,
    ASSAY_F16,
    ASSAY_TF32, /* stored as f32; the unit ignores the low 13 bits */
    ASSAY_F32,
    ASSAY_U8,
    ASSAY_I32,
    ASSAY_FORMAT_COUNT
};

enum { ASSAY_MAX_RANK = 5, ASSAY_MAX_TENSORS = 16 };

struct assay_tensor {
    const char *name; /* upstream's: "sfa", "block_table" */
    enum assay_format format;
    bool is_output;
    int rank;
    int64_t shape[ASSAY_MAX_RANK];
    int64_t stride[ASSAY_MAX_RANK]; /* elements; stride[0] >= shape[1] * stride[1], ... */
    void *data;
};

struct assay_tensors {
    int count;
    struct assay_tensor item[ASSAY_MAX_TENSORS];
};

/* Name as users write it ("e4m3", "bf16"); never NULL for a valid format. */
const char *assay_format_name(enum assay_format format);

/* Format of that name, ASSAY_FORMAT_NONE if there is none. */
enum assay_format assay_format_find(const char *name);

/* Bytes one element takes in memory: 1, 2 or 4. */
size_t assay_format_bytes(enum assay_format format);

/* Dense row-major strides for the shape already set. */
void assay_tensor_set_dense(struct assay_tensor *tensor);

/* Number of logical elements; 1 for rank 0; -1 on overflow. */
int64_t assay_tensor_elements(const struct assay_tensor *tensor);

/* Bytes from the first to the end of the last element's row, that is
 * shape[0] * stride[0] elements: row padding is part of the memory. -1 on overflow. */
int64_t assay_tensor_bytes(const struct assay_tensor *tensor);

/* Memory position, in elements, of the logical row-major index @element. */
int64_t assay_tensor_offset(const struct assay_tensor *tensor, int64_t element);

/* Bits of the logical row-major index @element, zero extended. */
uint32_t assay_tensor_bits(const struct assay_tensor *tensor, int64_t element);

/* Stores the low bits of @bits at the logical row-major index @element. */
void assay_tensor_set_bits(const struct assay_tensor *tensor, int64_t element,
                           uint32_t bits);

/* Windows on the same memory. Rows [first, first + count) of the first dimension: */
struct assay_tensor assay_tensor_rows(const struct assay_tensor *tensor, int64_t first,
                                      int64_t count);
/* Entry @index of the first dimension, a tensor of one rank less: */
struct assay_tensor assay_tensor_slice(const struct assay_tensor *tensor, int64_t index);
/* A rank 2 tensor with its dimensions swapped: */
struct assay_tensor assay_tensor_transposed(const struct assay_tensor *tensor);

/* The tensor of that name; NULL if there is none. */
const struct assay_tensor *assay_tensors_find(const struct assay_tensors *tensors,
                                              const char *name);

#endif
