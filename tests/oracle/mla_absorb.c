/* SPDX-License-Identifier: MIT */
/* The mla_absorb oracle: the absorption identity in FP64, MPFR with 200 bits, and what
 * rotations and causality mean. */
#include "ref/oracle/mla_absorb.h"

#include "tests/harness.h"

#include <math.h>
#include <mpfr.h>
#include <string.h>

enum { MOST = 1 << 17, BITS = 200 };

static struct fixture {
    struct assay_mla_absorb_problem problem;
    struct assay_tensors tensors;
    uint16_t input[ASSAY_MLA_ABSORB_COS][MOST];
    float table[2][MOST];
} fixture;

static uint64_t state;

static uint32_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 32);
}

static double value_of(uint16_t code)
{
    const uint32_t bits = (uint32_t)code << 16;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return (double)value;
}

static uint16_t code_of(double value)
{
    const float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof(bits));
    return (uint16_t)(bits >> 16);
}

static void add_tensor(int64_t heads, int64_t rows, int64_t columns,
                       enum assay_format format, void *data)
{
    struct assay_tensor *const tensor = &fixture.tensors.item[fixture.tensors.count++];
    const int64_t shape[] = { heads, rows, columns };
    const int skipped = heads == 0;
    *tensor =
        (struct assay_tensor){ .format = format, .rank = 3 - skipped, .data = data };
    memcpy(tensor->shape, shape + skipped, sizeof(shape) - (size_t)skipped * 8);
    assay_tensor_set_dense(tensor);
    ck_assert(assay_tensor_elements(tensor) <= MOST);
}

static void shape(const struct assay_mla_absorb_problem *problem)
{
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
        add_tensor(shapes[i][0], shapes[i][1], shapes[i][2], ASSAY_BF16,
                   fixture.input[i]);
    add_tensor(0, p->n, p->d_r / 2, ASSAY_F32, fixture.table[0]);
    add_tensor(0, p->n, p->d_r / 2, ASSAY_F32, fixture.table[1]);
}

/* Weights of the size that keeps vectors near 1, and rotations by multiples of an angle
 * for each pair. */
static void fill(void)
{
    const struct assay_mla_absorb_problem *const p = &fixture.problem;
    for (int i = 0; i < ASSAY_MLA_ABSORB_COS; i++) {
        const struct assay_tensor *const tensor = &fixture.tensors.item[i];
        const double fan_in = (double)tensor->shape[tensor->rank - 1];
        const double size = i == ASSAY_MLA_ABSORB_HIDDEN ? 2 : 2 / sqrt(fan_in);
        for (int64_t j = 0; j < assay_tensor_elements(tensor); j++)
            fixture.input[i][j] = code_of(size * ((int32_t)draw() * 0x1p-31));
    }
    for (int64_t i = 0; i < p->n * p->d_r / 2; i++) {
        const double angle =
            (double)(i / (p->d_r / 2)) / (1 + 3 * (double)(i % (p->d_r / 2)));
        fixture.table[0][i] = (float)cos(angle);
        fixture.table[1][i] = (float)sin(angle);
    }
}

static struct assay_mla_absorb_oracle *opened(enum assay_mla_absorb_form form,
                                              int64_t head)
{
    fixture.problem.form = form;
    struct assay_mla_absorb_oracle *const oracle =
        assay_mla_absorb_oracle_open(&fixture.problem, &fixture.tensors, head);
    ck_assert_ptr_nonnull(oracle);
    return oracle;
}

/* n, s_q, h_q, d, d_c, d_c_q, d_h, d_r */
static const struct assay_mla_absorb_problem shapes[] = {
    { 1, 1, 1, 1, 1, 1, 1, 2, 0.5F, ASSAY_BF16, ASSAY_MLA_ABSORBED },
    { 9, 4, 2, 20, 12, 8, 5, 6, 0.3F, ASSAY_BF16, ASSAY_MLA_ABSORBED },
    { 50, 50, 3, 40, 32, 24, 16, 8, 1.0F, ASSAY_BF16, ASSAY_MLA_ABSORBED },
    { 64, 3, 2, 200, 512, 100, 128, 64, 0.0721687824F, ASSAY_BF16, ASSAY_MLA_ABSORBED },
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

/* --- the identity ------------------------------------------------------------------ */

/* Largest |expanded - absorbed| over the largest |expanded| of a head. */
static double disagreement(int64_t head)
{
    const int64_t count = fixture.problem.s_q * fixture.problem.d_h;
    struct assay_mla_absorb_oracle *const expanded = opened(ASSAY_MLA_EXPANDED, head);
    struct assay_mla_absorb_oracle *const absorbed = opened(ASSAY_MLA_ABSORBED, head);
    double difference = 0, largest = 0;
    for (int64_t i = 0; i < count; i++) {
        difference = fmax(difference, fabs(expanded->o[i] - absorbed->o[i]));
        largest = fmax(largest, fabs(expanded->o[i]));
    }
    ck_assert(largest > 1e-3 && isfinite(largest));
    assay_mla_absorb_oracle_close(expanded);
    assay_mla_absorb_oracle_close(absorbed);
    return difference / largest;
}

START_TEST(both_forms_are_one_function)
{
    double worst = 0;
    for (int i = 0; i < SHAPES; i++)
        for (int repeat = 0; repeat < 3; repeat++) {
            shape(&shapes[i]);
            fill();
            for (int64_t head = 0; head < fixture.problem.h_q; head++)
                worst = fmax(worst, disagreement(head));
        }
    ck_assert_msg(worst > 0 && worst < 1e-12, "%g", worst);
}
END_TEST

/* --- MPFR -------------------------------------------------------------------------- */

static double input_at(int place, int64_t head, int64_t row, int64_t column)
{
    const struct assay_tensor *const tensor = &fixture.tensors.item[place];
    const int64_t columns = tensor->shape[tensor->rank - 1];
    const int64_t rows = tensor->shape[tensor->rank - 2];
    return value_of(fixture.input[place][(head * rows + row) * columns + column]);
}

static void open_all(mpfr_t *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        mpfr_init2(x[i], BITS);
}

static void close_all(mpfr_t *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        mpfr_clear(x[i]);
}

static void add_product(mpfr_t sum, mpfr_t x, double w)
{
    mpfr_t product;
    mpfr_init2(product, BITS);
    mpfr_mul_d(product, x, w, MPFR_RNDN);
    mpfr_add(sum, sum, product, MPFR_RNDN);
    mpfr_clear(product);
}

static void apply(int place, int64_t head, mpfr_t *x, mpfr_t *y)
{
    const struct assay_tensor *const tensor = &fixture.tensors.item[place];
    const int64_t rows = tensor->shape[tensor->rank - 2];
    const int64_t columns = tensor->shape[tensor->rank - 1];
    for (int64_t i = 0; i < rows; i++) {
        mpfr_set_zero(y[i], 1);
        for (int64_t k = 0; k < columns; k++)
            add_product(y[i], x[k], input_at(place, head, i, k));
    }
}

static void turn(mpfr_t *x, int64_t position)
{
    const int64_t pairs = fixture.problem.d_r / 2;
    mpfr_t left, right;
    mpfr_inits2(BITS, left, right, (mpfr_ptr)0);
    for (int64_t i = 0; i < pairs; i++) {
        const double c = (double)fixture.table[0][position * pairs + i];
        const double s = (double)fixture.table[1][position * pairs + i];
        mpfr_set_zero(left, 1);
        mpfr_set_zero(right, 1);
        add_product(left, x[2 * i], c);
        add_product(left, x[2 * i + 1], -s);
        add_product(right, x[2 * i], s);
        add_product(right, x[2 * i + 1], c);
        mpfr_set(x[2 * i], left, MPFR_RNDN);
        mpfr_set(x[2 * i + 1], right, MPFR_RNDN);
    }
    mpfr_clears(left, right, (mpfr_ptr)0);
}

enum { MOST_WIDTH = 64 };

struct vectors { /* of one token: h, c, up-projected, rotary, v */
    mpfr_t h[MOST_WIDTH], c[MOST_WIDTH], up[MOST_WIDTH], r[MOST_WIDTH], v[MOST_WIDTH];
};

static void open_vectors(struct vectors *x, int64_t position)
{
    open_all(x->h, MOST_WIDTH);
    open_all(x->c, MOST_WIDTH);
    open_all(x->up, MOST_WIDTH);
    open_all(x->r, MOST_WIDTH);
    open_all(x->v, MOST_WIDTH);
    for (int64_t k = 0; k < fixture.problem.d; k++)
        mpfr_set_d(x->h[k], input_at(ASSAY_MLA_ABSORB_HIDDEN, 0, position, k), MPFR_RNDN);
}

static void close_vectors(struct vectors *x)
{
    close_all(x->h, MOST_WIDTH);
    close_all(x->c, MOST_WIDTH);
    close_all(x->up, MOST_WIDTH);
    close_all(x->r, MOST_WIDTH);
    close_all(x->v, MOST_WIDTH);
}

static void dot(mpfr_t sum, mpfr_t *x, mpfr_t *y, int64_t count)
{
    mpfr_t product;
    mpfr_init2(product, BITS);
    for (int64_t i = 0; i < count; i++) {
        mpfr_mul(product, x[i], y[i], MPFR_RNDN);
        mpfr_add(sum, sum, product, MPFR_RNDN);
    }
    mpfr_clear(product);
}

/* Adds exp(scale * s) of token @position to @total, and that times its values to @o. */
static void add_token(const struct vectors *query, int64_t head, int64_t position,
                      mpfr_t total, mpfr_t *o)
{
    struct vectors token;
    struct vectors *const q = (struct vectors *)query;
    mpfr_t weight;
    open_vectors(&token, position);
    apply(ASSAY_MLA_ABSORB_W_DKV, 0, token.h, token.c);
    apply(ASSAY_MLA_ABSORB_W_UK, head, token.c, token.up);
    apply(ASSAY_MLA_ABSORB_W_UV, head, token.c, token.v);
    apply(ASSAY_MLA_ABSORB_W_KR, 0, token.h, token.r);
    turn(token.r, position);
    mpfr_init2(weight, BITS);
    mpfr_set_zero(weight, 1);
    dot(weight, q->up, token.up, fixture.problem.d_h);
    dot(weight, q->r, token.r, fixture.problem.d_r);
    mpfr_mul_d(weight, weight, (double)fixture.problem.softmax_scale, MPFR_RNDN);
    mpfr_exp(weight, weight, MPFR_RNDN);
    mpfr_add(total, total, weight, MPFR_RNDN);
    for (int64_t i = 0; i < fixture.problem.d_h; i++) {
        mpfr_mul(token.v[i], token.v[i], weight, MPFR_RNDN);
        mpfr_add(o[i], o[i], token.v[i], MPFR_RNDN);
    }
    mpfr_clear(weight);
    close_vectors(&token);
}

/* Largest |oracle - exact| of query @t. */
static double error_of(const struct assay_mla_absorb_oracle *oracle, int64_t head,
                       int64_t t)
{
    const struct assay_mla_absorb_problem *const p = &fixture.problem;
    const int64_t position = p->n - p->s_q + t;
    struct vectors query;
    mpfr_t o[MOST_WIDTH], total;
    double worst = 0;
    open_vectors(&query, position);
    apply(ASSAY_MLA_ABSORB_W_DQ, 0, query.h, query.c);
    apply(ASSAY_MLA_ABSORB_W_UQ, head, query.c, query.up);
    apply(ASSAY_MLA_ABSORB_W_QR, head, query.c, query.r);
    turn(query.r, position);
    open_all(o, MOST_WIDTH);
    mpfr_init2(total, BITS);
    mpfr_set_zero(total, 1);
    for (int64_t i = 0; i < p->d_h; i++)
        mpfr_set_zero(o[i], 1);
    for (int64_t j = 0; j <= position; j++)
        add_token(&query, head, j, total, o);
    for (int64_t i = 0; i < p->d_h; i++) {
        mpfr_div(o[i], o[i], total, MPFR_RNDN);
        mpfr_sub_d(o[i], o[i], oracle->o[t * p->d_h + i], MPFR_RNDN);
        worst = fmax(worst, fabs(mpfr_get_d(o[i], MPFR_RNDN)));
    }
    mpfr_clear(total);
    close_all(o, MOST_WIDTH);
    close_vectors(&query);
    return worst;
}

START_TEST(both_forms_equal_mpfr)
{
    for (int i = 0; i < 3; i++) {
        struct assay_mla_absorb_problem problem = shapes[i];
        problem.s_q = problem.s_q < 4 ? problem.s_q : 4;
        shape(&problem);
        fill();
        for (int64_t head = 0; head < problem.h_q; head++)
            for (int form = 0; form < 2; form++) {
                struct assay_mla_absorb_oracle *const oracle =
                    opened((enum assay_mla_absorb_form)form, head);
                for (int64_t t = 0; t < problem.s_q; t++) {
                    const double error = error_of(oracle, head, t);
                    ck_assert_msg(error < 1e-14, "shape %d, form %d: %g", i, form, error);
                }
                assay_mla_absorb_oracle_close(oracle);
            }
    }
    mpfr_free_cache();
}
END_TEST

/* --- what it means ----------------------------------------------------------------- */

/* With one hidden state for all tokens only rotations tell positions apart. */
START_TEST(scores_depend_on_the_distance_alone)
{
    shape(&shapes[2]);
    fill();
    const int64_t n = fixture.problem.n, d = fixture.problem.d;
    for (int64_t i = d; i < n * d; i++)
        fixture.input[ASSAY_MLA_ABSORB_HIDDEN][i] =
            fixture.input[ASSAY_MLA_ABSORB_HIDDEN][i % d];
    struct assay_mla_absorb_oracle *const oracle = opened(ASSAY_MLA_ABSORBED, 0);
    double spread = 0;
    for (int64_t t = 1; t < n; t++)
        for (int64_t j = 1; j <= t; j++) {
            const double *const s = oracle->score;
            ck_assert(fabs(s[t * n + j] - s[(t - 1) * n + j - 1]) < 1e-6);
            spread = fmax(spread, fabs(s[t * n + j] - s[t * n + t]));
        }
    ck_assert(spread > 0.1);
    assay_mla_absorb_oracle_close(oracle);
}
END_TEST

START_TEST(weights_are_of_the_past_and_add_up_to_one)
{
    shape(&shapes[2]);
    fill();
    const int64_t n = fixture.problem.n;
    struct assay_mla_absorb_oracle *const oracle = opened(ASSAY_MLA_EXPANDED, 2);
    for (int64_t t = 0; t < n; t++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) {
            const double a = oracle->weight[t * n + j];
            ck_assert(j <= t ? a > 0 : a == 0);
            sum += a;
        }
        ck_assert(fabs(sum - 1) < 1e-14);
    }
    assay_mla_absorb_oracle_close(oracle);
}
END_TEST

/* exp(1000 s) alone would overflow: the largest score is taken off first. */
START_TEST(sharp_weights_stay_finite)
{
    struct assay_mla_absorb_problem problem = shapes[2];
    problem.softmax_scale = 1e5F;
    shape(&problem);
    fill();
    const int64_t n = fixture.problem.n;
    struct assay_mla_absorb_oracle *const oracle = opened(ASSAY_MLA_ABSORBED, 1);
    for (int64_t t = 0; t < n; t++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++)
            sum += oracle->weight[t * n + j];
        ck_assert(fabs(sum - 1) < 1e-14);
    }
    assay_mla_absorb_oracle_close(oracle);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        both_forms_are_one_function,         both_forms_equal_mpfr,
        scores_depend_on_the_distance_alone, weights_are_of_the_past_and_add_up_to_one,
        sharp_weights_stay_finite,           NULL,
    };
    return run_tests("mla_absorb", tests);
}
