/* SPDX-License-Identifier: MIT */
/* mla_cache_quantise and mla_cache_dequantise: bf16 keys to FP8 and FP4 caches and back
 * (FlashMLA's tests/quant.py; dequantisation as its decode kernel does it). What the
 * files of this folder share. */
#ifndef ASSAY_VERIFY_OPERATION_MLA_CACHE_MLA_CACHE_H
#define ASSAY_VERIFY_OPERATION_MLA_CACHE_MLA_CACHE_H

#include "ref/kernel/mla_cache.h"
#include "verify/operation/operation.h"

struct assay_mla_dequantise_numerics {
    int dequantisation; /* enum assay_mla_dequantisation */
};

/* Places of the tensors: x and k_cache, or k_cache and key. */
enum { ASSAY_MLA_CACHE_INPUT, ASSAY_MLA_CACHE_OUTPUT };

extern const struct assay_operation assay_mla_cache_quantise, assay_mla_cache_dequantise;

/* mla_cache.c: keys and hooks of both operations. Problems are struct
 * assay_mla_cache_problem. */
extern const struct assay_parameter assay_mla_cache_parameters[];
enum {
    ASSAY_MLA_CACHE_KINDS =
        ((1 << ASSAY_GENERAL_DATA_KINDS) - 1) & ~(1 << ASSAY_DATA_CANCEL)
};
enum assay_status assay_mla_cache_bind(const struct assay_case *the_case, void *problem,
                                       struct assay_message *message);
struct assay_tensor assay_mla_cache_tensor(const struct assay_mla_cache_problem *problem);
struct assay_tensor assay_mla_keys_tensor(const struct assay_mla_cache_problem *problem,
                                          const char *name);
int64_t assay_mla_cache_parts(const void *problem);
struct assay_cost assay_mla_cache_cost(const void *problem);
bool assay_mla_cache_is_constant_by_design(const void *problem);
bool assay_mla_cache_is_exact(const void *problem, enum assay_data_kind kind, int output);

/* mla_cache_bound.c: the oracle hooks. */
enum assay_status assay_mla_cache_quantise_expect(const void *problem,
                                                  const void *numerics,
                                                  const struct assay_tensors *tensors,
                                                  int64_t part,
                                                  const struct assay_expected *expected);
enum assay_status
assay_mla_cache_dequantise_expect(const void *problem, const void *numerics,
                                  const struct assay_tensors *tensors, int64_t part,
                                  const struct assay_expected *expected);

/* mla_cache_x_data.c, mla_cache_data.c: inputs. Scales are NaN in unsafe cases only. */
void assay_mla_cache_fill_x(const void *problem, enum assay_data_kind kind, uint64_t seed,
                            const struct assay_tensors *tensors);
void assay_mla_cache_fill(const void *problem, enum assay_data_kind kind, uint64_t seed,
                          const struct assay_tensors *tensors);

/* mla_cache_features.c */
extern const struct assay_feature assay_mla_cache_quantise_features[];
extern const struct assay_feature assay_mla_cache_dequantise_features[];

#endif
