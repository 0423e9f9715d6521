/* SPDX-License-Identifier: MIT */
/* One request's attention, dense and as prefill, what the bound says of it, and whether a
 * simulated row is within. */
#ifndef ASSAY_TESTS_VERIFY_JUDGED_ATTENTION_H
#define ASSAY_TESTS_VERIFY_JUDGED_ATTENTION_H

#include "tests/verify/simulated_attention.h"
#include "verify/operation/mla/mla_bound.h"

enum { ROWS = 64, PAGES = 5 };

static struct assay_tensors tensors;
static uint16_t q_codes[ROWS * WIDTH], keys_codes[PAGES * 64 * WIDTH];
static int32_t table[PAGES], length[1], indices[PAGES * 64];
static float sinks[ROWS];
static double out[2][ROWS * OUTPUTS], lse[2][ROWS], max_logits[2][ROWS];

static inline double value_of(enum assay_format format, unsigned code)
{
    const uint32_t bits = code << 16;
    const int exponent = code >> 10 & 31, fraction = (int)code & 1023;
    float value;
    memcpy(&value, &bits, sizeof(value));
    if (format != ASSAY_F16) return (double)value;
    const double magnitude =
        exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return code >> 15 ? -magnitude : magnitude;
}

static inline uint16_t code_of(enum assay_format format, double x)
{
    uint32_t bits;
    if (format == ASSAY_F16) {
        if (x == 0 || fabs(x) < 0x1p-14)
            return (uint16_t)((x < 0 ? 0x8000 : 0) | (int)ldexp(fabs(x), 24));
        const int exponent = ilogb(x);
        return (uint16_t)((x < 0 ? 0x8000 : 0) | (exponent + 15) << 10 |
                          ((int)ldexp(fabs(x), 10 - exponent) & 1023));
    }
    const float single = (float)x;
    memcpy(&bits, &single, sizeof(bits));
    return (uint16_t)(bits >> 16);
}

static inline void add_tensor(const char *name, enum assay_format format, int rank,
                              const int64_t *shape, void *data)
{
    struct assay_tensor *const tensor = &tensors.item[tensors.count++];
    *tensor = (struct assay_tensor){
        .name = name, .format = format, .rank = rank, .data = data
    };
    memcpy(tensor->shape, shape, (size_t)rank * sizeof(shape[0]));
    assay_tensor_set_dense(tensor);
}

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

/* Dense: all rows are heads of one token, the keys in order in pages. */
static inline void expect_dense(const struct assay_mla_numerics *numerics,
                                enum assay_format format, float scale)
{
    const struct assay_mla_dense_decode_problem problem = {
        .b = 1,
        .s_q = 1,
        .h_q = ROWS,
        .h_k = 1,
        .pages = PAGES,
        .table_columns = PAGES,
        .num_sm_parts = 66,
        .format = format,
        .softmax_scale = scale,
    };
    struct assay_expected expected[ASSAY_MAX_TENSORS] = { 0 };
    tensors.count = 0;
    add_tensor("q", format, 4, SHAPE(1, 1, ROWS, WIDTH), q_codes);
    add_tensor("k_cache", format, 4, SHAPE(PAGES, 64, 1, WIDTH), keys_codes);
    add_tensor("block_table", ASSAY_I32, 2, SHAPE(1, PAGES), table);
    add_tensor("cache_seqlens", ASSAY_I32, 1, SHAPE(1), length);
    add_tensor("out", format, 4, SHAPE(1, 1, ROWS, OUTPUTS), NULL);
    add_tensor("lse", ASSAY_F32, 3, SHAPE(1, ROWS, 1), NULL);
    expected[4] = (struct assay_expected){ out[0], out[1] };
    expected[5] = (struct assay_expected){ lse[0], lse[1] };
    ck_assert_int_eq(
        assay_mla_dense_decode_expect(&problem, numerics, &tensors, 0, expected),
        ASSAY_RAN);
}

/* Prefill: the same rows and keys, with sinks, never split. */
static inline void expect_prefill(const struct assay_mla_numerics *numerics, float scale)
{
    const struct assay_mla_sparse_prefill_problem problem = {
        .s_q = 1,
        .h_q = ROWS,
        .s_kv = PAGES * 64,
        .d_qk = WIDTH,
        .topk = length[0],
        .kv_stride = WIDTH,
        .has_sink = true,
        .softmax_scale = scale,
    };
    struct assay_expected expected[ASSAY_MAX_TENSORS] = { 0 };
    tensors.count = 0;
    add_tensor("q", ASSAY_BF16, 3, SHAPE(1, ROWS, WIDTH), q_codes);
    add_tensor("kv", ASSAY_BF16, 3, SHAPE(PAGES * 64, 1, WIDTH), keys_codes);
    add_tensor("indices", ASSAY_I32, 3, SHAPE(1, 1, length[0]), indices);
    add_tensor("attn_sink", ASSAY_F32, 1, SHAPE(ROWS), sinks);
    add_tensor("out", ASSAY_BF16, 3, SHAPE(1, ROWS, OUTPUTS), NULL);
    add_tensor("max_logits", ASSAY_F32, 2, SHAPE(1, ROWS), NULL);
    add_tensor("lse", ASSAY_F32, 2, SHAPE(1, ROWS), NULL);
    expected[4] = (struct assay_expected){ out[0], out[1] };
    expected[5] = (struct assay_expected){ max_logits[0], max_logits[1] };
    expected[6] = (struct assay_expected){ lse[0], lse[1] };
    ck_assert_int_eq(
        assay_mla_sparse_prefill_expect(&problem, numerics, &tensors, 0, expected),
        ASSAY_RAN);
}

static inline void load_row(const struct assay_mla_numerics *numerics,
                            enum assay_format format, float scale, int row,
                            bool may_be_split)
{
    simulation.numerics = numerics;
    simulation.format = format;
    simulation.keys = length[0];
    simulation.d_qk = WIDTH;
    simulation.softmax_scale = scale;
    simulation.sink = may_be_split ? -INFINITY : sinks[row];
    simulation.may_be_split = may_be_split;
    for (int d = 0; d < WIDTH; d++) {
        simulation.q[d] = value_of(format, q_codes[row * WIDTH + d]);
        for (int j = 0; j < length[0]; j++)
            simulation.key[j][d] = value_of(format, keys_codes[j * WIDTH + d]);
    }
}

/* --- judging ----------------------------------------------------------------------- */

struct tally { /* largest error over bound */
    double out, lse, max_logit;
    int64_t unclaimed, elements;
};

static inline double ratio(const char *what, double found, double value, double bound)
{
    const double error = fabs(found - value);
    if (isinf(bound)) return 0;
    if (found == value) return 0;
    if (!(error <= bound))
        ck_abort_msg("%s: %a, but %a within %a (error/bound %g); keys %d, direction %d",
                     what, found, value, bound, error / bound, simulation.keys,
                     (int)simulation.direction);
    return error / bound;
}

static inline void judge(struct tally *tally, int row, bool has_max_logits)
{
    const int first = simulation.direction == AGAINST_COLUMN ? simulation.column : 0;
    const int end = simulation.direction == AGAINST_COLUMN ? first + 1 : OUTPUTS;
    for (int d = first; d < end; d++) {
        const int at = row * OUTPUTS + d;
        tally->elements++;
        tally->unclaimed += isinf(out[1][at]) != 0;
        tally->out =
            fmax(tally->out, ratio("out", simulation.out[d], out[0][at], out[1][at]));
    }
    tally->lse = fmax(tally->lse, ratio("lse", simulation.lse, lse[0][row], lse[1][row]));
    if (has_max_logits)
        tally->max_logit =
            fmax(tally->max_logit, ratio("max_logits", simulation.max_logit,
                                         max_logits[0][row], max_logits[1][row]));
}

#endif
