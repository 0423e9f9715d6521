/* SPDX-License-Identifier: MIT */
/* Attention as mathematics: the function of the stored inputs, a part at a time, with
 * what a bound has to know about the sums it came from. It shares nothing with the
 * model.
 *
 * Exactness. Products of elements are exact in double; their sums, exp and the sums of
 * weights and of weighted values have errors of double arithmetic: of a score at most
 * d_qk * 2^-53 times the sum of the products' magnitudes, of an output (keys + 8) * 2^-52
 * times the sum of weight * |value| over the sum of weights, beside what scores pass on.
 * Sums that are doubles are exact, and so is the weight 1 of the largest score.
 *
 * OpenBLAS, in use where there is no AVX-512, must run with one thread
 * (openblas_set_num_threads(1), once, by the caller). */
#ifndef ASSAY_REF_ORACLE_MLA_ATTENTION_H
#define ASSAY_REF_ORACLE_MLA_ATTENTION_H

#include "ref/oracle/mla_keys.h"

enum {
    ASSAY_MLA_ORACLE_ROWS = 64,
    ASSAY_MLA_ORACLE_KEYS = 64, /* in memory at a time */
    ASSAY_MLA_ORACLE_SQUARE = ASSAY_MLA_ORACLE_ROWS * ASSAY_MLA_ORACLE_KEYS,
    ASSAY_MLA_ORACLE_SLICES = ASSAY_MLA_D_V / 64, /* of values, 64 elements each */
    ASSAY_MLA_ORACLE_SIDE = 64 * ASSAY_MLA_MAX_D_QK,
    ASSAY_MLA_NO_EXPONENT = -10000,
    ASSAY_MLA_NO_LSB = 10000,
};

/* The rows of a part: row = token * heads + head. */
struct assay_mla_part {
    struct assay_mla_key_list keys;
    const struct assay_tensor *q;
    int64_t tokens, heads;
    int64_t q_offset, token_stride, head_stride; /* elements of q */
    bool is_causal; /* token t sees positions below positions - (tokens - 1 - t) */
    double softmax_scale;
    const float *sink; /* by head; NULL: none */
    bool is_base_two, may_be_split;
};

void assay_mla_dense_decode_part(const struct assay_mla_dense_decode_problem *problem,
                                 const struct assay_tensors *tensors, int64_t index,
                                 struct assay_mla_part *part);
void assay_mla_sparse_decode_part(const struct assay_mla_sparse_decode_problem *problem,
                                  const struct assay_tensors *tensors, int64_t index,
                                  struct assay_mla_part *part);
void assay_mla_sparse_prefill_part(const struct assay_mla_sparse_prefill_problem *problem,
                                   const struct assay_tensors *tensors, int64_t index,
                                   struct assay_mla_part *part);

/* What a row is, the worst of it. */
enum assay_mla_row_state {
    ASSAY_MLA_ROW_EMPTY, /* it sees no key */
    ASSAY_MLA_ROW_FINITE,
    ASSAY_MLA_ROW_NAN,     /* a NaN in q or in a key it sees, or in a score */
    ASSAY_MLA_ROW_UNKNOWN, /* infinities, keys outside the cache, NaN in a sink */
};

/* One vector of the inputs. Exponents are those of tensor cores' operands: at least the
 * smallest normal's. */
struct assay_mla_vector_facts {
    int exponent; /* the largest; ASSAY_MLA_NO_EXPONENT of a zero vector */
    int lsb;      /* all elements are multiples of 2^lsb; ASSAY_MLA_NO_LSB likewise */
    double norm;  /* Euclidean, of padded magnitudes; 2^-40 too small at most */
};

struct assay_mla_oracle_row {
    enum assay_mla_row_state state;
    bool has_nan, has_infinity, is_undefined; /* of what it sees, and of q */
    int64_t limit; /* positions below it are seen, as far as they hold keys */
    int64_t keys;  /* seen */
    struct assay_mla_vector_facts q;
    double largest_norm;    /* of the keys seen */
    double maximum, second; /* scores q * k, of different keys; -infinity without */
    int64_t argmax;         /* position of the first key with the largest score */
    double near_total;      /* total, within 2^-30 of it */
    double total;           /* sum of weights exp(scale * (score - maximum)) */
    double sink_weight;     /* exp(sink - scale * maximum); 0 without a sink */
};

/* State of one part, 64 rows at a time. Index [i * 64 + j] of a square is row i and key
 * j of the block in memory, or element j of a slice. */
struct assay_mla_oracle {
    const struct assay_mla_part *part;
    bool is_portable; /* set it after opening to do without special instructions */
    bool was_rounded; /* a key seen so far was, by the reading of the keys */
    int64_t first_row, row_count;
    struct assay_mla_oracle_row row[ASSAY_MLA_ORACLE_ROWS];

    /* Keys [first_key, first_key + key_count) by position, those a row may see. Vectors
     * that do not hold numbers are zeros here. Padded magnitudes are |x|, but at least
     * the smallest normal of the format, 0 for zero. */
    int64_t first_key, key_count;
    uint64_t attended; /* bit j: there is a key */
    enum assay_mla_holding holding[ASSAY_MLA_ORACLE_KEYS];
    struct assay_mla_vector_facts key_facts[ASSAY_MLA_ORACLE_KEYS];
    int value_lsb;        /* of the values of all blocks so far */
    double largest_value; /* of them, a magnitude */
    _Alignas(64) double q[ASSAY_MLA_ORACLE_SIDE], q_magnitude[ASSAY_MLA_ORACLE_SIDE];
    _Alignas(64) double key[ASSAY_MLA_ORACLE_SIDE], key_magnitude[ASSAY_MLA_ORACLE_SIDE];
    _Alignas(64) double value[ASSAY_MLA_ORACLE_SLICES][ASSAY_MLA_ORACLE_SQUARE];
    _Alignas(64) double value_magnitude[ASSAY_MLA_ORACLE_SLICES][ASSAY_MLA_ORACLE_SQUARE];

    float q_single[ASSAY_MLA_ORACLE_SIDE], key_single[ASSAY_MLA_ORACLE_SIDE];

    /* sum over d of q * k, and of padded |q| * |k|; weights; what the observer charges.
     * */
    _Alignas(64) double score[ASSAY_MLA_ORACLE_SQUARE];
    _Alignas(64) double magnitude[ASSAY_MLA_ORACLE_SQUARE];
    _Alignas(64) double weight[ASSAY_MLA_ORACLE_SQUARE], cost[ASSAY_MLA_ORACLE_SQUARE];

    /* sum over the keys of weight * value, and of cost * padded |value|. */
    _Alignas(64) double output[ASSAY_MLA_ORACLE_SLICES][ASSAY_MLA_ORACLE_SQUARE];
    _Alignas(64) double output_cost[ASSAY_MLA_ORACLE_SLICES][ASSAY_MLA_ORACLE_SQUARE];
};

/* Told of each block, once the rows' facts but for total are known: fills cost from
 * score, magnitude and weight. NULL functions are not called. */
struct assay_mla_observer {
    void *context;
    void (*start)(void *context, struct assay_mla_oracle *oracle); /* of 64 rows */
    void (*block)(void *context, struct assay_mla_oracle *oracle);
};

/* NULL when memory ran out: some 3 MiB. The part is borrowed. */
struct assay_mla_oracle *assay_mla_oracle_open(const struct assay_mla_part *part);
void assay_mla_oracle_close(struct assay_mla_oracle *oracle);

/* Takes rows [first_row, first_row + 64), as far as they exist, through all keys. */
void assay_mla_oracle_rows(struct assay_mla_oracle *oracle, int64_t first_row,
                           const struct assay_mla_observer *observer);

/* Bit j: row @i sees key j of the block in memory. */
uint64_t assay_mla_oracle_seen(const struct assay_mla_oracle *oracle, int64_t i);

/* sum over d of padded |q| * |k| of row @i and the key at @position, which it sees, and
 * the facts about that key. */
double assay_mla_oracle_magnitude(const struct assay_mla_oracle *oracle, int64_t i,
                                  int64_t position, struct assay_mla_vector_facts *facts);

/* For the pairs of rows and keys in memory, the sum over d of |q * k| modulo
 * 2^exponent[pair]: what truncating each product to a multiple of that power loses, and
 * no truncation to a smaller one exceeds. From above, and within 2^-12 of itself where
 * the power is at least 2^-90 of the largest product possible; otherwise d_qk times the
 * power. For elements of bf16 or f16, so not for keys read as stored. */
void assay_mla_oracle_residues(struct assay_mla_oracle *oracle, const int *exponent,
                               double *residue);

/* Results of row @i, in double: NaN of rows of NaN, and NaN without a claim of unknown
 * ones. Logarithms as the part wants them, natural or base 2. */
double assay_mla_oracle_out(const struct assay_mla_oracle *oracle, int64_t i, int column);
double assay_mla_oracle_lse(const struct assay_mla_oracle *oracle, int64_t i);
double assay_mla_oracle_max_logit(const struct assay_mla_oracle *oracle, int64_t i);

#endif
