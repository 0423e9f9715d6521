/* SPDX-License-Identifier: MIT */
/* Attention as a softmax in long double over keys in one list, for testing the oracle.
 * One program, one problem at a time. */
#ifndef ASSAY_TESTS_ORACLE_SLOW_ATTENTION_H
#define ASSAY_TESTS_ORACLE_SLOW_ATTENTION_H

#include "ref/oracle/mla_attention.h"
#include "tests/harness.h"

#include <math.h>
#include <string.h>

enum { D_V = 512, MOST_KEYS = 700, MOST_ROWS = 192, CACHE_BYTES = 1 << 21 };

static uint64_t state = 1;

static inline uint32_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 32);
}

static inline int64_t below(int64_t limit)
{
    return (int64_t)(draw() % (uint64_t)limit);
}

static inline double uniform(void)
{
    return (double)draw() * 0x1p-31 - 1;
}

/* --- numbers, decoded here ---------------------------------------------------------- */

static inline uint16_t bf16_code(double x)
{
    const float value = (float)x;
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return (uint16_t)(bits >> 16);
}

static inline double bf16_value(unsigned code)
{
    const uint32_t bits = (uint32_t)code << 16;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return (double)value;
}

static inline double f16_value(unsigned code)
{
    const int exponent = code >> 10 & 31;
    const double sign = code >> 15 ? -1 : 1;
    if (exponent == 31) return code & 1023 ? (double)NAN : sign * (double)INFINITY;
    return exponent ? sign * ldexp(1 + (code & 1023) / 1024.0, exponent - 15)
                    : sign * ldexp(code & 1023, -24);
}

/* --- the slow softmax --------------------------------------------------------------- */

struct slow {
    int keys, d_qk;
    double key[MOST_KEYS][576];
};

static struct slow slow;

struct answer {
    long double out[D_V], magnitude[D_V], total, lse, max_logit;
};

static inline void attend(const double *q, double scale, double sink,
                          struct answer *answer)
{
    static long double weight[MOST_KEYS];
    long double largest = -(long double)INFINITY, total = 0;
    memset(answer, 0, sizeof(*answer));
    for (int j = 0; j < slow.keys; j++) {
        long double score = 0;
        for (int d = 0; d < slow.d_qk; d++)
            score += (long double)q[d] * (long double)slow.key[j][d];
        weight[j] = (long double)scale * score;
        if (weight[j] > largest) largest = weight[j];
    }
    for (int j = 0; j < slow.keys; j++)
        total += weight[j] = expl(weight[j] - largest);
    const long double divisor = slow.keys ? total + expl((long double)sink - largest) : 1;
    for (int j = 0; j < slow.keys; j++)
        for (int d = 0; d < D_V; d++) {
            answer->out[d] += weight[j] * (long double)slow.key[j][d] / divisor;
            answer->magnitude[d] +=
                weight[j] * fabsl((long double)slow.key[j][d]) / divisor;
        }
    answer->total = total;
    answer->max_logit = slow.keys ? largest : -(long double)INFINITY;
    answer->lse = slow.keys ? largest + logl(total) : (long double)INFINITY;
}

/* --- comparison --------------------------------------------------------------------- */

static struct assay_tensors tensors;
static uint8_t cache[2][CACHE_BYTES];
static uint16_t q_codes[8 * MOST_ROWS * 576];
static int32_t lengths[2][64], indices[2][64 * MOST_KEYS];

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

static inline void check_near(double found, long double wanted, long double magnitude,
                              const char *what, int64_t row)
{
    const long double allowed = 0x1p-38L * magnitude;
    if (!(fabsl((long double)found - wanted) <= allowed) && (long double)found != wanted)
        ck_abort_msg("%s of row %d: %a, but %La", what, (int)row, found, wanted);
}

/* Row @i of those in hand. */
static inline void check_row(const struct assay_mla_oracle *oracle, int64_t i,
                             const struct answer *wanted)
{
    const int64_t row = oracle->first_row + i;
    for (int d = 0; d < D_V; d++)
        check_near(assay_mla_oracle_out(oracle, i, d), wanted->out[d],
                   wanted->magnitude[d], "out", row);
    check_near(oracle->row[i].near_total, wanted->total, 0x1p8L * wanted->total,
               "near_total", row); /* within 2^-30 of it */
    const double unit = oracle->part->is_base_two ? 1 / log(2) : 1;
    check_near(assay_mla_oracle_lse(oracle, i), wanted->lse * (long double)unit,
               1 + fabsl(wanted->lse), "lse", row);
    check_near(assay_mla_oracle_max_logit(oracle, i),
               wanted->max_logit * (long double)unit, 1 + fabsl(wanted->max_logit),
               "max_logit", row);
}

static inline void fill_bf16(uint16_t *codes, int64_t count, double size)
{
    for (int64_t i = 0; i < count; i++)
        codes[i] = bf16_code(size * uniform() * (below(8) ? 1 : 0.01));
}

#endif
