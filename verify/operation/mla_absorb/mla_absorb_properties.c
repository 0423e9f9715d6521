/* SPDX-License-Identifier: MIT */
/* Relations of mla_absorb, all to the bit. None scales by two: a weight of the softmax
 * may be so small that its products leave the normal range in one run only. Zeros are
 * left out where a kernel may add a zero of either sign. */
#include "verify/operation/mla_absorb/mla_absorb_properties.h"

#include "ref/format/minifloat.h"
#include "verify/operation/mla_absorb/mla_absorb.h"

#include <math.h>

static const struct assay_mla_absorb_problem *
problem_of(const struct assay_property_run *run)
{
    return &((const struct assay_mla_absorb_case *)run->problem)->problem;
}

static void copy_inputs(const struct assay_property_run *first,
                        const struct assay_property_run *second)
{
    for (int i = 0; i < ASSAY_MLA_ABSORB_O; i++) {
        const struct assay_tensor *const from = &first->tensors->item[i];
        for (int64_t e = 0; e < assay_tensor_elements(from); e++)
            assay_tensor_set_bits(&second->tensors->item[i], e,
                                  assay_tensor_bits(from, e));
    }
}

static double value_at(const struct assay_tensor *tensor, int64_t element)
{
    return assay_minifloat_decode(assay_minifloat(tensor->format),
                                  assay_tensor_bits(tensor, element));
}

/* The sign is the highest bit of the format's bytes. */
static uint32_t negated(const struct assay_tensor *tensor, int64_t element)
{
    const uint32_t bits = assay_tensor_bits(tensor, element);
    const int places = 8 * (int)assay_format_bytes(tensor->format);
    return isnan(value_at(tensor, element)) ? bits : bits ^ UINT32_C(1) << (places - 1);
}

static void negate(const struct assay_tensor *tensor, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        assay_tensor_set_bits(tensor, i, negated(tensor, i));
}

static bool negate_values(const struct assay_property_run *first,
                          const struct assay_property_run *second)
{
    const struct assay_tensor *const w_uv = &second->tensors->item[ASSAY_MLA_ABSORB_W_UV];
    copy_inputs(first, second);
    negate(w_uv, 0, assay_tensor_elements(w_uv));
    return true;
}

static bool expect_negated(const struct assay_property_run *first,
                           const struct assay_property_run *second, int output,
                           int64_t element, uint32_t *bits)
{
    (void)second;
    const struct assay_tensor *const o = &first->tensors->item[output];
    const double value = value_at(o, element);
    *bits = negated(o, element);
    return !isnan(value) && value != 0;
}

/* The last token is seen by the last query only. */
static bool change_last(const struct assay_property_run *first,
                        const struct assay_property_run *second)
{
    const struct assay_mla_absorb_problem *const p = problem_of(first);
    copy_inputs(first, second);
    negate(&second->tensors->item[ASSAY_MLA_ABSORB_HIDDEN], (p->n - 1) * p->d,
           p->n * p->d);
    return p->s_q > 1;
}

static bool expect_earlier(const struct assay_property_run *first,
                           const struct assay_property_run *second, int output,
                           int64_t element, uint32_t *bits)
{
    (void)second;
    const struct assay_mla_absorb_problem *const p = problem_of(first);
    const struct assay_tensor *const o = &first->tensors->item[output];
    *bits = assay_tensor_bits(o, element);
    return element / (p->h_q * p->d_h) < p->s_q - 1 && value_at(o, element) != 0;
}

static bool reverse_heads(const struct assay_property_run *first,
                          const struct assay_property_run *second)
{
    static const int per_head[] = { ASSAY_MLA_ABSORB_W_UK, ASSAY_MLA_ABSORB_W_UV,
                                    ASSAY_MLA_ABSORB_W_UQ, ASSAY_MLA_ABSORB_W_QR };
    const int64_t heads = problem_of(first)->h_q;
    copy_inputs(first, second);
    for (int i = 0; i < 4; i++) {
        const struct assay_tensor *const from = &first->tensors->item[per_head[i]];
        const int64_t each = from->shape[1] * from->shape[2];
        for (int64_t e = 0; e < heads * each; e++)
            assay_tensor_set_bits(&second->tensors->item[per_head[i]],
                                  (heads - 1 - e / each) * each + e % each,
                                  assay_tensor_bits(from, e));
    }
    return heads > 1;
}

static bool expect_reversed(const struct assay_property_run *first,
                            const struct assay_property_run *second, int output,
                            int64_t element, uint32_t *bits)
{
    (void)second;
    const struct assay_mla_absorb_problem *const p = problem_of(first);
    const int64_t row = element / p->d_h, head = row % p->h_q;
    const int64_t other = row - head + p->h_q - 1 - head;
    *bits = assay_tensor_bits(&first->tensors->item[output],
                              other * p->d_h + element % p->d_h);
    return true;
}

static bool halve_queries(const struct assay_property_run *first,
                          struct assay_case *second)
{
    assay_case_set(second, "s_q", problem_of(first)->s_q / 2);
    return problem_of(first)->s_q > 1;
}

static bool take_inputs(const struct assay_property_run *first,
                        const struct assay_property_run *second)
{
    copy_inputs(first, second);
    return true;
}

static bool expect_taken(const struct assay_property_run *first,
                         const struct assay_property_run *second, int output,
                         int64_t element, uint32_t *bits)
{
    const struct assay_mla_absorb_problem *const p = problem_of(first);
    const int64_t left_out = p->s_q - problem_of(second)->s_q;
    *bits = assay_tensor_bits(&first->tensors->item[output],
                              element + left_out * p->h_q * p->d_h);
    return true;
}

const struct assay_property assay_mla_absorb_properties[] = {
    { "negation", "signs of w_uv flipped: those of o", ASSAY_PROPERTY_MATHEMATICS, NULL,
      negate_values, expect_negated },
    { "last-token", "another last token: the same o of all queries but the last",
      ASSAY_PROPERTY_MATHEMATICS, NULL, change_last, expect_earlier },
    { "heads", "heads reversed: those of o reversed", ASSAY_PROPERTY_BATCH, NULL,
      reverse_heads, expect_reversed },
    { "fewer-queries", "the last half of the queries alone: the same bits",
      ASSAY_PROPERTY_BATCH, halve_queries, take_inputs, expect_taken },
    { NULL, NULL, ASSAY_PROPERTY_MATHEMATICS, NULL, NULL, NULL },
};
