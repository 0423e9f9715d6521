/* SPDX-License-Identifier: MIT */
/* The keys of an attention operation as mathematics: which places of a request or query
 * token hold one, and what is stored there. Own paging and decoders; it shares nothing
 * with the model. */
#ifndef ASSAY_REF_ORACLE_MLA_KEYS_H
#define ASSAY_REF_ORACLE_MLA_KEYS_H

#include "ref/mla_problem.h"

/* How a cached element is read. The first is what it means; the others are what kernels
 * multiply, rounded to nearest even, subnormals kept. */
enum assay_mla_reading {
    ASSAY_MLA_AS_STORED,      /* code * scale, exactly */
    ASSAY_MLA_BF16_OF_BF16S,  /* bf16(code * bf16(scale)) */
    ASSAY_MLA_BF16_OF_SINGLE, /* bf16(f32(code * scale)) */
};

/* What a vector holds, the worst of it. */
enum assay_mla_holding {
    ASSAY_MLA_HOLDS_NUMBERS,
    ASSAY_MLA_HOLDS_INFINITY,
    ASSAY_MLA_HOLDS_NAN,
    ASSAY_MLA_HOLDS_UNKNOWN, /* it lies outside the cache: undefined */
};

struct assay_mla_key {
    bool is_attended; /* otherwise the rest is not set */
    bool is_rounded;  /* an element differs from the stored one */
    enum assay_mla_holding holding;
    double element[ASSAY_MLA_MAX_D_QK]; /* exact; all 0 if unknown */
};

enum assay_mla_key_source {
    ASSAY_MLA_FROM_PAGES,   /* positions are those of the request */
    ASSAY_MLA_FROM_CACHES,  /* named by indices, then by extra indices */
    ASSAY_MLA_FROM_VECTORS, /* named by indices that may be outside */
};

struct assay_mla_indexed_cache {
    const struct assay_tensor *tensor;
    struct assay_mla_cache cache;
    const int32_t *indices;
    int64_t length; /* indices in use */
};

/* Keys by position, in the order of the request or of the indices; borrows the tensors.
 * */
struct assay_mla_key_list {
    enum assay_mla_key_source source;
    enum assay_mla_reading reading; /* set it after opening; AS_STORED to begin with */
    enum assay_format format;       /* of keys that are not quantised: bf16, f16 */
    int d_qk;
    int64_t positions;
    int64_t blocks;    /* of 64 positions, as the scheduler counts them */
    bool is_undefined; /* a length is outside its range: nothing is known */

    const struct assay_tensor *tensor; /* pages, vectors */
    const int32_t *pages;              /* block_table of the request */
    const int32_t *indices;            /* of vectors */
    int64_t head, vectors;
    struct assay_mla_indexed_cache cache[2];
    float code_value[256]; /* of e4m3 */
};

/* Of a request and KV head; of a request's query token; of a query token. */
void assay_mla_dense_decode_keys(const struct assay_mla_dense_decode_problem *problem,
                                 const struct assay_tensors *tensors, int64_t request,
                                 int64_t head, struct assay_mla_key_list *keys);
void assay_mla_sparse_decode_keys(const struct assay_mla_sparse_decode_problem *problem,
                                  const struct assay_tensors *tensors, int64_t request,
                                  int64_t token, struct assay_mla_key_list *keys);
void assay_mla_sparse_prefill_keys(const struct assay_mla_sparse_prefill_problem *problem,
                                   const struct assay_tensors *tensors, int64_t token,
                                   struct assay_mla_key_list *keys);

/* The key at @position, 0 <= position < positions. */
void assay_mla_read_key(const struct assay_mla_key_list *keys, int64_t position,
                        struct assay_mla_key *key);

/* Value of a bf16 or f16 code: exact. */
double assay_mla_element_value(enum assay_format format, uint16_t code);

/* What @count elements hold. */
enum assay_mla_holding assay_mla_holding_of(const double *element, int64_t count);

#endif
