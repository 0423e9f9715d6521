/* SPDX-License-Identifier: MIT */
/* The attention model against a second implementation of single rows, a softmax in
 * double, and the properties its schedules have to the bit. */
#include "ref/kernel/mla_attention.h"

#include "ref/kernel/mla_combine.h"
#include "ref/kernel/mla_tile.h"
#include "tests/kernel/attention_transcript.h"

static struct fixture {
    struct key_list list;
    uint16_t q[KEY_ROWS][ASSAY_MLA_MAX_D_QK];
    float sink[KEY_ROWS];
    struct assay_mla_query query;
} fixture;

static struct results results, other;

static uint16_t f16_code(float value)
{
    return (uint16_t)assay_minifloat_encode_f32(assay_minifloat(ASSAY_F16), value,
                                                ASSAY_OVERFLOW_SPECIAL);
}

static void draw_row(enum assay_format format, uint16_t *code, float limit)
{
    draw_codes(code, ASSAY_MLA_MAX_D_QK, limit);
    for (int i = 0; format == ASSAY_F16 && i < ASSAY_MLA_MAX_D_QK; i++)
        code[i] = f16_code(bf16_value(code[i]));
}

/* @rows rows and @blocks blocks of keys, of which each row misses every seventh. Keys
 * grow from block to block, so that the maximum rises. */
static void prepare(const struct assay_mla_numerics *numerics, enum assay_format format,
                    int rows, int d_qk, int blocks)
{
    memset(&fixture, 0, sizeof(fixture));
    random_state = 20250422;
    fixture.list.count = blocks * 64;
    for (int key = 0; key < fixture.list.count; key++) {
        draw_row(format, fixture.list.key[key], 0.6f + 0.2f * (float)(key / 64));
        for (int row = 0; row < rows; row++)
            fixture.list.attended[row][key] = draw() % 7 != 0;
    }
    for (int row = 0; row < rows; row++) {
        draw_row(format, fixture.q[row], 6.0f);
        fixture.sink[row] = draw_uniform(4.0f);
        fixture.query.q[row] = fixture.q[row];
    }
    fixture.query.numerics = numerics;
    fixture.query.format = format;
    fixture.query.rows = rows;
    fixture.query.d_qk = d_qk;
    fixture.query.softmax_scale = 1.0f / 24.0f;
    fixture.query.keys = (struct assay_mla_keys){ &fixture.list, load_from_list };
}

static void attend_all(struct results *to)
{
    attend(&fixture.query, 0, blocks_of_list(&fixture.list), to);
}

/* --- the transcript --------------------------------------------------------------- */

static struct transcript transcribe(int row, int schedule, int blocks)
{
    static const struct assay_dot_add *unit;
    const bool is_f16 = fixture.query.format == ASSAY_F16;
    unit = assay_dot_add_find(is_f16 ? "hopper-f16" : "hopper-bf16");
    struct transcript t = {
        .unit = *unit,
        .format = fixture.query.format,
        .d_qk = fixture.query.d_qk,
        .c = (float)((double)fixture.query.softmax_scale * 1.4426950408889634),
        .q = fixture.q[row],
        .list = &fixture.list,
        .row = row,
    };
    const struct assay_mla_numerics *const numerics = fixture.query.numerics;
    if (numerics->align_bits) t.unit.align_bits = numerics->align_bits;
    if (schedule == ASSAY_MLA_ONE_CHAIN)
        transcribe_chain(&t, blocks);
    else
        transcribe_seesaw(&t, numerics->mask == ASSAY_MLA_MASK_FINITE ? DENSE : PREFILL,
                          blocks);
    return t;
}

static void assert_row(const struct transcript *t, int row)
{
    const float factor = reciprocal(t->sum), ln_2 = 0.693147182f;
    const float with_sink = reciprocal(plus(
        t->sum, exponential(plus(times(fixture.sink[row], 1.44269504f), -t->maximum))));
    const float final = fixture.query.sink ? with_sink : factor;
    const float lse = fused(logarithm(t->sum), ln_2, times(t->maximum, ln_2));
    for (int column = 0; column < D_V; column++) {
        const float partial = times(t->output[column], factor);
        const uint32_t code = assay_minifloat_encode_f32(assay_minifloat(t->format),
                                                         times(t->output[column], final),
                                                         ASSAY_OVERFLOW_SPECIAL);
        ck_assert_uint_eq(bits_of(results.oaccum[row][column]), bits_of(partial));
        ck_assert_uint_eq(results.out[row][column], code);
    }
    ck_assert_uint_eq(bits_of(results.lse[row]), bits_of(lse));
    ck_assert_uint_eq(bits_of(results.lseaccum[row]),
                      bits_of(plus(logarithm(t->sum), t->maximum)));
    ck_assert_uint_eq(bits_of(results.max_logits[row]), bits_of(times(t->maximum, ln_2)));
}

static void compare_with_transcript(int schedule, int blocks)
{
    attend_all(&results);
    for (int row = 0; row < fixture.query.rows; row++) {
        const struct transcript t = transcribe(row, schedule, blocks);
        assert_row(&t, row);
    }
}

START_TEST(seesaw_of_dense_decode_matches_the_transcript)
{
    for (int blocks = 1; blocks <= 4; blocks++) {
        prepare(&assay_mla_flashmla_dense, ASSAY_BF16, 4, 576, blocks);
        compare_with_transcript(ASSAY_MLA_SEESAW, blocks);
    }
}
END_TEST

/* All scores are below zero: what is masked must not become the maximum. */
START_TEST(seesaw_of_negative_scores_matches_the_transcript)
{
    prepare(&assay_mla_flashmla_dense, ASSAY_BF16, 2, 576, 3);
    for (int key = 0; key < fixture.list.count; key++)
        for (int i = 0; i < 576; i++)
            fixture.list.key[key][i] |= 0x8000;
    for (int i = 0; i < 576; i++) {
        fixture.q[0][i] &= 0x7FFF;
        fixture.q[1][i] &= 0x7FFF;
    }
    compare_with_transcript(ASSAY_MLA_SEESAW, 3);
}
END_TEST

/* Beyond upstream's contract the finite mask is not below the start, and keys nobody
 * attends count; those of a missing B block do not. */
START_TEST(seesaw_with_a_tiny_scale_matches_the_transcript)
{
    prepare(&assay_mla_flashmla_dense, ASSAY_BF16, 2, 576, 3);
    fixture.query.softmax_scale = 0x1.62e430p-18f; /* c = 2^-17 */
    memset(fixture.list.attended[1], 0, sizeof(fixture.list.attended[1]));
    compare_with_transcript(ASSAY_MLA_SEESAW, 3);
    ck_assert(results.lseaccum[1] == -1e33f * 0x1p-17f);
}
END_TEST

START_TEST(seesaw_in_f16_matches_the_transcript)
{
    prepare(&assay_mla_flashmla_dense, ASSAY_F16, 2, 576, 3);
    compare_with_transcript(ASSAY_MLA_SEESAW, 3);
}
END_TEST

START_TEST(seesaw_of_prefill_matches_the_transcript)
{
    for (int blocks = 2; blocks <= 5; blocks++) {
        const int even = (blocks + 1) / 2 * 2;
        prepare(&assay_mla_flashmla_sparse_prefill, ASSAY_BF16, 2, blocks < 4 ? 576 : 512,
                even);
        fixture.query.sink = fixture.sink;
        /* A missing B block is one of zeros that nobody attends. */
        for (int key = blocks * 64; key < even * 64; key++) {
            memset(fixture.list.key[key], 0, sizeof(fixture.list.key[key]));
            for (int row = 0; row < KEY_ROWS; row++)
                fixture.list.attended[row][key] = false;
        }
        attend(&fixture.query, 0, blocks, &results);
        for (int row = 0; row < 2; row++) {
            const struct transcript t = transcribe(row, ASSAY_MLA_SEESAW, even);
            assert_row(&t, row);
        }
    }
}
END_TEST

START_TEST(chain_of_sparse_decode_matches_the_transcript)
{
    for (int blocks = 1; blocks <= 4; blocks++) {
        prepare(&assay_mla_flashmla_sparse_decode, ASSAY_BF16, 4, blocks < 3 ? 576 : 512,
                blocks);
        fixture.query.sink = blocks % 2 ? fixture.sink : NULL;
        compare_with_transcript(ASSAY_MLA_ONE_CHAIN, blocks);
    }
}
END_TEST

START_TEST(a_unit_with_other_constants_is_computed_dot_add_by_dot_add)
{
    struct assay_mla_numerics numerics = assay_mla_flashmla_dense;
    numerics.align_bits = 21;
    prepare(&numerics, ASSAY_BF16, 1, 576, 2);
    compare_with_transcript(ASSAY_MLA_SEESAW, 2);
}
END_TEST

/* --- softmax in double ------------------------------------------------------------ */

static void softmax(int row, double scale, double *out, double *lse, double *max)
{
    double sum = 0.0, score[MAX_KEYS];
    *max = -HUGE_VAL;
    memset(out, 0, D_V * sizeof(out[0]));
    for (int key = 0; key < fixture.list.count; key++) {
        score[key] = 0.0;
        for (int i = 0; i < fixture.query.d_qk; i++)
            score[key] += scale * (double)bf16_value(fixture.q[row][i]) *
                          (double)bf16_value(fixture.list.key[key][i]);
        if (fixture.list.attended[row][key]) *max = fmax(*max, score[key]);
    }
    for (int key = 0; key < fixture.list.count; key++) {
        if (!fixture.list.attended[row][key]) continue;
        const double p = exp(score[key] - *max);
        sum += p;
        for (int i = 0; i < D_V; i++)
            out[i] += p * (double)bf16_value(fixture.list.key[key][i]);
    }
    *lse = log(sum) + *max;
    const double divisor =
        sum + (fixture.query.sink ? exp((double)fixture.sink[row] - *max) : 0.0);
    for (int i = 0; i < D_V; i++)
        out[i] /= divisor;
}

/* @relative is the allowed error of a sum of weights of about one. */
static void compare_with_double(const struct assay_mla_numerics *numerics, bool has_sink,
                                double relative)
{
    prepare(numerics, ASSAY_BF16, 3, 576, 5);
    fixture.query.sink = has_sink ? fixture.sink : NULL;
    attend_all(&results);
    for (int row = 0; row < 3; row++) {
        double out[D_V], lse, max;
        softmax(row, 1.0 / 24.0, out, &lse, &max);
        for (int i = 0; i < D_V; i++) {
            const double code = (double)bf16_value(results.out[row][i]);
            ck_assert_double_lt(fabs(code - out[i]), relative + fabs(out[i]) * 0x1.01p-8);
            if (!has_sink)
                ck_assert_double_lt(fabs((double)results.oaccum[row][i] - out[i]),
                                    relative);
        }
        ck_assert_double_lt(fabs((double)results.lse[row] - lse), 20 * relative);
        ck_assert_double_lt(fabs((double)results.max_logits[row] - max), 20 * relative);
    }
}

START_TEST(flash_and_naive_match_a_softmax_in_double)
{
    for (int has_sink = 0; has_sink < 2; has_sink++) {
        compare_with_double(&assay_mla_flash, has_sink, 4e-6);
        compare_with_double(&assay_mla_naive, has_sink, 4e-6);
    }
}
END_TEST

START_TEST(upstreams_numerics_match_a_softmax_in_double_to_the_precision_of_bf16)
{
    compare_with_double(&assay_mla_flashmla_dense, false, 1e-3);
    compare_with_double(&assay_mla_flashmla_sparse_decode, true, 1e-3);
    compare_with_double(&assay_mla_flashmla_sparse_prefill, true, 1e-3);
}
END_TEST

START_TEST(base_two_is_the_natural_logarithm_over_ln_2)
{
    static const struct assay_mla_numerics *const all[] = {
        &assay_mla_flashmla_dense, &assay_mla_flashmla_sparse_prefill, &assay_mla_flash
    };
    for (int i = 0; i < 3; i++) {
        prepare(all[i], ASSAY_BF16, 2, 512, 2);
        attend_all(&results);
        fixture.query.is_base_two = true;
        attend_all(&other);
        for (int row = 0; row < 2; row++) {
            const double ln_2 = 0.69314718055994531;
            const double lse = (double)results.lse[row] / ln_2;
            const double max = (double)results.max_logits[row] / ln_2;
            ck_assert_double_eq_tol((double)other.lse[row], lse, 1e-5);
            ck_assert_double_eq_tol((double)other.max_logits[row], max, 1e-5);
        }
        ck_assert(same_bits(other.out, results.out, sizeof(results.out)));
    }
}
END_TEST

/* --- properties to the bit -------------------------------------------------------- */

static const struct assay_mla_numerics *const named[] = {
    &assay_mla_flashmla_dense, &assay_mla_flashmla_sparse_decode,
    &assay_mla_flashmla_sparse_prefill, &assay_mla_flash, &assay_mla_naive
};
enum { NAMED = sizeof(named) / sizeof(named[0]) };

START_TEST(rows_without_keys_have_out_0_lse_infinity_and_max_minus_infinity)
{
    for (int i = 0; i < NAMED; i++) {
        prepare(named[i], ASSAY_BF16, 2, 576, 3);
        memset(fixture.list.attended[1], 0, sizeof(fixture.list.attended[1]));
        for (int blocks = 0; blocks <= 3; blocks += 3) {
            attend(&fixture.query, 0, blocks, &results);
            for (int column = 0; column < D_V; column++)
                ck_assert_uint_eq(
                    results.out[1][column] | bits_of(results.oaccum[1][column]), 0);
            ck_assert(results.lse[1] == INFINITY && results.lseaccum[1] == -INFINITY);
            ck_assert(results.max_logits[1] == -INFINITY);
        }
        ck_assert(isfinite(results.lse[0]));
    }
}
END_TEST

START_TEST(blocks_that_nobody_attends_leave_every_bit)
{
    for (int i = 0; i < NAMED; i++)
        for (int blocks = 2; blocks <= 3; blocks++) {
            prepare(named[i], ASSAY_BF16, 3, 576, blocks);
            fixture.query.sink = fixture.sink;
            attend_all(&results);
            for (int more = 1; more <= 3; more++) {
                attend(&fixture.query, 0, blocks + more, &other);
                ck_assert(same_bits(&other, &results, sizeof(results)));
            }
        }
}
END_TEST

START_TEST(a_row_does_not_depend_on_the_others)
{
    for (int i = 0; i < NAMED; i++) {
        prepare(named[i], ASSAY_BF16, 64, 576, i < 3 ? 3 : 1);
        attend_all(&results);
        for (int row = 0; row < 64; row += 21) {
            fixture.query.rows = 1;
            fixture.query.q[0] = fixture.q[row];
            memcpy(fixture.list.attended[0], fixture.list.attended[row],
                   sizeof(fixture.list.attended[0]));
            attend_all(&other);
            ck_assert(same_bits(other.out[0], results.out[row], sizeof(other.out[0])));
            ck_assert(
                same_bits(other.oaccum[0], results.oaccum[row], sizeof(other.oaccum[0])));
            ck_assert_uint_eq(bits_of(other.lse[0]), bits_of(results.lse[row]));
        }
    }
}
END_TEST

START_TEST(one_split_through_combine_is_the_unsplit_out_without_a_sink)
{
    for (int i = 0; i < 3; i++) {
        prepare(named[i], ASSAY_BF16, 4, 576, 3);
        attend_all(&results);
        for (int row = 0; row < 4; row++) {
            uint16_t out[D_V];
            float lse;
            assay_mla_combine_row(&named[i]->combine, 1, results.oaccum[row], D_V,
                                  &results.lseaccum[row], 1, NULL, false, ASSAY_BF16, out,
                                  &lse);
            ck_assert(same_bits(out, results.out[row], sizeof(out)));
        }
    }
}
END_TEST

START_TEST(scores_below_the_finite_start_are_not_found)
{
    for (int i = 0; i < 3; i++) {
        prepare(named[i], ASSAY_BF16, 2, 512, 2);
        memset(fixture.q, 0, sizeof(fixture.q));
        fixture.q[0][0] = bf16_code(0x1p60f);
        fixture.q[1][0] = bf16_code(0x1p64f);
        for (int key = 0; key < fixture.list.count; key++)
            fixture.list.key[key][0] = bf16_code(-0x1p41f); /* -1.5e29 and -2.4e30 */
        attend_all(&results);
        ck_assert(isfinite(results.lse[0]) && results.max_logits[0] < -1e28f);
        ck_assert(results.lse[1] == INFINITY && results.max_logits[1] == -INFINITY);
    }
}
END_TEST

START_TEST(an_infinite_start_is_the_finite_one_once_a_key_is_seen)
{
    struct assay_mla_numerics numerics = assay_mla_flashmla_sparse_decode;
    numerics.start = ASSAY_MLA_START_INFINITE;
    prepare(&assay_mla_flashmla_sparse_decode, ASSAY_BF16, 2, 576, 4);
    for (int key = 0; key < 64; key++)
        fixture.list.attended[0][key] = fixture.list.attended[1][key] = false;
    attend_all(&results);
    fixture.query.numerics = &numerics;
    attend_all(&other);
    ck_assert(isfinite(other.lse[0]));
    ck_assert(same_bits(&other, &results, sizeof(results)));
}
END_TEST

START_TEST(a_nan_key_empties_the_lse_of_dense_rows_and_stays_in_the_others)
{
    for (int i = 0; i < NAMED; i++) {
        prepare(named[i], ASSAY_BF16, 1, 576, 2);
        fixture.list.key[5][570] = 0x7FFF; /* not a value, only a score */
        fixture.list.attended[0][5] = true;
        attend_all(&results);
        ck_assert_uint_eq(results.out[0][0], 0x7FFF);
        ck_assert_uint_eq(results.out[0][511], 0x7FFF);
        const uint32_t expected = i == 0 ? 0x7F800000 : 0x7FFFFFFF;
        ck_assert_uint_eq(bits_of(results.lse[0]), expected);
    }
}
END_TEST

START_TEST(a_sink_of_infinity_takes_everything_and_of_minus_infinity_nothing)
{
    for (int i = 1; i < NAMED; i++) {
        prepare(named[i], ASSAY_BF16, 2, 576, 2);
        attend_all(&results);
        fixture.query.sink = fixture.sink;
        fixture.sink[0] = INFINITY;
        fixture.sink[1] = -INFINITY;
        attend_all(&other);
        for (int column = 0; column < D_V; column++)
            ck_assert_uint_eq(other.out[0][column] & 0x7FFF, 0);
        ck_assert(same_bits(other.out[1], results.out[1], sizeof(other.out[1])));
        ck_assert(same_bits(other.lse, results.lse, sizeof(other.lse)));
        ck_assert(same_bits(other.oaccum, results.oaccum, sizeof(other.oaccum)));
    }
}
END_TEST

/* --- stages ----------------------------------------------------------------------- */

static char walked[256];

static void note(const char *text)
{
    ck_assert_uint_lt(strlen(walked) + strlen(text), sizeof(walked));
    strcat(walked, text);
}

static void noted_scores(struct assay_mla_tile *tile, int side)
{
    note(side ? "sB " : "sA ");
    assay_mla_scores(tile, side);
}

static void noted_weights(struct assay_mla_tile *tile, int side)
{
    note(side ? "wB " : "wA ");
    assay_mla_weights(tile, side);
}

static void noted_values(struct assay_mla_tile *tile, int side, int first_column)
{
    note(side ? "vB" : "vA");
    note(first_column ? "r " : "l ");
    assay_mla_values(tile, side, first_column);
}

static void noted_finish(struct assay_mla_tile *tile)
{
    note("f ");
    assay_mla_finish(tile);
}

START_TEST(stages_are_walked_in_the_kernels_order)
{
    static const char *const expected[] = {
        "sA wA vAl sB wB vBr vAr vBl sA wA vAl wB vBr vAr f ",
        "sA wA vAl vAr sA wA vAl vAr sA wA vAl vAr f ",
        "sA wA vAl sB wB vBr vAr vBl sA wA vAl sB wB vBr vAr vBl f ",
        "sA wA vAl vAr sA wA vAl vAr sA wA vAl vAr f ",
        "sA sA sA wA vAl vAr wA vAl vAr wA vAl vAr f ",
    };
    for (int i = 0; i < NAMED; i++) {
        struct assay_mla_numerics numerics = *named[i];
        numerics.stage = (struct assay_mla_stages){ noted_scores, noted_weights,
                                                    noted_values, noted_finish };
        walked[0] = '\0';
        prepare(&numerics, ASSAY_BF16, 1, 576, 3);
        attend_all(&results);
        const size_t once = strlen(expected[i]);
        ck_assert_uint_eq(strlen(walked), 2 * once); /* unsplit, split */
        walked[once] = '\0';
        ck_assert_str_eq(walked, expected[i]);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        seesaw_of_dense_decode_matches_the_transcript,
        seesaw_of_negative_scores_matches_the_transcript,
        seesaw_with_a_tiny_scale_matches_the_transcript,
        seesaw_in_f16_matches_the_transcript,
        seesaw_of_prefill_matches_the_transcript,
        chain_of_sparse_decode_matches_the_transcript,
        a_unit_with_other_constants_is_computed_dot_add_by_dot_add,
        flash_and_naive_match_a_softmax_in_double,
        upstreams_numerics_match_a_softmax_in_double_to_the_precision_of_bf16,
        base_two_is_the_natural_logarithm_over_ln_2,
        rows_without_keys_have_out_0_lse_infinity_and_max_minus_infinity,
        blocks_that_nobody_attends_leave_every_bit,
        a_row_does_not_depend_on_the_others,
        one_split_through_combine_is_the_unsplit_out_without_a_sink,
        scores_below_the_finite_start_are_not_found,
        an_infinite_start_is_the_finite_one_once_a_key_is_seen,
        a_nan_key_empties_the_lse_of_dense_rows_and_stays_in_the_others,
        a_sink_of_infinity_takes_everything_and_of_minus_infinity_nothing,
        stages_are_walked_in_the_kernels_order,
        NULL,
    };
    return run_tests("mla_attention", tests);
}
