/* SPDX-License-Identifier: MIT */
/* The FP8 GEMM as mathematics: the function of the stored inputs, part by part, with what
 * a bound has to know about the sums it came from. It shares nothing with the model.
 *
 * Exactness. Sums of products are exact. The sum over the ranges of k of sfa * sfb * sum
 * is a pair of doubles whose error is at most (ranges + 1) * 2^-100 times the sum of the
 * magnitudes (ASSAY_FP8_GEMM_ORACLE_ERROR), and zero as long as all partial sums are
 * doubles. NaN and infinities follow IEEE 754 as if nothing ever rounded: 0 * infinity
 * and infinity - infinity are NaN, finite numbers never overflow or vanish.
 *
 * OpenBLAS, in use where there is no AVX-512, must run with one thread
 * (openblas_set_num_threads(1), once, by the caller). */
#ifndef ASSAY_REF_ORACLE_FP8_GEMM_H
#define ASSAY_REF_ORACLE_FP8_GEMM_H

#include "ref/fp8_gemm_problem.h"
#include "ref/oracle/fp8_gemm_side.h"
#include "ref/oracle/pair.h"

enum {
    ASSAY_FP8_GEMM_COLUMNS = ASSAY_FP8_GEMM_TILE_N,
    ASSAY_FP8_GEMM_TILE = ASSAY_FP8_GEMM_TILE_M * ASSAY_FP8_GEMM_COLUMNS,
};

#define ASSAY_FP8_GEMM_ORACLE_ERROR 0x1p-100

enum assay_fp8_gemm_special { /* a set */
                              ASSAY_ORACLE_NAN = 1,
                              ASSAY_ORACLE_PLUS_INFINITY = 2,
                              ASSAY_ORACLE_MINUS_INFINITY = 4,
};

/* State of one part. Row @i and column @j of it are element
 * i * ASSAY_FP8_GEMM_COLUMNS + j of the arrays over outputs; columns that the part does
 * not have are those of zeros. */
struct assay_fp8_gemm_oracle {
    const struct assay_fp8_gemm_problem *problem;
    struct assay_fp8_gemm_side side[2]; /* a, b */
    const struct assay_tensor *c;       /* NULL without has_c */
    bool is_portable; /* set it after opening to do without special instructions */
    _Alignas(64) double scratch[ASSAY_FP8_GEMM_TILE], start[ASSAY_FP8_GEMM_TILE];

    /* The products a * b of the range of k in hand. */
    int64_t k0, k_count;
    bool is_narrow; /* sums of magnitudes are doubles */
    /* The exact sum is sum + sum_low, and sum is that rounded. */
    double sum[ASSAY_FP8_GEMM_TILE], sum_low[ASSAY_FP8_GEMM_TILE];
    /* sum of |a| * |b|: exact if is_narrow, otherwise undefined. */
    double absolute[ASSAY_FP8_GEMM_TILE];
    /* sum of padded |a| * |b|, never below it: exact for e4m3 by e4m3 up to k = 2^17,
     * otherwise up to 2^-23 too large. */
    double magnitude[ASSAY_FP8_GEMM_TILE];
    double nonzero[ASSAY_FP8_GEMM_TILE]; /* products that are not zero, counted */
    /* Infinite and NaN products, which sum, magnitude and nonzero leave out; all 0 unless
     * has_special. */
    uint8_t special[ASSAY_FP8_GEMM_TILE];
    bool has_special;

    /* sum over the ranges so far of sfa * sfb * sum: finite terms, and the others. */
    double total[ASSAY_FP8_GEMM_TILE], total_low[ASSAY_FP8_GEMM_TILE];
    uint8_t total_special[ASSAY_FP8_GEMM_TILE];
};

/* Opens part @part with a total of zero; NULL when memory ran out. Problem and tensors
 * are borrowed. */
struct assay_fp8_gemm_oracle *
assay_fp8_gemm_oracle_open(const struct assay_fp8_gemm_problem *problem,
                           const struct assay_tensors *tensors, int64_t part);
void assay_fp8_gemm_oracle_close(struct assay_fp8_gemm_oracle *oracle);

/* Takes [k0, k0 + k_count), which lies in one scale block (asserted), in hand and adds it
 * to the total. Each k belongs to one call. */
void assay_fp8_gemm_oracle_range(struct assay_fp8_gemm_oracle *oracle, int64_t k0,
                                 int64_t k_count);

/* Loads the slice that begins @done elements into the range; returns its length. */
int64_t assay_fp8_gemm_oracle_slice(struct assay_fp8_gemm_oracle *oracle, int64_t done);

/* Products of the slice in memory, each factor read like @reading of its side: replaces
 * @product, or adds to it. */
void assay_fp8_gemm_oracle_multiply(struct assay_fp8_gemm_oracle *oracle, int64_t count,
                                    enum assay_fp8_reading a, enum assay_fp8_reading b,
                                    bool is_added, double *product);

/* For each output, the sum over the products of the range in hand of |product| modulo
 * 2^exponent[output]: what truncating each to a multiple of that power loses, and no
 * truncation to a smaller one exceeds. Within 2^-40 of itself and 0 only if it is;
 * infinite and NaN products count as 0. */
void assay_fp8_gemm_oracle_residues(struct assay_fp8_gemm_oracle *oracle,
                                    const int *exponent, double *residue);

/* c of row @i and column @j of the part; 0 without has_c. */
double assay_fp8_gemm_oracle_c(const struct assay_fp8_gemm_oracle *oracle, int64_t i,
                               int64_t j);

/* total, and c + total, where that is finite; high is the value rounded to a double. */
struct assay_pair assay_fp8_gemm_oracle_total(const struct assay_fp8_gemm_oracle *oracle,
                                              int64_t i, int64_t j);
struct assay_pair assay_fp8_gemm_oracle_sum(const struct assay_fp8_gemm_oracle *oracle,
                                            int64_t i, int64_t j);

/* The whole part, row-major in its tile: c + total of each output, NaN and infinities
 * included, rounded to a double. Returns false when memory ran out. */
bool assay_fp8_gemm_oracle_part(const struct assay_fp8_gemm_problem *problem,
                                const struct assay_tensors *tensors, int64_t part,
                                double *value);

#endif
