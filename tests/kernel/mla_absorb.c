/* SPDX-License-Identifier: MIT */
/* The mla_absorb model against the same arithmetic written anew, scalar by scalar on
 * assay_dot_add, and against what the function means: causality, heads, rotations. */
#include "ref/kernel/mla_absorb.h"

#include "ref/unit/dot_add.h"
#include "ref/unit/special_function.h"
#include "tests/harness.h"

#include <math.h>
#include <string.h>

enum { MOST = 1 << 15, MOST_N = 80, MOST_WIDTH = 160 };

static struct fixture {
    struct assay_mla_absorb_problem problem;
    struct assay_mla_absorb_numerics numerics;
    struct assay_tensors tensors;
    uint16_t input[ASSAY_MLA_ABSORB_COS][MOST];
    float table[2][MOST];
    float out[MOST];
} fixture;

static uint64_t state;

static uint32_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 32);
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* To bf16 and back: half a unit is added, a little less where the tie is even below. */
static float rounded(float value)
{
    const uint32_t bits = bits_of(value);
    return float_of((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000);
}

static void add_tensor(const char *name, int64_t heads, int64_t rows, int64_t columns,
                       enum assay_format format, void *data)
{
    struct assay_tensor *const tensor = &fixture.tensors.item[fixture.tensors.count++];
    const int64_t shape[] = { heads, rows, columns };
    const int skipped = heads == 0;
    *tensor = (struct assay_tensor){
        .name = name, .format = format, .rank = 3 - skipped, .data = data
    };
    memcpy(tensor->shape, shape + skipped, sizeof(shape) - (size_t)skipped * 8);
    assay_tensor_set_dense(tensor);
    ck_assert(assay_tensor_elements(tensor) <= MOST);
}

/* Values of three scales, so that scores differ and sums round. */
static void fill(void)
{
    for (int i = 0; i < ASSAY_MLA_ABSORB_COS; i++)
        for (int j = 0; j < MOST; j++) {
            const uint32_t bits = draw();
            const double size = i ? 0.25 : 1, value = (int32_t)bits * 0x1p-31;
            fixture.input[i][j] = (uint16_t)(bits_of((float)(size * value)) >> 16);
        }
    for (int j = 0; j < MOST; j++) {
        const double angle = (int32_t)draw() * 0x1p-29;
        fixture.table[0][j] = (float)cos(angle);
        fixture.table[1][j] = (float)sin(angle);
    }
}

static void shape(const struct assay_mla_absorb_problem *problem)
{
    static const char *const names[] = { "hidden", "w_dkv", "w_kr", "w_uk",
                                         "w_uv",   "w_dq",  "w_uq", "w_qr" };
    const struct assay_mla_absorb_problem *const p = &fixture.problem;
    fixture.problem = *problem;
    fixture.tensors.count = 0;
    const int64_t shapes[][3] = {
        { 0, p->n, p->d },
        { 0, p->d_c, p->d },
        { 0, p->d_r, p->d },
        { p->h_q, p->d_h, p->d_c },
        { p->h_q, p->d_h, p->d_c },
        { 0, p->d_c_q, p->d },
        { p->h_q, p->d_h, p->d_c_q },
        { p->h_q, p->d_r, p->d_c_q },
    };
    for (int i = 0; i < ASSAY_MLA_ABSORB_COS; i++)
        add_tensor(names[i], shapes[i][0], shapes[i][1], shapes[i][2], ASSAY_BF16,
                   fixture.input[i]);
    add_tensor("cos", 0, p->n, p->d_r / 2, ASSAY_F32, fixture.table[0]);
    add_tensor("sin", 0, p->n, p->d_r / 2, ASSAY_F32, fixture.table[1]);
    add_tensor("o", p->s_q, p->h_q, p->d_h, p->out, fixture.out);
}

static void use(int unit, const int *stored)
{
    fixture.numerics = (struct assay_mla_absorb_numerics){
        .unit = unit, .stage = { assay_mla_absorb_rotate, assay_mla_absorb_weigh }
    };
    for (int i = 0; i < ASSAY_MLA_ABSORB_STORES; i++)
        fixture.numerics.stored[i] = stored ? stored[i] : ASSAY_MLA_ABSORB_BF16;
}

static void run(void)
{
    memset(fixture.out, 0xA5, sizeof(fixture.out));
    for (int64_t head = 0; head < assay_mla_absorb_parts(&fixture.problem); head++)
        ck_assert(assay_mla_absorb_model(&fixture.problem, &fixture.numerics,
                                         &fixture.tensors, head));
}

static uint32_t out_bits(int64_t t, int64_t head, int64_t i)
{
    return assay_tensor_bits(&fixture.tensors.item[ASSAY_MLA_ABSORB_O],
                             (t * fixture.problem.h_q + head) * fixture.problem.d_h + i);
}

/* --- the same, written anew -------------------------------------------------------- */

static float weight_at(int place, int64_t head, int64_t row, int64_t column)
{
    const struct assay_tensor *const tensor = &fixture.tensors.item[place];
    const int64_t columns = tensor->shape[tensor->rank - 1];
    const int64_t rows = tensor->shape[tensor->rank - 2];
    const int64_t element = (head * rows + row) * columns + column;
    return float_of((uint32_t)fixture.input[place][element] << 16);
}

/* One chain onto @sum. */
static float chain(float sum, const float *a, const float *b, int64_t count, bool is_bf16)
{
    const struct assay_dot_add *const unit = assay_dot_add_find("hopper-bf16");
    if (!is_bf16 || fixture.numerics.unit == ASSAY_MLA_ABSORB_FMA) {
        for (int64_t k = 0; k < count; k++)
            sum = fmaf(a[k], b[k], sum);
        return sum;
    }
    uint32_t bits = bits_of(sum);
    for (int64_t k = 0; k < count; k += 16) {
        struct assay_operand x[16], y[16];
        for (int64_t i = 0; i < 16; i++) {
            const bool is_there = k + i < count;
            x[i] = assay_operand_decode(unit, ASSAY_BF16,
                                        is_there ? bits_of(a[k + i]) >> 16 : 0);
            y[i] = assay_operand_decode(unit, ASSAY_BF16,
                                        is_there ? bits_of(b[k + i]) >> 16 : 0);
        }
        bits = assay_dot_add(unit, bits, x, y);
    }
    return float_of(bits);
}

static bool is_rounded(enum assay_mla_absorb_store store)
{
    return fixture.numerics.stored[store] == ASSAY_MLA_ABSORB_BF16;
}

static float kept(float value, enum assay_mla_absorb_store store)
{
    return is_rounded(store) ? rounded(value) : value;
}

/* w x for a weight of @rows rows. */
static void apply(int place, int64_t head, int64_t rows, const float *x, int64_t width,
                  bool is_bf16, float *y)
{
    for (int64_t i = 0; i < rows; i++) {
        float row[MOST_WIDTH];
        for (int64_t k = 0; k < width; k++)
            row[k] = weight_at(place, head, i, k);
        y[i] = chain(0, x, row, width, is_bf16);
    }
}

static void keep_all(float *x, int64_t count, enum assay_mla_absorb_store store)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = kept(x[i], store);
}

static void turn(float *x, int64_t position)
{
    const int64_t pairs = fixture.problem.d_r / 2;
    keep_all(x, 2 * pairs, ASSAY_MLA_ABSORB_ROTARY);
    for (int64_t i = 0; i < pairs; i++) {
        const float c = fixture.table[0][position * pairs + i];
        const float s = fixture.table[1][position * pairs + i];
        const float a = x[2 * i], b = x[2 * i + 1], bs = b * s, bc = b * c;
        x[2 * i] = fmaf(a, c, -bs);
        x[2 * i + 1] = fmaf(a, s, bc);
    }
}

struct token { /* what the context keeps of one */
    float c_kv[MOST_WIDTH], k_r[MOST_WIDTH], k_c[MOST_WIDTH], v[MOST_WIDTH];
};
static struct token tokens[MOST_N];

static void hidden_of(int64_t position, float *hidden)
{
    for (int64_t k = 0; k < fixture.problem.d; k++)
        hidden[k] = weight_at(ASSAY_MLA_ABSORB_HIDDEN, 0, position, k);
}

static void remember(int64_t head)
{
    const struct assay_mla_absorb_problem *const p = &fixture.problem;
    const bool c_kv_is_bf16 = is_rounded(ASSAY_MLA_ABSORB_C_KV);
    for (int64_t j = 0; j < p->n; j++) {
        struct token *const token = &tokens[j];
        float hidden[MOST_WIDTH];
        hidden_of(j, hidden);
        apply(ASSAY_MLA_ABSORB_W_DKV, 0, p->d_c, hidden, p->d, true, token->c_kv);
        keep_all(token->c_kv, p->d_c, ASSAY_MLA_ABSORB_C_KV);
        apply(ASSAY_MLA_ABSORB_W_KR, 0, p->d_r, hidden, p->d, true, token->k_r);
        turn(token->k_r, j);
        keep_all(token->k_r, p->d_r, ASSAY_MLA_ABSORB_K);
        apply(ASSAY_MLA_ABSORB_W_UK, head, p->d_h, token->c_kv, p->d_c, c_kv_is_bf16,
              token->k_c);
        keep_all(token->k_c, p->d_h, ASSAY_MLA_ABSORB_K);
        apply(ASSAY_MLA_ABSORB_W_UV, head, p->d_h, token->c_kv, p->d_c, c_kv_is_bf16,
              token->v);
        keep_all(token->v, p->d_h, ASSAY_MLA_ABSORB_V);
    }
}

struct query {
    float c[MOST_WIDTH], r[MOST_WIDTH], latent[MOST_WIDTH];
};

static void ask(int64_t head, int64_t position, struct query *query)
{
    const struct assay_mla_absorb_problem *const p = &fixture.problem;
    const bool c_q_is_bf16 = is_rounded(ASSAY_MLA_ABSORB_C_Q);
    float hidden[MOST_WIDTH], c_q[MOST_WIDTH];
    hidden_of(position, hidden);
    apply(ASSAY_MLA_ABSORB_W_DQ, 0, p->d_c_q, hidden, p->d, true, c_q);
    keep_all(c_q, p->d_c_q, ASSAY_MLA_ABSORB_C_Q);
    apply(ASSAY_MLA_ABSORB_W_UQ, head, p->d_h, c_q, p->d_c_q, c_q_is_bf16, query->c);
    keep_all(query->c, p->d_h, ASSAY_MLA_ABSORB_Q);
    apply(ASSAY_MLA_ABSORB_W_QR, head, p->d_r, c_q, p->d_c_q, c_q_is_bf16, query->r);
    turn(query->r, position);
    keep_all(query->r, p->d_r, ASSAY_MLA_ABSORB_Q);
    for (int64_t i = 0; i < p->d_c; i++) {
        float column[MOST_WIDTH];
        for (int64_t k = 0; k < p->d_h; k++)
            column[k] = weight_at(ASSAY_MLA_ABSORB_W_UK, head, k, i);
        query->latent[i] =
            kept(chain(0, query->c, column, p->d_h, is_rounded(ASSAY_MLA_ABSORB_Q)),
                 ASSAY_MLA_ABSORB_Q_LATENT);
    }
}

/* p of the keys up to @position, kept, and their sum before. */
static float weigh(const struct query *query, int64_t position, float *p)
{
    const struct assay_mla_absorb_problem *const problem = &fixture.problem;
    const bool is_absorbed = problem->form == ASSAY_MLA_ABSORBED;
    const bool q_is = is_rounded(ASSAY_MLA_ABSORB_Q),
               k_is = is_rounded(ASSAY_MLA_ABSORB_K);
    const bool latents_are =
        is_rounded(ASSAY_MLA_ABSORB_Q_LATENT) && is_rounded(ASSAY_MLA_ABSORB_C_KV);
    const float scale = (float)((double)problem->softmax_scale * 1.4426950408889634);
    float largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j <= position; j++) {
        p[j] = is_absorbed
                   ? chain(0, query->latent, tokens[j].c_kv, problem->d_c, latents_are)
                   : chain(0, query->c, tokens[j].k_c, problem->d_h, q_is && k_is);
        p[j] = chain(p[j], query->r, tokens[j].k_r, problem->d_r, q_is && k_is);
        if (p[j] > largest) largest = p[j];
    }
    const float shift = largest * scale;
    for (int64_t j = 0; j <= position; j++) {
        p[j] = float_of(assay_ex2_approx_ftz(bits_of(fmaf(p[j], scale, -shift))));
        sum += p[j];
        p[j] = kept(p[j], ASSAY_MLA_ABSORB_P);
    }
    return sum;
}

static void answer(const struct query *query, int64_t head, int64_t position, float *o)
{
    const struct assay_mla_absorb_problem *const p = &fixture.problem;
    const bool is_absorbed = p->form == ASSAY_MLA_ABSORBED;
    const bool is_bf16 =
        is_rounded(ASSAY_MLA_ABSORB_P) &&
        is_rounded(is_absorbed ? ASSAY_MLA_ABSORB_C_KV : ASSAY_MLA_ABSORB_V);
    float weight[MOST_N], mean[MOST_WIDTH];
    const float sum = weigh(query, position, weight);
    const float factor = float_of(assay_rcp_approx_ftz(bits_of(sum)));
    for (int64_t i = 0; i < (is_absorbed ? p->d_c : p->d_h); i++) {
        float column[MOST_N];
        for (int64_t j = 0; j <= position; j++)
            column[j] = is_absorbed ? tokens[j].c_kv[i] : tokens[j].v[i];
        mean[i] = chain(0, weight, column, position + 1, is_bf16) * factor;
    }
    if (is_absorbed) {
        keep_all(mean, p->d_c, ASSAY_MLA_ABSORB_O_LATENT);
        apply(ASSAY_MLA_ABSORB_W_UV, head, p->d_h, mean, p->d_c,
              is_rounded(ASSAY_MLA_ABSORB_O_LATENT), o);
    } else {
        memcpy(o, mean, sizeof(mean));
    }
}

/* Returns how many elements differ. */
static int64_t differing(void)
{
    const struct assay_mla_absorb_problem *const p = &fixture.problem;
    int64_t count = 0;
    for (int64_t head = 0; head < p->h_q; head++) {
        remember(head);
        for (int64_t t = 0; t < p->s_q; t++) {
            struct query query;
            float o[MOST_WIDTH];
            ask(head, p->n - p->s_q + t, &query);
            answer(&query, head, p->n - p->s_q + t, o);
            for (int64_t i = 0; i < p->d_h; i++)
                count +=
                    out_bits(t, head, i) !=
                    (p->out == ASSAY_F32 ? bits_of(o[i]) : bits_of(rounded(o[i])) >> 16);
        }
    }
    return count;
}

/* n, s_q, h_q, d, d_c, d_c_q, d_h, d_r: tails of steps and of tiles. */
static const struct assay_mla_absorb_problem shapes[] = {
    { 1, 1, 1, 1, 1, 1, 1, 2, 1, ASSAY_F32, ASSAY_MLA_ABSORBED },
    { 5, 3, 2, 20, 17, 9, 7, 6, 0.25F, ASSAY_BF16, ASSAY_MLA_ABSORBED },
    { 70, 2, 1, 64, 66, 33, 65, 16, 0.125F, ASSAY_F32, ASSAY_MLA_ABSORBED },
    { 33, 33, 3, 16, 16, 16, 16, 4, 0.7F, ASSAY_BF16, ASSAY_MLA_ABSORBED },
    { 18, 1, 2, 130, 100, 70, 40, 20, 0.1F, ASSAY_F32, ASSAY_MLA_ABSORBED },
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static void check_shapes(int unit, const int *stored)
{
    use(unit, stored);
    for (int i = 0; i < 2 * SHAPES; i++) {
        struct assay_mla_absorb_problem problem = shapes[i / 2];
        problem.form = i % 2 ? ASSAY_MLA_ABSORBED : ASSAY_MLA_EXPANDED;
        fill();
        shape(&problem);
        run();
        const int64_t count = differing();
        ck_assert_msg(count == 0, "shape %d, form %d, unit %d: %lld differ", i / 2,
                      (int)problem.form, unit, (long long)count);
    }
}

START_TEST(every_intermediate_in_bf16_equals_a_second_implementation)
{
    check_shapes(ASSAY_MLA_ABSORB_TENSOR_CORE, NULL);
    check_shapes(ASSAY_MLA_ABSORB_FMA, NULL);
}
END_TEST

START_TEST(any_choice_of_intermediates_equals_a_second_implementation)
{
    for (int i = 0; i < 40; i++) {
        int stored[ASSAY_MLA_ABSORB_STORES];
        const uint32_t choice = i ? draw() : UINT32_MAX;
        for (int j = 0; j < ASSAY_MLA_ABSORB_STORES; j++)
            stored[j] = choice >> j & 1 ? ASSAY_MLA_ABSORB_F32 : ASSAY_MLA_ABSORB_BF16;
        check_shapes(i % 3 ? ASSAY_MLA_ABSORB_TENSOR_CORE : ASSAY_MLA_ABSORB_FMA, stored);
    }
}
END_TEST

/* --- what it means ----------------------------------------------------------------- */

START_TEST(a_quarter_turn_swaps_a_pair)
{
    float x[] = { 3, 5, -7, 11 };
    const float cosine[] = { 0, 1 }, sine[] = { 1, 0 };
    assay_mla_absorb_rotate(x, cosine, sine, 2);
    ck_assert(x[0] == -5 && x[1] == 3 && x[2] == -7 && x[3] == 11);
}
END_TEST

/* Keys of the same score weigh 1, one that is 10 below in log2 units 2^-10. */
START_TEST(weights_are_powers_of_two_of_differences)
{
    float score[] = { 4, 24, 24, 20, 99 };
    ck_assert(assay_mla_absorb_weigh(score, 4, 0.5F) == 2 + 0x1p-10F + 0x1p-2F);
    ck_assert(score[0] == 0x1p-10F && score[1] == 1 && score[2] == 1);
    ck_assert(score[3] == 0x1p-2F && score[4] == 99);
}
END_TEST

static void copy_out(uint32_t *bits)
{
    const struct assay_tensor *const o = &fixture.tensors.item[ASSAY_MLA_ABSORB_O];
    for (int64_t i = 0; i < assay_tensor_elements(o); i++)
        bits[i] = assay_tensor_bits(o, i);
}

/* A NaN token makes the queries from it on NaN, and no other bit changes. */
START_TEST(a_query_does_not_see_later_tokens)
{
    enum { N = 33, POISONED = 20 };
    static uint32_t before[MOST], after[MOST];
    use(ASSAY_MLA_ABSORB_TENSOR_CORE, NULL);
    for (int form = 0; form < 2; form++) {
        struct assay_mla_absorb_problem problem = shapes[3];
        problem.form = (enum assay_mla_absorb_form)form;
        fill();
        shape(&problem);
        run();
        copy_out(before);
        for (int64_t k = 0; k < problem.d; k++)
            fixture.input[ASSAY_MLA_ABSORB_HIDDEN][POISONED * problem.d + k] = 0x7FC0;
        run();
        copy_out(after);
        const int64_t row = problem.h_q * problem.d_h;
        for (int64_t i = 0; i < N * row; i++) {
            const bool is_nan = (after[i] & 0x7FFF) > 0x7F80;
            ck_assert(i < POISONED * row ? after[i] == before[i] : is_nan);
        }
    }
}
END_TEST

START_TEST(heads_do_not_see_one_another)
{
    static const int of_heads[] = { ASSAY_MLA_ABSORB_W_UK, ASSAY_MLA_ABSORB_W_UV,
                                    ASSAY_MLA_ABSORB_W_UQ, ASSAY_MLA_ABSORB_W_QR };
    use(ASSAY_MLA_ABSORB_TENSOR_CORE, NULL);
    for (int i = 0; i < 8; i++) {
        struct assay_mla_absorb_problem problem = shapes[3];
        problem.form = (enum assay_mla_absorb_form)(i % 2);
        fill();
        shape(&problem);
        const int place = of_heads[i / 2];
        const struct assay_tensor *const weight = &fixture.tensors.item[place];
        fixture.input[place][weight->shape[1] * weight->shape[2] + 3] = 0x7FC0; /* of 1 */
        run();
        int64_t nans[3] = { 0 };
        for (int64_t t = 0; t < problem.s_q; t++)
            for (int64_t head = 0; head < 3; head++)
                for (int64_t j = 0; j < problem.d_h; j++)
                    nans[head] += (out_bits(t, head, j) & 0x7FFF) > 0x7F80;
        ck_assert(nans[0] == 0 && nans[1] > 0 && nans[2] == 0);
    }
}
END_TEST

/* What the stages are for: a fault in a copy changes what is computed. */
static void turn_the_other_way(float *x, const float *cosine, const float *sine,
                               int64_t pairs)
{
    for (int64_t i = 0; i < pairs; i++) {
        const float opposite = -sine[i];
        assay_mla_absorb_rotate(x + 2 * i, cosine + i, &opposite, 1);
    }
}

START_TEST(a_stage_of_a_copy_replaces_the_model_s)
{
    static uint32_t before[MOST], after[MOST];
    use(ASSAY_MLA_ABSORB_TENSOR_CORE, NULL);
    fill();
    shape(&shapes[1]);
    run();
    copy_out(before);
    fixture.numerics.stage.rotate = turn_the_other_way;
    run();
    copy_out(after);
    ck_assert(memcmp(before, after, 3 * 2 * 7 * sizeof(before[0])) != 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_intermediate_in_bf16_equals_a_second_implementation,
        any_choice_of_intermediates_equals_a_second_implementation,
        a_quarter_turn_swaps_a_pair,
        weights_are_powers_of_two_of_differences,
        a_query_does_not_see_later_tokens,
        heads_do_not_see_one_another,
        a_stage_of_a_copy_replaces_the_model_s,
        NULL,
    };
    return run_tests("mla_absorb", tests);
}
