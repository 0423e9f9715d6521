/* SPDX-License-Identifier: MIT */
/* Every knob of attention's numerics is read: turned, it changes bits of one of a few
 * cases, and those that a schedule does not know change none. */
#include "tests/kernel/key_list.h"

enum { ROWS = 3, BLOCKS = 5 };

static struct fixture {
    struct key_list list;
    uint16_t q[ROWS][ASSAY_MLA_MAX_D_QK];
    float sink[ROWS];
    struct assay_mla_query query;
} fixture;

enum variant {
    ORDINARY,
    EMPTY_ROW,    /* a row sees no key */
    WITHOUT_KEYS, /* the same, and a scale too small for the finite mask */
    NAN_KEY,      /* the first key of all is a NaN */
    SMALL_VALUES, /* near 2^-126 */
    UNEVEN_SCALE, /* times log2(e) is not the float times the float */
    LARGE_SINK,   /* scores in the hundreds, and a sink among them */
    VARIANTS
};

static void prepare(const struct assay_mla_numerics *numerics, enum variant variant)
{
    struct key_list *const list = &fixture.list;
    memset(&fixture, 0, sizeof(fixture));
    random_state = 9241;
    list->count = BLOCKS * 64;
    for (int key = 0; key < list->count; key++) {
        /* Growing, so that the maximum rises in both blocks of a pair. */
        draw_codes(list->key[key], ASSAY_MLA_MAX_D_QK, 0.4f * (float)(1 + key / 64));
        for (int i = 0; variant == SMALL_VALUES && i < D_V; i++)
            list->key[key][i] = bf16_code(draw_uniform(0x1p-124f));
        for (int row = 0; row < ROWS; row++)
            list->attended[row][key] = draw() % 7 != 0;
    }
    for (int row = 0; row < ROWS; row++) {
        draw_codes(fixture.q[row], ASSAY_MLA_MAX_D_QK, 6.0f);
        fixture.sink[row] = draw_uniform(4.0f);
        fixture.query.q[row] = fixture.q[row];
    }
    fixture.query.numerics = numerics;
    fixture.query.format = ASSAY_BF16;
    fixture.query.rows = ROWS;
    fixture.query.d_qk = 576;
    fixture.query.softmax_scale = 1.0f / 24.0f;
    fixture.query.sink = fixture.sink;
    fixture.query.keys = (struct assay_mla_keys){ list, load_from_list };
    if (variant == EMPTY_ROW || variant == WITHOUT_KEYS)
        memset(list->attended[1], 0, sizeof(list->attended[1]));
    if (variant == WITHOUT_KEYS) fixture.query.softmax_scale = 1e-5f;
    if (variant == UNEVEN_SCALE) fixture.query.softmax_scale = 0x1.30e67cp-5f;
    if (variant == NAN_KEY) list->key[0][0] = 0x7FC0;
}

static void raise_sink(void)
{
    static struct results unsunk;
    fixture.query.softmax_scale = 4.0f;
    fixture.query.sink = NULL;
    attend(&fixture.query, 0, BLOCKS, &unsunk);
    fixture.query.sink = fixture.sink;
    for (int row = 0; row < ROWS; row++)
        fixture.sink[row] = unsunk.max_logits[row] - 0.3f;
}

static bool has_changed(const struct assay_mla_numerics *a,
                        const struct assay_mla_numerics *b)
{
    static struct results of_a, of_b;
    bool changed = false;
    for (int variant = 0; variant < VARIANTS && !changed; variant++) {
        prepare(a, (enum variant)variant);
        if (variant == LARGE_SINK) raise_sink();
        attend(&fixture.query, 0, BLOCKS, &of_a);
        fixture.query.numerics = b;
        attend(&fixture.query, 0, BLOCKS, &of_b);
        changed = !same_bits(&of_a, &of_b, sizeof(of_a));
    }
    return changed;
}

struct knob {
    const char *name;
    const struct assay_mla_numerics *base;
    size_t offset;
    int value;
};

#define KNOB(base, field, value)                                                         \
  {                                                                                      \
    #field "=" #value, &assay_mla_##base, offsetof(struct assay_mla_numerics, field),    \
        value                                                                            \
  }

static struct assay_mla_numerics turned(const struct knob *knob)
{
    struct assay_mla_numerics numerics = *knob->base;
    memcpy((char *)&numerics + knob->offset, &knob->value, sizeof(knob->value));
    return numerics;
}

START_TEST(every_knob_turned_changes_bits)
{
    static const struct knob knobs[] = {
        KNOB(flashmla_dense, unit, ASSAY_MLA_FMA),
        KNOB(flashmla_dense, align_bits, 22),
        KNOB(flashmla_dense, result_bits, 20),
        KNOB(flashmla_dense, schedule, ASSAY_MLA_ONE_CHAIN),
        KNOB(flashmla_dense, schedule, ASSAY_MLA_PLAIN),
        KNOB(flashmla_dense, schedule, ASSAY_MLA_MATERIALISED),
        KNOB(flashmla_sparse_decode, schedule, ASSAY_MLA_SEESAW),
        KNOB(flashmla_dense, tile_order[0], ASSAY_MLA_TILES_FROM_FOURTH),
        KNOB(flashmla_dense, tile_order[1], ASSAY_MLA_TILES_ASCENDING),
        KNOB(flashmla_dense, mask, ASSAY_MLA_MASK_INFINITE),
        KNOB(flashmla_dense, start, ASSAY_MLA_START_INFINITE),
        KNOB(flashmla_dense, argument, ASSAY_MLA_ARGUMENT_SEPARATE),
        KNOB(flashmla_dense, functions, ASSAY_MLA_FUNCTIONS_ROUNDED),
        KNOB(flashmla_dense, row_sum, ASSAY_MLA_SUM_ONE_BY_ONE),
        KNOB(flashmla_dense, row_sum, ASSAY_MLA_SUM_ONE_LANE),
        KNOB(flashmla_dense, p_rounding, ASSAY_MLA_P_TOWARD_ZERO),
        KNOB(flashmla_dense, p_rounding, ASSAY_MLA_P_KEPT),
        KNOB(flashmla_dense, right_p, ASSAY_MLA_RIGHT_P_AS_LEFT),
        KNOB(flashmla_dense, right_factor, ASSAY_MLA_RIGHT_EXPONENTIAL),
        KNOB(flashmla_sparse_prefill, right_factor, ASSAY_MLA_RIGHT_PRODUCT),
        KNOB(flashmla_dense, odd_tail, ASSAY_MLA_TAIL_MASKED),
        KNOB(flashmla_dense, quotient, ASSAY_MLA_DIVISION),
        KNOB(flashmla_dense, scale_constant, ASSAY_MLA_SCALE_SINGLE),
        KNOB(flashmla_dense, scale_constant, ASSAY_MLA_SCALE_FLOAT_CONSTANT),
        KNOB(flashmla_dense, lse_form, ASSAY_MLA_LSE_SEPARATE),
        KNOB(flashmla_sparse_decode, sink_product, ASSAY_MLA_SINK_FUSED),
        KNOB(flashmla_dense, nan_row, ASSAY_MLA_NAN_STAYS),
        KNOB(flashmla_dense, flush, 0),
        KNOB(flash, unit, ASSAY_MLA_TENSOR_CORE),
        KNOB(flash, argument, ASSAY_MLA_ARGUMENT_FUSED),
        KNOB(flash, functions, ASSAY_MLA_FUNCTIONS_HARDWARE),
        KNOB(flash, p_rounding, ASSAY_MLA_P_NEAREST_EVEN),
        KNOB(flash, quotient, ASSAY_MLA_RECIPROCAL),
        KNOB(flash, flush, 1),
        KNOB(naive, unit, ASSAY_MLA_TENSOR_CORE),
        KNOB(naive, tile_order[0], ASSAY_MLA_TILES_FROM_FOURTH),
        KNOB(naive, row_sum, ASSAY_MLA_SUM_PAIRS),
        KNOB(naive, p_rounding, ASSAY_MLA_P_NEAREST_EVEN),
        KNOB(naive, flush, 1),
        { .name = NULL },
    };
    for (const struct knob *knob = knobs; knob->name; knob++) {
        const struct assay_mla_numerics numerics = turned(knob);
        ck_assert_msg(has_changed(knob->base, &numerics), "%s changes nothing",
                      knob->name);
    }
}
END_TEST

START_TEST(knobs_that_a_schedule_does_not_know_change_nothing)
{
    static const struct knob knobs[] = {
        KNOB(flashmla_sparse_decode, tile_order[1], ASSAY_MLA_TILES_FROM_FOURTH),
        KNOB(flashmla_sparse_decode, right_p, ASSAY_MLA_RIGHT_P_RESCALED),
        KNOB(flashmla_sparse_decode, right_factor, ASSAY_MLA_RIGHT_EXPONENTIAL),
        KNOB(flashmla_sparse_decode, odd_tail, ASSAY_MLA_TAIL_MASKED),
        /* The product of two floats is exact in double. */
        KNOB(flashmla_sparse_decode, scale_constant, ASSAY_MLA_SCALE_FLOAT_CONSTANT),
        KNOB(flash, mask, ASSAY_MLA_MASK_FINITE),
        KNOB(flash, right_p, ASSAY_MLA_RIGHT_P_RESCALED),
        KNOB(flash, row_sum, ASSAY_MLA_SUM_PAIRS),
        KNOB(naive, right_p, ASSAY_MLA_RIGHT_P_RESCALED),
        { .name = NULL },
    };
    for (const struct knob *knob = knobs; knob->name; knob++) {
        const struct assay_mla_numerics numerics = turned(knob);
        ck_assert_msg(!has_changed(knob->base, &numerics), "%s changes bits", knob->name);
    }
}
END_TEST

START_TEST(measured_constants_written_out_are_the_units_own)
{
    struct assay_mla_numerics numerics = assay_mla_flashmla_dense;
    numerics.align_bits = 25;
    numerics.result_bits = 23;
    ck_assert(!has_changed(&assay_mla_flashmla_dense, &numerics));
}
END_TEST

/* A right half that goes the left's way obeys the left's formula: with values that repeat
 * after 256 columns it is the same. */
START_TEST(a_right_half_as_the_left_equals_it)
{
    struct assay_mla_numerics numerics = assay_mla_flashmla_dense;
    for (int i = 0; i < 2; i++) {
        static struct results results;
        numerics.right_p = i ? ASSAY_MLA_RIGHT_P_AS_LEFT : ASSAY_MLA_RIGHT_P_RESCALED;
        prepare(&numerics, ORDINARY);
        for (int key = 0; key < fixture.list.count; key++)
            memcpy(&fixture.list.key[key][256], fixture.list.key[key],
                   256 * sizeof(uint16_t));
        attend(&fixture.query, 0, BLOCKS, &results);
        const bool is_same = same_bits(&results.oaccum[0][0], &results.oaccum[0][256],
                                       256 * sizeof(float));
        ck_assert_int_eq(is_same, i);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_knob_turned_changes_bits,
        knobs_that_a_schedule_does_not_know_change_nothing,
        measured_constants_written_out_are_the_units_own,
        a_right_half_as_the_left_equals_it,
        NULL,
    };
    return run_tests("mla_numerics", tests);
}
