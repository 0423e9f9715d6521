/* SPDX-License-Identifier: MIT */
/* The grouped FP8 GEMMs: one descriptor a file, the rest of them in common. */
#ifndef ASSAY_VERIFY_OPERATION_FP8_GEMM_GROUPED_H
#define ASSAY_VERIFY_OPERATION_FP8_GEMM_GROUPED_H

#include "ref/fp8_gemm_grouped_problem.h"
#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt.h"

struct assay_fp8_gemm_grouped_nt_problem {
    struct assay_fp8_gemm_grouped_problem grouped;
    enum assay_format a_format, b_format, out;
    int64_t group_m[ASSAY_MAX_GROUPS]; /* rows that count */
};

extern const struct assay_operation assay_m_grouped_fp8_gemm_nt_contiguous;
extern const struct assay_operation assay_m_grouped_fp8_gemm_nt_masked;
extern const struct assay_operation assay_k_grouped_fp8_gemm_nt_contiguous;
extern const struct assay_operation assay_k_grouped_fp8_gemm_tn_contiguous;

/* fp8_gemm_grouped_features.c */
extern const struct assay_feature assay_m_grouped_fp8_gemm_nt_contiguous_features[];
extern const struct assay_feature assay_m_grouped_fp8_gemm_nt_masked_features[];
extern const struct assay_feature assay_k_grouped_features[];

enum { ASSAY_GROUPED_MAX_EXTENT = 1 << 24, ASSAY_GROUPED_BLOCK = 128 };

/* The keys n, k, out, a_format, b_format of the descriptors. */
#define ASSAY_GROUPED_N                                                                  \
  {                                                                                      \
    .name = "n", .meaning = "columns of d; a multiple of 8",                             \
    .maximum = ASSAY_GROUPED_MAX_EXTENT, .is_required = true                             \
  }
#define ASSAY_GROUPED_K                                                                  \
  {                                                                                      \
    .name = "k", .meaning = "columns of a and b; a multiple of 16",                      \
    .maximum = ASSAY_GROUPED_MAX_EXTENT, .is_required = true                             \
  }
#define ASSAY_GROUPED_FORMATS                                                            \
  { .name = "a_format",                                                                  \
    .meaning = "format of a",                                                            \
    .choices = assay_fp8_gemm_operand_formats,                                           \
    .default_value = ASSAY_E4M3 },                                                       \
  {                                                                                      \
    .name = "b_format", .meaning = "format of b",                                        \
    .choices = assay_fp8_gemm_operand_formats, .default_value = ASSAY_E4M3               \
  }

/* fp8_gemm_grouped.c: reads a list of group sizes, refusing none and more than
 * ASSAY_MAX_GROUPS. */
enum assay_status assay_grouped_bind_list(const struct assay_case *the_case,
                                          const char *key, int64_t *sizes, int *groups,
                                          struct assay_message *message);
/* Formats, n and its legality; @k of a group where all have the same, else 0. */
enum assay_status
assay_grouped_bind_rest(const struct assay_case *the_case, int64_t k,
                        struct assay_fp8_gemm_grouped_nt_problem *problem,
                        struct assay_message *message);
void assay_grouped_add(struct assay_tensors *tensors, const char *name,
                       enum assay_format format, int rank, const int64_t *shape);
/* Stream key of row 0 of a group. */
int64_t assay_grouped_row_key(int64_t group);
/* Fills b and sfb of every group. */
void assay_grouped_fill_weights(const struct assay_tensors *tensors,
                                enum assay_data_kind kind, uint64_t seed);
/* The rows x k matrix of a K group with @k_before of K before it, in an operand of either
 * k-grouped GEMM. */
struct assay_tensor assay_k_grouped_operand(const struct assay_tensor *operand,
                                            int64_t rows, int64_t k_before, int64_t k);

int64_t assay_grouped_parts(const void *problem);
void assay_grouped_region(const void *problem, int64_t part, int output,
                          struct assay_region *region);
enum assay_status assay_grouped_model(const void *problem, const void *numerics,
                                      const struct assay_tensors *tensors, int64_t part);
bool assay_grouped_narrow(const void *problem, const struct assay_tensors *tensors,
                          void *narrowed, struct assay_tensors *windows);
enum assay_status assay_grouped_oracle(const void *problem, const void *numerics,
                                       const struct assay_tensors *tensors, int64_t part,
                                       const struct assay_expected *expected);
void assay_grouped_place(const void *problem, int output, int64_t element,
                         struct assay_place *place);
enum assay_status assay_grouped_check_numerics(const void *problem, const void *numerics,
                                               struct assay_message *message);
bool assay_grouped_is_constant_by_design(const void *problem);
bool assay_grouped_is_exact(const void *problem, enum assay_data_kind kind, int output);

#endif
