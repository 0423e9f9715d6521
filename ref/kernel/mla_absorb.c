/* SPDX-License-Identifier: MIT */
#include "ref/kernel/mla_absorb.h"

#include "ref/format/minifloat.h"
#include "ref/unit/dot_tile.h"
#include "ref/unit/scalar.h"
#include "ref/unit/special_function.h"

#include <stdlib.h>

enum {
    TILE_ROWS = ASSAY_DOT_TILE_MAX_ROWS,
    TILE_COLUMNS = ASSAY_DOT_TILE_MAX_COLUMNS,
};

/* Row-major. One with codes is bf16; values, where there are any, are the same. */
struct matrix {
    int64_t rows, columns;
    float *value;
    uint16_t *code;
    bool is_bf16;
};

enum intermediate { C_KV, K_R, C_Q, Q_C, Q_R, K_C, V, Q_LATENT, P, O_LATENT, O, COUNT };

struct work { /* on one head */
    const struct assay_mla_absorb_problem *problem;
    const struct assay_mla_absorb_numerics *numerics;
    const struct assay_tensors *tensors;
    int64_t head;
    struct matrix matrix[COUNT];
};

/* One side of a product, read with strides to the next row and to the next term. */
struct side {
    const struct matrix *matrix;
    int64_t first, stride[2];
};

struct product { /* accumulator[row, column] += sum over terms of a * b */
    struct side a, b;
    int64_t rows, columns, terms;
    float *accumulator; /* row-major */
};

/* --- matrices --------------------------------------------------------------------- */

static bool open_matrix(struct matrix *matrix, int64_t rows, int64_t columns)
{
    const size_t elements = (size_t)rows * (size_t)columns;
    *matrix = (struct matrix){ .rows = rows, .columns = columns };
    matrix->value = calloc(elements, sizeof(*matrix->value));
    matrix->code = calloc(elements, sizeof(*matrix->code));
    return matrix->value && matrix->code;
}

static float value_of(uint16_t code)
{
    return assay_f32_from_bits((uint32_t)code << 16);
}

static uint16_t code_of(float value)
{
    return (uint16_t)assay_minifloat_encode_f32(assay_minifloat(ASSAY_BF16), value,
                                                ASSAY_OVERFLOW_SPECIAL);
}

static void store(struct work *work, enum intermediate name,
                  enum assay_mla_absorb_store as)
{
    struct matrix *const matrix = &work->matrix[name];
    matrix->is_bf16 = work->numerics->stored[as] == ASSAY_MLA_ABSORB_BF16;
    for (int64_t i = 0; matrix->is_bf16 && i < matrix->rows * matrix->columns; i++) {
        matrix->code[i] = code_of(matrix->value[i]);
        matrix->value[i] = value_of(matrix->code[i]);
    }
}

/* Rows [first, first + rows) of an input with all but its last dimension counted as
 * rows. */
static struct matrix input(const struct work *work, int place, int64_t first,
                           int64_t rows)
{
    const struct assay_tensor *const tensor = &work->tensors->item[place];
    const int64_t columns = tensor->shape[tensor->rank - 1];
    return (struct matrix){ .rows = rows,
                            .columns = columns,
                            .code = (uint16_t *)tensor->data + first * columns,
                            .is_bf16 = true };
}

/* The weight's rows that belong to the head in hand. */
static struct matrix head_weight(const struct work *work, int place)
{
    const int64_t rows = work->tensors->item[place].shape[1];
    return input(work, place, work->head * rows, rows);
}

/* --- products --------------------------------------------------------------------- */

static float element(const struct matrix *matrix, int64_t index)
{
    return matrix->value ? matrix->value[index] : value_of(matrix->code[index]);
}

static void multiply_fma(const struct product *product)
{
    const struct side *const a = &product->a, *const b = &product->b;
    for (int64_t i = 0; i < product->rows; i++)
        for (int64_t j = 0; j < product->columns; j++) {
            const int64_t a0 = a->first + i * a->stride[0];
            const int64_t b0 = b->first + j * b->stride[0];
            float *const sum = &product->accumulator[i * product->columns + j];
            for (int64_t k = 0; k < product->terms; k++)
                *sum = assay_f32_fma(element(a->matrix, a0 + k * a->stride[1]),
                                     element(b->matrix, b0 + k * b->stride[1]), *sum);
        }
}

static void multiply_tile(const struct product *product, int64_t i0, int64_t j0)
{
    uint32_t bits[TILE_ROWS * TILE_COLUMNS];
    const struct side *const a = &product->a, *const b = &product->b;
    const int64_t rows = product->rows - i0, columns = product->columns - j0;
    const struct assay_dot_tile tile = {
        .profile = assay_dot_add_find("hopper-bf16"),
        .format_a = ASSAY_BF16,
        .format_b = ASSAY_BF16,
        .rows = (int)(rows < TILE_ROWS ? rows : TILE_ROWS),
        .columns = (int)(columns < TILE_COLUMNS ? columns : TILE_COLUMNS),
        .k = product->terms,
        .a = a->matrix->code + a->first + i0 * a->stride[0],
        .b = b->matrix->code + b->first + j0 * b->stride[0],
        .a_stride = { a->stride[0], a->stride[1] },
        .b_stride = { b->stride[0], b->stride[1] },
        .accumulator = bits,
        .accumulator_stride = TILE_COLUMNS,
    };
    float *const corner = product->accumulator + i0 * product->columns + j0;
    for (int i = 0; i < tile.rows; i++)
        for (int j = 0; j < tile.columns; j++)
            bits[i * TILE_COLUMNS + j] = assay_f32_bits(corner[i * product->columns + j]);
    assay_dot_tile(&tile);
    for (int i = 0; i < tile.rows; i++)
        for (int j = 0; j < tile.columns; j++)
            corner[i * product->columns + j] =
                assay_f32_from_bits(bits[i * TILE_COLUMNS + j]);
}

static void multiply(const struct work *work, const struct product *product)
{
    const bool has_unit = product->a.matrix->is_bf16 && product->b.matrix->is_bf16;
    if (work->numerics->unit == ASSAY_MLA_ABSORB_FMA || !has_unit) {
        multiply_fma(product);
        return;
    }
    for (int64_t i = 0; i < product->rows; i += TILE_ROWS)
        for (int64_t j = 0; j < product->columns; j += TILE_COLUMNS)
            multiply_tile(product, i, j);
}

/* @into += a b^T, row by row. */
static void multiply_rows(struct work *work, const struct matrix *a,
                          const struct matrix *b, enum intermediate into)
{
    multiply(work, &(struct product){
                       .a = { a, 0, { a->columns, 1 } },
                       .b = { b, 0, { b->columns, 1 } },
                       .rows = a->rows,
                       .columns = b->rows,
                       .terms = a->columns,
                       .accumulator = work->matrix[into].value,
                   });
}

/* @into += a b */
static void multiply_columns(struct work *work, const struct matrix *a,
                             const struct matrix *b, enum intermediate into)
{
    multiply(work, &(struct product){
                       .a = { a, 0, { a->columns, 1 } },
                       .b = { b, 0, { 1, b->columns } },
                       .rows = a->rows,
                       .columns = b->columns,
                       .terms = b->rows,
                       .accumulator = work->matrix[into].value,
                   });
}

/* --- keys and queries ------------------------------------------------------------- */

void assay_mla_absorb_rotate(float *x, const float *cosine, const float *sine,
                             int64_t pairs)
{
    for (int64_t i = 0; i < pairs; i++) {
        const float left = x[2 * i], right = x[2 * i + 1];
        const float minus = -assay_f32_multiply(right, sine[i]);
        const float plus = assay_f32_multiply(right, cosine[i]);
        x[2 * i] = assay_f32_fma(left, cosine[i], minus);
        x[2 * i + 1] = assay_f32_fma(left, sine[i], plus);
    }
}

/* Row 0 is at position @position. */
static void rotate(struct work *work, enum intermediate name, int64_t position)
{
    const float *const cosine = work->tensors->item[ASSAY_MLA_ABSORB_COS].data;
    const float *const sine = work->tensors->item[ASSAY_MLA_ABSORB_SIN].data;
    const struct matrix *const matrix = &work->matrix[name];
    const int64_t pairs = matrix->columns / 2;
    store(work, name, ASSAY_MLA_ABSORB_ROTARY);
    for (int64_t i = 0; i < matrix->rows; i++)
        work->numerics->stage.rotate(matrix->value + i * matrix->columns,
                                     cosine + (position + i) * pairs,
                                     sine + (position + i) * pairs, pairs);
}

static void make_keys(struct work *work)
{
    const struct matrix hidden =
        input(work, ASSAY_MLA_ABSORB_HIDDEN, 0, work->problem->n);
    const struct matrix w_dkv =
        input(work, ASSAY_MLA_ABSORB_W_DKV, 0, work->problem->d_c);
    const struct matrix w_kr = input(work, ASSAY_MLA_ABSORB_W_KR, 0, work->problem->d_r);
    multiply_rows(work, &hidden, &w_dkv, C_KV);
    store(work, C_KV, ASSAY_MLA_ABSORB_C_KV);
    multiply_rows(work, &hidden, &w_kr, K_R);
    rotate(work, K_R, 0);
    store(work, K_R, ASSAY_MLA_ABSORB_K);
}

static void make_queries(struct work *work)
{
    const int64_t s_q = work->problem->s_q, first = work->problem->n - s_q;
    const struct matrix hidden = input(work, ASSAY_MLA_ABSORB_HIDDEN, first, s_q);
    const struct matrix w_dq =
        input(work, ASSAY_MLA_ABSORB_W_DQ, 0, work->problem->d_c_q);
    const struct matrix w_uq = head_weight(work, ASSAY_MLA_ABSORB_W_UQ);
    const struct matrix w_qr = head_weight(work, ASSAY_MLA_ABSORB_W_QR);
    multiply_rows(work, &hidden, &w_dq, C_Q);
    store(work, C_Q, ASSAY_MLA_ABSORB_C_Q);
    multiply_rows(work, &work->matrix[C_Q], &w_uq, Q_C);
    store(work, Q_C, ASSAY_MLA_ABSORB_Q);
    multiply_rows(work, &work->matrix[C_Q], &w_qr, Q_R);
    rotate(work, Q_R, first);
    store(work, Q_R, ASSAY_MLA_ABSORB_Q);
}

static void score_expanded(struct work *work)
{
    const struct matrix w_uk = head_weight(work, ASSAY_MLA_ABSORB_W_UK);
    const struct matrix w_uv = head_weight(work, ASSAY_MLA_ABSORB_W_UV);
    multiply_rows(work, &work->matrix[C_KV], &w_uk, K_C);
    store(work, K_C, ASSAY_MLA_ABSORB_K);
    multiply_rows(work, &work->matrix[C_KV], &w_uv, V);
    store(work, V, ASSAY_MLA_ABSORB_V);
    multiply_rows(work, &work->matrix[Q_C], &work->matrix[K_C], P);
}

static void score_absorbed(struct work *work)
{
    const struct matrix w_uk = head_weight(work, ASSAY_MLA_ABSORB_W_UK);
    multiply_columns(work, &work->matrix[Q_C], &w_uk, Q_LATENT);
    store(work, Q_LATENT, ASSAY_MLA_ABSORB_Q_LATENT);
    multiply_rows(work, &work->matrix[Q_LATENT], &work->matrix[C_KV], P);
}

/* --- attention -------------------------------------------------------------------- */

static float exponential(float x)
{
    return assay_f32_from_bits(assay_ex2_approx_ftz(assay_f32_bits(x)));
}

static float reciprocal(float x)
{
    return assay_f32_from_bits(assay_rcp_approx_ftz(assay_f32_bits(x)));
}

float assay_mla_absorb_weigh(float *score, int64_t keys, float scale)
{
    float largest = score[0], sum = 0;
    for (int64_t j = 1; j < keys; j++)
        largest = assay_f32_maximum(largest, score[j]);
    const float shift = assay_f32_multiply(largest, scale);
    for (int64_t j = 0; j < keys; j++) {
        score[j] = exponential(assay_f32_fma(score[j], scale, -shift));
        sum = assay_f32_add(sum, score[j]);
    }
    return sum;
}

/* Query @t: row t of @into = sum over its keys of p * value / sum of p. */
static void attend(struct work *work, int64_t t, const struct matrix *value,
                   enum intermediate into, float sum)
{
    float *const row = work->matrix[into].value + t * value->columns;
    multiply(work, &(struct product){
                       .a = { &work->matrix[P], t * work->problem->n, { 0, 1 } },
                       .b = { value, 0, { 1, value->columns } },
                       .rows = 1,
                       .columns = value->columns,
                       .terms = assay_mla_absorb_position(work->problem, t) + 1,
                       .accumulator = row,
                   });
    const float factor = reciprocal(sum);
    for (int64_t i = 0; i < value->columns; i++)
        row[i] = assay_f32_multiply(row[i], factor);
}

static void attend_all(struct work *work, const struct matrix *value,
                       enum intermediate into, float *sum)
{
    const struct assay_mla_absorb_problem *const problem = work->problem;
    const float scale =
        (float)((double)problem->softmax_scale * 0x1.71547652b82fep0); /* log2 e */
    for (int64_t t = 0; t < problem->s_q; t++)
        sum[t] =
            work->numerics->stage.weigh(work->matrix[P].value + t * problem->n,
                                        assay_mla_absorb_position(problem, t) + 1, scale);
    store(work, P, ASSAY_MLA_ABSORB_P);
    for (int64_t t = 0; t < problem->s_q; t++)
        attend(work, t, value, into, sum[t]);
}

/* --- the head --------------------------------------------------------------------- */

static void write_out(const struct work *work)
{
    const struct assay_mla_absorb_problem *const problem = work->problem;
    const struct assay_tensor *const o = &work->tensors->item[ASSAY_MLA_ABSORB_O];
    const struct matrix *const matrix = &work->matrix[O];
    for (int64_t t = 0; t < problem->s_q; t++)
        for (int64_t i = 0; i < problem->d_h; i++) {
            const float value = matrix->value[t * problem->d_h + i];
            assay_tensor_set_bits(o, (t * problem->h_q + work->head) * problem->d_h + i,
                                  problem->out == ASSAY_BF16 ? code_of(value)
                                                             : assay_f32_bits(value));
        }
}

static void compute(struct work *work, float *sum)
{
    const bool is_absorbed = work->problem->form == ASSAY_MLA_ABSORBED;
    make_keys(work);
    make_queries(work);
    if (is_absorbed)
        score_absorbed(work);
    else
        score_expanded(work);
    multiply_rows(work, &work->matrix[Q_R], &work->matrix[K_R], P);
    if (is_absorbed) {
        const struct matrix w_uv = head_weight(work, ASSAY_MLA_ABSORB_W_UV);
        attend_all(work, &work->matrix[C_KV], O_LATENT, sum);
        store(work, O_LATENT, ASSAY_MLA_ABSORB_O_LATENT);
        multiply_rows(work, &work->matrix[O_LATENT], &w_uv, O);
    } else {
        attend_all(work, &work->matrix[V], O, sum);
    }
    write_out(work);
}

static bool open_matrices(struct work *work)
{
    const struct assay_mla_absorb_problem *const p = work->problem;
    const int64_t shape[COUNT][2] = {
        [C_KV] = { p->n, p->d_c },    [K_R] = { p->n, p->d_r },
        [C_Q] = { p->s_q, p->d_c_q }, [Q_C] = { p->s_q, p->d_h },
        [Q_R] = { p->s_q, p->d_r },   [K_C] = { p->n, p->d_h },
        [V] = { p->n, p->d_h },       [Q_LATENT] = { p->s_q, p->d_c },
        [P] = { p->s_q, p->n },       [O_LATENT] = { p->s_q, p->d_c },
        [O] = { p->s_q, p->d_h },
    };
    bool has_memory = true;
    for (int i = 0; i < COUNT; i++)
        has_memory &= open_matrix(&work->matrix[i], shape[i][0], shape[i][1]);
    return has_memory;
}

bool assay_mla_absorb_model(const struct assay_mla_absorb_problem *problem,
                            const struct assay_mla_absorb_numerics *numerics,
                            const struct assay_tensors *tensors, int64_t head)
{
    struct work work = { problem, numerics, tensors, head, { { 0 } } };
    float *const sum = calloc((size_t)problem->s_q, sizeof(*sum));
    const bool has_memory = open_matrices(&work) && sum;
    if (has_memory) compute(&work, sum);
    for (int i = 0; i < COUNT; i++) {
        free(work.matrix[i].value);
        free(work.matrix[i].code);
    }
    free(sum);
    return has_memory;
}
