/* SPDX-License-Identifier: MIT */
/* What relations between two attention runs are made of: inputs copied, rotated, negated
 * and scaled by powers of two, plans written anew, and the bits that follow. */
#ifndef ASSAY_VERIFY_OPERATION_MLA_PROPERTIES_H
#define ASSAY_VERIFY_OPERATION_MLA_PROPERTIES_H

#include "verify/operation/mla/mla_data.h"

/* Copies every input of the second run that the first has in the same shape. False for
 * unsafe cases, whose inputs promise nothing. */
bool assay_mla_copy_inputs(const struct assay_property_run *first,
                           const struct assay_property_run *second);

/* Integer @element of an i32 tensor by name; the tensor has to be there (asserted). */
int32_t assay_mla_integer(const struct assay_property_run *run, const char *name,
                          int64_t element);
void assay_mla_set_integer(const struct assay_property_run *run, const char *name,
                           int64_t element, int32_t value);

/* Element @column of values that are all one vector: a small integer that every format of
 * keys has. */
uint32_t assay_mla_constant_value(int column, enum assay_format format);

/* --- neighbours -------------------------------------------------------------------- */

/* Negates the elements of rows of @name in the second run that have an odd index in the
 * first dimension; the others are as they were. No tensor, no change. */
void assay_mla_negate_odd_entries(const struct assay_property_run *first,
                                  const struct assay_property_run *second,
                                  const char *name);
/* The same for vectors along the last dimension whose indices in the two before add up to
 * an odd number: query rows, by token and head. */
void assay_mla_negate_odd_rows(const struct assay_property_run *first,
                               const struct assay_property_run *second, const char *name);
/* Row i of the second run is row i + 1 of the first, the last its row 0. */
void assay_mla_rotate_entries(const struct assay_property_run *first,
                              const struct assay_property_run *second, const char *name);
/* The same for a list of the case, unless one value serves all. False: no room. */
bool assay_mla_rotate_list(struct assay_case *the_case, const char *key);

/* --- powers of two ----------------------------------------------------------------- */

/* Codes times 2^steps, steps being 1 or -1. A code has to be zero or a normal number from
 * 2^lowest to below 2^(highest + 1), and normal afterwards. */
struct assay_mla_scaling {
    enum assay_format format;
    int steps, lowest, highest;
};
bool assay_mla_scale_code(const struct assay_mla_scaling *scaling, uint32_t *code);
/* Writes @count scaled codes of bf16 or f16 to @to, and the elements of @from to @value
 * unless that is NULL. False if one was out of range. */
bool assay_mla_scale_vector(const struct assay_mla_scaling *scaling, const uint16_t *from,
                            uint16_t *to, int64_t count, double *value);

/* Ranges of what is scaled: keys that are values as well, and mere factors of a score. */
enum { ASSAY_MLA_VALUE_RANGE = 28, ASSAY_MLA_FACTOR_RANGE = 60 };

/* Whether weights may be so small that a product with a value could leave f32's normal
 * range: 2^-96 is not, and a weight is at least 2^-(2 * |largest score in log 2|). */
struct assay_mla_scores {
    double *query; /* rows of d_qk elements */
    int64_t rows, d_qk;
    double largest; /* |q * k| so far; NaN once there was one */
};
/* False when memory ran out. To be closed in any case. */
bool assay_mla_scores_open(struct assay_mla_scores *scores, int64_t rows, int64_t d_qk);
/* Takes @count queries from row @first on to a key. */
void assay_mla_scores_add(struct assay_mla_scores *scores, int64_t first, int64_t count,
                          const double *key);
bool assay_mla_are_weights_normal(const struct assay_mla_scores *scores,
                                  float softmax_scale);
void assay_mla_scores_close(struct assay_mla_scores *scores);

/* Doubles elements from @begin on of all of q, which goes to @scores unless that is
 * NULL. False if one was out of range. */
bool assay_mla_double_queries(const struct assay_property_run *first,
                              const struct assay_property_run *second, int64_t begin,
                              struct assay_mla_scores *scores);

/* --- bits -------------------------------------------------------------------------- */

/* Expect hooks. The element has the bits of the first run's ... */
bool assay_mla_expect_same(const struct assay_property_run *first,
                           const struct assay_property_run *second, int output,
                           int64_t element, uint32_t *bits);
/* ... unless they are those of -0: a masked block of zeros makes +0 of it. */
bool assay_mla_expect_padded(const struct assay_property_run *first,
                             const struct assay_property_run *second, int output,
                             int64_t element, uint32_t *bits);
/* ... times 2^-1 if the output is called out; nothing near the ends of its range. */
bool assay_mla_expect_half(const struct assay_property_run *first,
                           const struct assay_property_run *second, int output,
                           int64_t element, uint32_t *bits);
/* ... in entries of even index of the first dimension. */
bool assay_mla_expect_even_entries(const struct assay_property_run *first,
                                   const struct assay_property_run *second, int output,
                                   int64_t element, uint32_t *bits);
/* ... in rows whose token and head add up to an even number; out is
 * [..., token, head, 512], lse [request, head, token], others [token, head]. */
bool assay_mla_expect_even_rows(const struct assay_property_run *first,
                                const struct assay_property_run *second, int output,
                                int64_t element, uint32_t *bits);
/* ... rotated as by assay_mla_rotate_entries. */
bool assay_mla_expect_rotated(const struct assay_property_run *first,
                              const struct assay_property_run *second, int output,
                              int64_t element, uint32_t *bits);

/* The code times 2^steps; false near the ends of the format's range, to which a zero
 * belongs that is to be doubled. */
bool assay_mla_scaled_output(enum assay_format format, int steps, uint32_t *code);

/* --- memory that nobody may look at ------------------------------------------------ */

/* A transform: what the operation's used hook leaves out holds other finite values.
 * False if it leaves out nothing. */
bool assay_mla_change_unused(const struct assay_property_run *first,
                             const struct assay_property_run *second);

/* Used hook of tile_scheduler_metadata: all but the pad and an idle part's fields. */
void assay_mla_used_metadata(const struct assay_tensor *metadata, int64_t b,
                             uint8_t *is_used);

/* --- plans ------------------------------------------------------------------------- */

/* Derive hooks: the case under another plan. False if it has that one already. */
bool assay_mla_derive_scheduler(const struct assay_property_run *first,
                                struct assay_case *second);
bool assay_mla_derive_whole(const struct assay_property_run *first,
                            struct assay_case *second);
bool assay_mla_derive_blocks(const struct assay_property_run *first,
                             struct assay_case *second);
bool assay_mla_derive_random(const struct assay_property_run *first,
                             struct assay_case *second);

/* Data of kind exact, whose promise goes with the keys of the case, become plain ones.
 * False if the case does not bind. */
bool assay_mla_is_derived(struct assay_case *second);

/* Fills in the plan that the second case asks for. */
void assay_mla_write_plan(const struct assay_mla_plan_problem *plan,
                          const struct assay_property_run *second);

/* Whether a request of the first run and one of the second, of equal lengths, are split
 * at the same blocks; @is_single: there is one split, which is all of it. */
bool assay_mla_has_same_splits(const struct assay_mla_plan_problem *plan,
                               const struct assay_property_run *first,
                               int64_t first_request,
                               const struct assay_property_run *second,
                               int64_t second_request);
bool assay_mla_is_single(const struct assay_property_run *run, int64_t request);

#endif
