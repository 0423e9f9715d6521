/* SPDX-License-Identifier: MIT */
/* Powers of two that pass through attention without a trace, and where they do. */
#include "ref/format/minifloat.h"
#include "verify/operation/mla/mla_properties.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

bool assay_mla_scale_code(const struct assay_mla_scaling *scaling, uint32_t *code)
{
    const struct assay_minifloat *const format = assay_minifloat(scaling->format);
    const uint32_t all = (1u << format->exponent_bits) - 1;
    const int field = (int)(*code >> format->mantissa_bits & all);
    const uint32_t magnitude =
        *code & ((1u << (format->exponent_bits + format->mantissa_bits)) - 1);
    const int exponent = field - format->bias, moved = field + scaling->steps;
    if (magnitude == 0 && format->specials != ASSAY_SPECIALS_SCALE) return true;
    if (field == 0 || field == (int)all || moved < 1 || moved >= (int)all) return false;
    if (exponent < scaling->lowest || exponent > scaling->highest) return false;
    *code += (uint32_t)scaling->steps << format->mantissa_bits;
    return true;
}

bool assay_mla_scale_vector(const struct assay_mla_scaling *scaling, const uint16_t *from,
                            uint16_t *to, int64_t count, double *value)
{
    const struct assay_minifloat *const format = assay_minifloat(scaling->format);
    for (int64_t i = 0; i < count; i++) {
        uint32_t code = from[i];
        if (value) value[i] = assay_minifloat_decode(format, code);
        if (!assay_mla_scale_code(scaling, &code)) return false;
        to[i] = (uint16_t)code;
    }
    return true;
}

bool assay_mla_scores_open(struct assay_mla_scores *scores, int64_t rows, int64_t d_qk)
{
    *scores = (struct assay_mla_scores){
        .query = malloc((size_t)(rows * d_qk) * sizeof(double)),
        .rows = rows,
        .d_qk = d_qk,
    };
    return scores->query != NULL;
}

void assay_mla_scores_close(struct assay_mla_scores *scores)
{
    free(scores->query);
}

void assay_mla_scores_add(struct assay_mla_scores *scores, int64_t first, int64_t count,
                          const double *key)
{
    assert(first >= 0 && first + count <= scores->rows && scores->d_qk % 4 == 0);
    for (int64_t row = first; row < first + count; row++) {
        const double *const query = scores->query + row * scores->d_qk;
        double sum[4] = { 0 };
        for (int64_t d = 0; d < scores->d_qk; d += 4)
            for (int i = 0; i < 4; i++)
                sum[i] += query[d + i] * key[d + i];
        const double score = fabs(sum[0] + sum[1] + sum[2] + sum[3]);
        if (!(score <= scores->largest)) scores->largest = score;
    }
}

bool assay_mla_are_weights_normal(const struct assay_mla_scores *scores,
                                  float softmax_scale)
{
    const double log2_e = 1.4426950408889634, most = 96;
    return 2 * fabs((double)softmax_scale) * log2_e * scores->largest <= most;
}

bool assay_mla_double_queries(const struct assay_property_run *first,
                              const struct assay_property_run *second, int64_t begin,
                              struct assay_mla_scores *scores)
{
    const struct assay_tensor *const from = assay_tensors_find(first->tensors, "q");
    const struct assay_tensor *const to = assay_tensors_find(second->tensors, "q");
    const struct assay_mla_scaling doubled = { from->format, 1, -ASSAY_MLA_FACTOR_RANGE,
                                               ASSAY_MLA_FACTOR_RANGE };
    const int64_t d_qk = from->shape[from->rank - 1];
    for (int64_t at = begin; at < assay_tensor_elements(from); at += d_qk)
        if (!assay_mla_scale_vector(&doubled, (const uint16_t *)from->data + at,
                                    (uint16_t *)to->data + at, d_qk - begin,
                                    scores ? scores->query + at : NULL))
            return false;
    return true;
}

bool assay_mla_scaled_output(enum assay_format format, int steps, uint32_t *code)
{
    /* One binade away from subnormals and infinity, whatever rounding does. */
    const struct assay_minifloat *const row = assay_minifloat(format);
    const struct assay_mla_scaling scaling = {
        format, steps, 3 - row->bias, (1 << row->exponent_bits) - 4 - row->bias
    };
    const bool is_zero = *code << (32 - row->exponent_bits - row->mantissa_bits) == 0;
    return !(is_zero && steps > 0) && assay_mla_scale_code(&scaling, code);
}
