/* SPDX-License-Identifier: MIT */
/* The attention oracle against a softmax in long double, over pages and vectors that are
 * placed by hand here. */
#include "tests/oracle/slow_attention.h"

#include <cblas.h>

/* --- dense -------------------------------------------------------------------------- */

enum { PAGES = 9, COLUMNS = 5 };

static int32_t table[5][256];

static const struct assay_mla_dense_decode_problem dense_problem = {
    .b = 5,
    .s_q = 3,
    .h_q = 70,
    .h_k = 2,
    .pages = PAGES,
    .table_columns = COLUMNS,
    .num_sm_parts = 7,
    .format = ASSAY_BF16,
    .is_causal = true,
    .softmax_scale = 0.37f,
};

/* Position @position of @request in the cache; -1 below no length. */
static uint16_t *dense_key(int64_t request, int64_t position, int64_t head)
{
    const int64_t page = table[request][position / 64];
    return (uint16_t *)cache[0] + ((page * 64 + position % 64) * 2 + head) * 576;
}

static void shape_dense(const struct assay_mla_dense_decode_problem *problem)
{
    tensors.count = 0;
    add_tensor("q", problem->format, 4, SHAPE(5, 3, 70, 576), q_codes);
    add_tensor("k_cache", problem->format, 4, SHAPE(PAGES, 64, 2, 576), cache[0]);
    add_tensor("block_table", ASSAY_I32, 2, SHAPE(5, 256), table);
    add_tensor("cache_seqlens", ASSAY_I32, 1, SHAPE(5), lengths[0]);
    static const int32_t some[] = { 130, 0, 2, 64, 65 };
    static const int32_t pages[5][3] = {
        { 7, 2, 5 }, { -1, -1, -1 }, { 8, -1, -1 }, { 3, -1, -1 }, { 0, 6, -1 }
    };
    memset(cache[0], 0xff, sizeof(cache[0])); /* NaN */
    memset(table, 0x7f, sizeof(table));
    for (int i = 0; i < 5; i++) {
        lengths[0][i] = some[i];
        memcpy(table[i], pages[i], sizeof(pages[i]));
        for (int64_t j = 0; j < some[i]; j++)
            for (int64_t head = 0; head < 2; head++)
                fill_bf16(dense_key(i, j, head), 576, 1);
    }
    fill_bf16(q_codes, 5 * 3 * 70 * 576, 1);
    if (problem->format != ASSAY_F16) return;
    for (int64_t i = 0; i < 5 * 3 * 70 * 576; i++)
        q_codes[i] = (uint16_t)(draw() & 0xbcff);
    for (int i = 0; i < 5; i++)
        for (int64_t j = 0; j < some[i]; j++)
            for (int d = 0; d < 2 * 576; d++)
                dense_key(i, j, 0)[d] = (uint16_t)(draw() & 0xbfff);
}

static double value_of(enum assay_format format, unsigned code)
{
    return format == ASSAY_F16 ? f16_value(code) : bf16_value(code);
}

static void check_dense(const struct assay_mla_dense_decode_problem *problem,
                        bool is_portable)
{
    static struct answer answer;
    double q[576];
    shape_dense(problem);
    slow.d_qk = 576;
    for (int64_t index = 0; index < assay_mla_dense_decode_parts(problem); index++) {
        const int64_t request = index / 2, head = index % 2;
        struct assay_mla_part part;
        assay_mla_dense_decode_part(problem, &tensors, index, &part);
        struct assay_mla_oracle *const oracle = assay_mla_oracle_open(&part);
        oracle->is_portable = is_portable || oracle->is_portable;
        for (int64_t row = 0; row < 3 * 35; row++) {
            if (row % 64 == 0) assay_mla_oracle_rows(oracle, row, NULL);
            const int64_t token = row / 35, of_head = row % 35;
            const int64_t hidden = problem->is_causal ? 2 - token : 0;
            slow.keys = 0;
            for (int64_t j = 0; j < lengths[0][request] - hidden; j++, slow.keys++)
                for (int d = 0; d < 576; d++)
                    slow.key[j][d] =
                        value_of(problem->format, dense_key(request, j, head)[d]);
            for (int d = 0; d < 576; d++)
                q[d] = value_of(
                    problem->format,
                    q_codes[((request * 3 + token) * 70 + head * 35 + of_head) * 576 +
                            d]);
            attend(q, (double)problem->softmax_scale, -(double)INFINITY, &answer);
            check_row(oracle, row % 64, &answer);
        }
        assay_mla_oracle_close(oracle);
    }
}

START_TEST(dense_decode_is_a_softmax_over_pages_below_the_length)
{
    struct assay_mla_dense_decode_problem problem = dense_problem;
    check_dense(&problem, false);
    problem.is_causal = false;
    problem.is_base_two = true;
    check_dense(&problem, false);
    problem.format = ASSAY_F16;
    check_dense(&problem, false);
}
END_TEST

START_TEST(without_special_instructions_dense_decode_is_the_same_softmax)
{
    check_dense(&dense_problem, true);
}
END_TEST

/* --- prefill ------------------------------------------------------------------------ */

START_TEST(prefill_attends_to_indices_inside_and_below_the_length)
{
    static const int32_t outside[] = { -1, INT32_MIN, 40, 41, INT32_MAX, -123456 };
    static struct answer answer;
    const struct assay_mla_sparse_prefill_problem problem = {
        .s_q = 3,
        .h_q = 64,
        .s_kv = 40,
        .d_qk = 512,
        .topk = 128,
        .kv_stride = 520,
        .has_topk_length = true,
        .softmax_scale = 0.5f,
    };
    double q[512];
    uint16_t *const kv = (uint16_t *)cache[0];
    memset(cache[0], 0xff, sizeof(cache[0]));
    tensors.count = 0;
    add_tensor("q", ASSAY_BF16, 3, SHAPE(3, 64, 512), q_codes);
    add_tensor("kv", ASSAY_BF16, 3, SHAPE(40, 1, 512), kv);
    tensors.item[1].stride[0] = 520;
    add_tensor("indices", ASSAY_I32, 3, SHAPE(3, 1, 128), indices[0]);
    add_tensor("topk_length", ASSAY_I32, 1, SHAPE(3), lengths[0]);
    lengths[0][0] = 128;
    lengths[0][1] = 0;
    lengths[0][2] = 77;
    fill_bf16(q_codes, 3 * 64 * 512, 0.5);
    for (int i = 0; i < 40; i++)
        fill_bf16(kv + i * 520, 512, 1);
    for (int i = 0; i < 3 * 128; i++)
        indices[0][i] = below(3) ? (int32_t)below(40) : outside[below(6)];

    for (int token = 0; token < 3; token++) {
        struct assay_mla_part part;
        assay_mla_sparse_prefill_part(&problem, &tensors, token, &part);
        struct assay_mla_oracle *const oracle = assay_mla_oracle_open(&part);
        assay_mla_oracle_rows(oracle, 0, NULL);
        slow.keys = 0;
        slow.d_qk = 512;
        for (int i = 0; i < lengths[0][token]; i++) {
            const int32_t index = indices[0][token * 128 + i];
            if (index < 0 || index >= 40) continue;
            for (int d = 0; d < 512; d++)
                slow.key[slow.keys][d] = bf16_value(kv[index * 520 + d]);
            slow.keys++;
        }
        for (int row = 0; row < 64; row++) {
            for (int d = 0; d < 512; d++)
                q[d] = bf16_value(q_codes[(token * 64 + row) * 512 + d]);
            attend(q, (double)problem.softmax_scale, -(double)INFINITY, &answer);
            check_row(oracle, row, &answer);
        }
        assay_mla_oracle_close(oracle);
    }
}
END_TEST

/* --- what is no number -------------------------------------------------------------- */

/* States of the rows of request 0 and head 0, dense, as it is now. */
static void find_states(const struct assay_mla_dense_decode_problem *problem,
                        enum assay_mla_row_state states[64])
{
    struct assay_mla_part part;
    assay_mla_dense_decode_part(problem, &tensors, 0, &part);
    struct assay_mla_oracle *const oracle = assay_mla_oracle_open(&part);
    assay_mla_oracle_rows(oracle, 0, NULL);
    for (int i = 0; i < 64; i++) {
        states[i] = oracle->row[i].state;
        ck_assert_int_eq(isnan(assay_mla_oracle_out(oracle, i, 3)) != 0,
                         states[i] > ASSAY_MLA_ROW_FINITE);
    }
    assay_mla_oracle_close(oracle);
}

static void check_states(const struct assay_mla_dense_decode_problem *problem,
                         enum assay_mla_row_state first, enum assay_mla_row_state second)
{
    enum assay_mla_row_state states[64];
    find_states(problem, states);
    for (int i = 0; i < 64; i++)
        ck_assert_int_eq(states[i], i < 35 ? first : second);
}

START_TEST(nan_and_infinities_are_told_apart)
{
    enum assay_mla_row_state states[64];
    const enum assay_mla_row_state finite = ASSAY_MLA_ROW_FINITE;
    const enum assay_mla_row_state unknown = ASSAY_MLA_ROW_UNKNOWN;
    const struct assay_mla_dense_decode_problem *const problem = &dense_problem;
    shape_dense(problem);
    check_states(problem, finite, finite);
    /* Token 0 does not see the last two positions, token 1 does not see the last. */
    dense_key(0, 129, 0)[575] = 0x7fc0;
    check_states(problem, unknown, unknown);
    dense_key(0, 129, 0)[575] = 0;
    dense_key(0, 128, 0)[7] = 0xffff;
    check_states(problem, unknown, ASSAY_MLA_ROW_NAN);
    dense_key(0, 128, 0)[7] = 0;
    dense_key(0, 70, 0)[511] = 0x7fc0;
    check_states(problem, ASSAY_MLA_ROW_NAN, ASSAY_MLA_ROW_NAN);
    dense_key(0, 70, 0)[511] = 0x7f80;
    check_states(problem, unknown, unknown);
    q_codes[5 * 576 + 511] = 0;
    find_states(problem, states);
    ck_assert_int_eq(states[5], ASSAY_MLA_ROW_NAN); /* infinity * 0 */
    ck_assert_int_eq(states[4], unknown);
    dense_key(0, 70, 0)[511] = 0;
    q_codes[6 * 576] = 0x7fff;
    q_codes[7 * 576] = 0xff80;
    find_states(problem, states);
    ck_assert_int_eq(states[5], finite);
    ck_assert_int_eq(states[6], ASSAY_MLA_ROW_NAN);
    ck_assert_int_eq(states[7], unknown);
}
END_TEST

START_TEST(pages_and_lengths_outside_are_unknown)
{
    struct assay_mla_dense_decode_problem problem = dense_problem;
    problem.is_causal = false;
    shape_dense(&problem);
    table[0][1] = PAGES;
    check_states(&problem, ASSAY_MLA_ROW_UNKNOWN, ASSAY_MLA_ROW_UNKNOWN);
    table[0][1] = -1;
    check_states(&problem, ASSAY_MLA_ROW_UNKNOWN, ASSAY_MLA_ROW_UNKNOWN);
    lengths[0][0] = 60; /* pages behind the length are not looked at */
    check_states(&problem, ASSAY_MLA_ROW_FINITE, ASSAY_MLA_ROW_FINITE);
    lengths[0][0] = 64 * COLUMNS + 1;
    check_states(&problem, ASSAY_MLA_ROW_UNKNOWN, ASSAY_MLA_ROW_UNKNOWN);
    lengths[0][0] = -1;
    check_states(&problem, ASSAY_MLA_ROW_UNKNOWN, ASSAY_MLA_ROW_UNKNOWN);
    lengths[0][0] = 0;
    check_states(&problem, ASSAY_MLA_ROW_EMPTY, ASSAY_MLA_ROW_EMPTY);
}
END_TEST

/* --- what truncation takes --------------------------------------------------------- */

static void find_residues(void *context, struct assay_mla_oracle *oracle)
{
    static int exponent[ASSAY_MLA_ORACLE_SQUARE];
    static double residue[ASSAY_MLA_ORACLE_SQUARE];
    int *const checked = context;
    memset(oracle->cost, 0, sizeof(oracle->cost));
    for (int at = 0; at < ASSAY_MLA_ORACLE_SQUARE; at++)
        exponent[at] = (int)below(at % 7 ? 30 : 200) - (at % 7 ? 25 : 150);
    assay_mla_oracle_residues(oracle, exponent, residue);
    for (int i = 0; i < 64; i += 3)
        for (int j = 0; j < oracle->key_count; j++) {
            const int at = i * 64 + j;
            double exact = 0;
            for (int d = 0; d < 576; d++)
                exact += fmod(fabs(oracle->q[i * 576 + d] * oracle->key[d * 64 + j]),
                              ldexp(1, exponent[at]));
            const bool is_tiny = exponent[at] < -80;
            if (!(residue[at] >= exact &&
                  residue[at] <= exact * (1 + 0x1p-12) +
                                     ldexp(576, exponent[at]) * (is_tiny ? 1 : 0x1p-30)))
                ck_abort_msg("2^%d: %a, but %a", exponent[at], residue[at], exact);
            (*checked)++;
        }
}

static void start_nothing(void *context, struct assay_mla_oracle *oracle)
{
    (void)context, (void)oracle;
}

START_TEST(residues_are_what_truncated_products_lose)
{
    struct assay_mla_dense_decode_problem problem = dense_problem;
    int checked = 0;
    const struct assay_mla_observer observer = { &checked, start_nothing, find_residues };
    for (int is_f16 = 0; is_f16 < 2; is_f16++) {
        struct assay_mla_part part;
        problem.format = is_f16 ? ASSAY_F16 : ASSAY_BF16;
        shape_dense(&problem);
        assay_mla_dense_decode_part(&problem, &tensors, 0, &part);
        struct assay_mla_oracle *const oracle = assay_mla_oracle_open(&part);
        assay_mla_oracle_rows(oracle, 0, &observer);
        assay_mla_oracle_close(oracle);
    }
    ck_assert_int_eq(checked, 2 * 22 * 130);
}
END_TEST

/* --- exact results ------------------------------------------------------------------ */

START_TEST(equal_weights_of_integers_and_a_lone_winner_are_exact)
{
    struct assay_mla_dense_decode_problem problem = dense_problem;
    struct assay_mla_part part;
    problem.is_causal = false;
    shape_dense(&problem);
    lengths[0][0] = 128;
    memset(q_codes, 0, 576 * sizeof(q_codes[0]));
    long double sum[D_V] = { 0 };
    for (int64_t j = 0; j < 128; j++)
        for (int d = 0; d < 576; d++) {
            const int integer = (int)below(31) - 15;
            dense_key(0, j, 0)[d] = bf16_code(integer);
            if (d < D_V) sum[d] += integer;
        }
    for (int d = 0; d < 576; d++) { /* row 1: key 40 wins by far */
        q_codes[576 + d] = bf16_code(d == 575 ? 512 : 0);
        dense_key(0, 40, 0)[575] = bf16_code(16);
    }
    assay_mla_dense_decode_part(&problem, &tensors, 0, &part);
    struct assay_mla_oracle *const oracle = assay_mla_oracle_open(&part);
    assay_mla_oracle_rows(oracle, 0, NULL);
    for (int d = 0; d < D_V; d++) {
        ck_assert_double_eq(assay_mla_oracle_out(oracle, 0, d), (double)(sum[d] / 128));
        ck_assert_double_eq_tol(assay_mla_oracle_out(oracle, 1, d),
                                bf16_value(dense_key(0, 40, 0)[d]), 0x1p-160);
    }
    assay_mla_oracle_close(oracle);
}
END_TEST

int main(void)
{
    openblas_set_num_threads(1);
    const TTest *const tests[] = {
        dense_decode_is_a_softmax_over_pages_below_the_length,
        without_special_instructions_dense_decode_is_the_same_softmax,
        prefill_attends_to_indices_inside_and_below_the_length,
        nan_and_infinities_are_told_apart,
        residues_are_what_truncated_products_lose,
        pages_and_lengths_outside_are_unknown,
        equal_weights_of_integers_and_a_lone_winner_are_exact,
        NULL,
    };
    return run_tests("oracle_mla_attention", tests);
}
