/* SPDX-License-Identifier: MIT */
/* The relations of the FP8 GEMMs: the model and two plain kernels keep to them, whatever
 * the data; kernels that are wrong within the bound do not. */
#include "tests/harness.h"
#include "tests/verify/drawn_result.h"
#include "tests/verify/related_case.h"

#include <cblas.h>

/* --- the model ---------------------------------------------------------------------- */

static const char *const dense[] = {
    "fp8_gemm_nt m=66 n=72 k=272 a_stride=288 b_stride=304 d_stride=80",
    "fp8_gemm_nt m=67 n=136 k=400 a_format=e5m2 out=f32",
    "fp8_gemm_nt m=65 n=72 k=272 recipe=1d1d out=f32 c=1",
    "fp8_gemm_nt m=2 n=8 k=16 recipe=1d1d out=f32 b_format=e5m2 as=deepgemm-1d1d",
    "fp8_gemm_nt m=66 n=72 k=336 recipe=tensor",
    "fp8_gemm_nt m=66 n=72 k=336 recipe=tensor out=f32 as=cublaslt-fast",
    "fp8_gemm_nt m=66 n=72 k=272 as=cublaslt-block",
    "fp8_gemm_nt m=66 n=72 k=272 as=deepgemm-1d2d,promote_k=32,scale_form=a-then-b",
    "fp8_gemm_nt m=66 n=8 k=272 as=deepgemm-1d2d,k_order=descending,promotion=separate",
    "fp8_gemm_nt m=66 n=72 k=400 recipe=mx a_stride=416",
    "fp8_gemm_nt m=67 n=72 k=272 recipe=mx gran_k=32 a_format=e2m1 b_format=e5m2 out=f32",
    NULL,
};
static const char *const grouped[] = {
    "m_grouped_fp8_gemm_nt_contiguous group_m=70,0,3,129 n=72 k=272",
    "m_grouped_fp8_gemm_nt_contiguous group_m=1,64 n=136 k=400 out=f32 a_format=e5m2",
    "m_grouped_fp8_gemm_nt_masked groups=4 m_max=128 n=72 k=272 masked_m=1,0,67,128",
    "m_grouped_fp8_gemm_nt_masked groups=2 m_max=256 n=8 k=144 masked_m=129,5 out=f32",
    "k_grouped_fp8_gemm_nt_contiguous m=128 n=72 ks=256,0,128",
    "k_grouped_fp8_gemm_tn_contiguous m=128 n=40 ks=128,384,256 b_format=e5m2",
    NULL,
};
static const char *const empty[] = {
    "fp8_gemm_nt m=0 n=72 k=272",
    "fp8_gemm_nt m=65 n=0 k=272 recipe=1d1d out=f32 c=1",
    "fp8_gemm_nt m=65 n=72 k=0",
    "m_grouped_fp8_gemm_nt_contiguous group_m=228,3 n=0 k=16",
    "m_grouped_fp8_gemm_nt_contiguous group_m=0,0 n=72 k=16",
    "m_grouped_fp8_gemm_nt_masked groups=2 m_max=128 n=0 k=16 masked_m=1,5",
    "m_grouped_fp8_gemm_nt_masked groups=2 m_max=128 n=8 k=0 masked_m=0,5",
    "k_grouped_fp8_gemm_nt_contiguous m=128 n=0 ks=128,0",
    "k_grouped_fp8_gemm_tn_contiguous m=0 n=8 ks=0,128",
    NULL,
};

static void try_kinds(const char *const *lines)
{
    for (int i = 0; lines[i]; i++)
        for (int kind = i % 3; kind < ASSAY_GENERAL_DATA_KINDS; kind += 3) {
            char line[512];
            snprintf(line, sizeof(line), "%s data=%s seed=%d", lines[i],
                     assay_data_kinds[kind].name, kind + 3);
            expect_model_keeps_to_all(line);
        }
}

START_TEST(model_keeps_to_every_relation_of_dense_gemms_for_all_kinds_of_data)
{
    try_kinds(dense);
}
END_TEST

START_TEST(model_keeps_to_every_relation_of_grouped_gemms_for_all_kinds_of_data)
{
    try_kinds(grouped);
}
END_TEST

START_TEST(empty_tensors_have_no_relation_to_break)
{
    try_kinds(empty);
}
END_TEST

START_TEST(model_keeps_to_every_relation_in_drawn_cases)
{
    static const char *const names[] = {
        "fp8_gemm_nt", "m_grouped_fp8_gemm_nt_contiguous", "m_grouped_fp8_gemm_nt_masked",
        "k_grouped_fp8_gemm_nt_contiguous", "k_grouped_fp8_gemm_tn_contiguous"
    };
    for (int i = 0; i < 5 * 6; i++) {
        struct assay_case the_case;
        char line[ASSAY_MAX_CASE_LINE];
        draw_case(names[i % 5], 5, "case", i, 2e6, &the_case, line);
        expect_model_keeps_to_all(line);
    }
}
END_TEST

/* Normal data leave nothing out but zeros. */
START_TEST(relations_to_the_bit_judge_every_element_of_normal_data)
{
    static const struct {
        const char *property;
        const char *line;
        int64_t judged;
    } rows[] = {
        { "doubling", "fp8_gemm_nt m=66 n=72 k=272", 66 * 72 },
        { "doubling", "fp8_gemm_nt m=66 n=72 k=272 recipe=1d1d out=f32 c=1", 66 * 72 },
        { "doubling", "fp8_gemm_nt m=66 n=72 k=272 recipe=mx a_format=e5m2", 66 * 72 },
        { "doubling", "fp8_gemm_nt m=66 n=72 k=272 recipe=tensor b_format=e5m2",
          66 * 72 },
        { "negation", "fp8_gemm_nt m=66 n=72 k=272 out=f32", 66 * 72 },
        { "rows", "fp8_gemm_nt m=66 n=72 k=272", 66 * 72 },
        { "fewer-rows", "fp8_gemm_nt m=67 n=72 k=272", 33 * 72 },
        { "columns", "fp8_gemm_nt m=66 n=72 k=272", 0 },
        { "odd-groups",
          "m_grouped_fp8_gemm_nt_contiguous group_m=70,9,3 n=72 k=272 out=f32", 73 * 72 },
        { "even-groups",
          "m_grouped_fp8_gemm_nt_masked groups=3 m_max=128 n=72 k=272 masked_m=9,66,70",
          66 * 72 },
        { "nobody", "m_grouped_fp8_gemm_nt_contiguous group_m=70,3 n=72 k=272", 73 * 72 },
        { "fewer-rows", "m_grouped_fp8_gemm_nt_contiguous group_m=71,3,1 n=72 k=272",
          36 * 72 },
        { "fewer-rows",
          "m_grouped_fp8_gemm_nt_masked groups=2 m_max=128 n=72 k=272 masked_m=71,1",
          35 * 72 },
        { "doubling", "k_grouped_fp8_gemm_nt_contiguous m=128 n=72 ks=256,0,128",
          3 * 128 * 72 },
        { "odd-groups", "k_grouped_fp8_gemm_tn_contiguous m=128 n=72 ks=256,128,128",
          2 * 128 * 72 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const int64_t judged = expect_model_keeps_to(rows[i].line, rows[i].property);
        ck_assert_msg(judged == rows[i].judged, "%s: %s judges %lld", rows[i].line,
                      rows[i].property, (long long)judged);
    }
}
END_TEST

/* Scale blocks that differ, by powers of two: sums stay exact. */
static void step_scales(const struct assay_tensors *tensors)
{
    static const char *const names[] = { "sfa", "sfb" };
    for (int i = 0; i < 2; i++) {
        const struct assay_tensor *const scales = assay_tensors_find(tensors, names[i]);
        const bool is_packed = scales->format == ASSAY_I32;
        const int64_t columns = scales->shape[scales->rank - 1];
        for (int64_t e = 0; e < assay_tensor_elements(scales); e++) {
            const uint32_t step = (uint32_t)(e % columns % 3);
            const uint32_t change = is_packed ? UINT32_C(0x00010203) : step << 23;
            assay_tensor_set_bits(scales, e, assay_tensor_bits(scales, e) + change);
        }
    }
}

/* Judged by the bound alone, so the test has to say that the sums are the same. */
START_TEST(another_order_of_k_leaves_exact_sums_as_they_are)
{
    static const char *const exact[] = {
        "fp8_gemm_nt m=66 n=72 k=400 out=f32 data=exact",
        "fp8_gemm_nt m=66 n=72 k=400 recipe=1d1d out=f32 data=exact",
        "fp8_gemm_nt m=66 n=72 k=400 recipe=mx out=f32 data=exact",
        "m_grouped_fp8_gemm_nt_contiguous group_m=70,3 n=72 k=400 out=f32 data=exact",
        "m_grouped_fp8_gemm_nt_masked groups=1 m_max=128 n=8 k=272 masked_m=9 data=exact",
    };
    static const char *const orders[] = { "columns", "blocks" };
    for (int i = 0; i < 2 * 5; i++) {
        struct related_case *const related =
            open_related(exact[i / 2], orders[i % 2], step_scales);
        ck_assert(related != NULL);
        ck_assert(assay_inputs_hash(&related->first.tensors) !=
                  assay_inputs_hash(&related->second.tensors));
        run_model(&related->first);
        run_model(&related->second);
        ck_assert_msg(
            assay_tensor_hash(assay_tensors_find(&related->first.tensors, "d")) ==
                assay_tensor_hash(assay_tensors_find(&related->second.tensors, "d")),
            "%s: %s", exact[i / 2], orders[i % 2]);
        close_related(related);
    }
}
END_TEST

/* A scale times a power of two could pass through a division by the largest unseen. */
START_TEST(groups_that_change_have_scales_with_other_significands)
{
    struct related_case *const related = open_related(
        "m_grouped_fp8_gemm_nt_contiguous group_m=3,5 n=8 k=16", "even-groups", NULL);
    ck_assert(related != NULL);
    const struct assay_tensor *const before =
        assay_tensors_find(&related->first.tensors, "sfa");
    const struct assay_tensor *const after =
        assay_tensors_find(&related->second.tensors, "sfa");
    for (int64_t row = 0; row < 3; row++)
        ck_assert((assay_tensor_bits(before, row) ^ assay_tensor_bits(after, row)) &
                  0x7FFFFF);
    for (int64_t row = 128; row < 133; row++)
        ck_assert(assay_tensor_bits(before, row) == assay_tensor_bits(after, row));
    close_related(related);
}
END_TEST

/* Where rounding tells the two runs apart, doubling says nothing. */
START_TEST(subnormal_data_have_no_bits_to_double)
{
    ck_assert_int_eq(
        expect_model_keeps_to("fp8_gemm_nt m=66 n=72 k=272 out=f32 data=subnormal",
                              "doubling"),
        0);
}
END_TEST

static void make_c_extreme(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const c = assay_tensors_find(tensors, "c");
    for (int64_t i = 0; i < assay_tensor_elements(c); i++)
        assay_tensor_set_bits(c, i, i % 2 ? 0x00012345 : 0x7E800000);
}

/* A kernel may take the one for zero, and have no room for twice the other. */
START_TEST(subnormal_and_huge_c_have_no_bits_to_double)
{
    struct related_case *const related = open_related(
        "fp8_gemm_nt m=3 n=8 k=16 recipe=1d1d out=f32 c=1", "doubling", make_c_extreme);
    ck_assert(related != NULL);
    const struct related_verdict verdict = judge_related(related, NULL);
    ck_assert(verdict.judged == 0 && verdict.outside == 0);
    close_related(related);
}
END_TEST

START_TEST(relations_that_say_nothing_about_a_case_do_not_apply)
{
    static const char *const rows[][2] = {
        { "fp8_gemm_nt m=1 n=8 k=16", "rows" },
        { "fp8_gemm_nt m=1 n=8 k=16", "fewer-rows" },
        { "fp8_gemm_nt m=4 n=8 k=0", "columns" },
        { "fp8_gemm_nt m=4 n=8 k=240", "blocks" },
        { "fp8_gemm_nt m=4 n=8 k=256 recipe=tensor", "blocks" },
        { "m_grouped_fp8_gemm_nt_contiguous group_m=3,0,5 n=8 k=16", "odd-groups" },
        { "m_grouped_fp8_gemm_nt_contiguous group_m=128,256 n=8 k=16", "nobody" },
        { "m_grouped_fp8_gemm_nt_masked groups=2 m_max=128 n=8 k=16 masked_m=1,1",
          "fewer-rows" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_msg(!relate(rows[i][0], rows[i][1], NULL).applies, "%s: %s", rows[i][0],
                      rows[i][1]);
}
END_TEST

static void label_rows_otherwise(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const labels = assay_tensors_find(tensors, "m_indices");
    assay_tensor_set_bits(labels, 1, UINT32_MAX);
}

/* Recorded inputs may label rows in ways that the case cannot say. */
START_TEST(groups_that_lie_otherwise_than_the_case_says_are_left_alone)
{
    static const char line[] =
        "m_grouped_fp8_gemm_nt_contiguous group_m=3,5 n=8 k=16 seed=1";
    ck_assert(open_related(line, "odd-groups", label_rows_otherwise) == NULL);
    struct related_case *const related =
        open_related(line, "nobody", label_rows_otherwise);
    ck_assert(related != NULL);
    const struct related_verdict verdict = judge_related(related, NULL);
    ck_assert(verdict.wrong == 0 && verdict.outside == 0 && verdict.judged == 7 * 8);
    close_related(related);
}
END_TEST

/* --- plain kernels ------------------------------------------------------------------ */

enum fault {
    NO_FAULT,
    IN_DOUBLE,          /* right, and rounded once */
    FLUSHED,            /* right but for subnormal numbers, which become zeros */
    FIXED_POINT_SCALES, /* multiples of 2^-30 */
    ROUNDED_DOWN,
    LATE_ROWS_BACKWARDS, /* K order by place in the call */
    FEW_ROWS_SPLIT,      /* K in two parts where rows are few */
    TAIL_IGNORED,        /* the last 16 columns */
    SHARED_MAXIMUM,      /* scales are multiples of 2^-20 of the largest */
};
static enum fault fault;

struct operands { /* of one output */
    const struct assay_tensor *a, *b, *sfa, *sfb;
    int64_t row, column, rows, granularity;
    float maximum;
};

static float f32_at(const struct assay_tensor *tensor, int64_t row, int64_t column)
{
    const uint32_t bits = assay_tensor_bits(tensor, row * tensor->shape[1] + column);
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static float code_at(const struct assay_tensor *tensor, int64_t row, int64_t column)
{
    return (float)assay_minifloat_decode(
        assay_minifloat(tensor->format),
        assay_tensor_bits(tensor, row * tensor->shape[1] + column));
}

static float scale_of(const struct operands *of, int64_t k)
{
    const bool is_one = of->sfa->shape[0] == 1 && of->sfa->shape[1] == 1;
    float a = f32_at(of->sfa, is_one ? 0 : of->row, is_one ? 0 : k / 128);
    const float b =
        f32_at(of->sfb, is_one ? 0 : of->column / of->granularity, is_one ? 0 : k / 128);
    if (fault == FIXED_POINT_SCALES) a = roundf(a * 0x1p30f) * 0x1p-30f;
    if (fault == SHARED_MAXIMUM)
        a = roundf(a / of->maximum * 0x1p20f) * 0x1p-20f * of->maximum;
    return a * b;
}

static float summed(const struct operands *of, int64_t from, int64_t to, bool is_backward)
{
    float sum = 0;
    double exact = 0;
    for (int64_t i = from; i < to; i++) {
        const int64_t k = is_backward ? from + to - 1 - i : i;
        const float product = code_at(of->a, of->row, k) * code_at(of->b, of->column, k);
        sum = fmaf(scale_of(of, k), product, sum);
        exact += (double)scale_of(of, k) * (double)product;
    }
    if (fault == IN_DOUBLE && isnan(exact)) /* of either sign */
        return copysignf(NAN, code_at(of->b, of->column, 0));
    return fault == IN_DOUBLE ? (float)exact : sum;
}

static float flush(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

/* Blocks are summed without scales, then scaled by one after the other. */
static float flushed(const struct operands *of)
{
    float sum = 0;
    for (int64_t k = 0; k < of->a->shape[1]; k += 128) {
        float block = 0;
        for (int64_t i = k; i < k + 128 && i < of->a->shape[1]; i++)
            block += code_at(of->a, of->row, i) * code_at(of->b, of->column, i);
        const float half = flush(block * flush(f32_at(of->sfa, of->row, k / 128)));
        sum = flush(fmaf(half, flush(f32_at(of->sfb, of->column, k / 128)), sum));
    }
    return sum;
}

static float plain(const struct operands *of)
{
    const int64_t k = of->a->shape[1];
    if (fault == FLUSHED) return flushed(of);
    if (fault == TAIL_IGNORED) return summed(of, 0, k > 16 ? k - 16 : 0, false);
    if (fault == FEW_ROWS_SPLIT && of->rows < 8)
        return summed(of, 0, k / 2, false) + summed(of, k / 2, k, false);
    const float sum =
        summed(of, 0, k, fault == LATE_ROWS_BACKWARDS && of->row >= of->rows / 2);
    return fault == ROUNDED_DOWN ? nextafterf(sum, -INFINITY) : sum;
}

static void store(const struct assay_tensor *d, int64_t element, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    ck_assert(d->format == ASSAY_F32);
    assay_tensor_set_bits(d, element, bits);
}

/* The largest scale there is: fmaxf leaves NaN out. */
static float maximum_of(const struct assay_tensor *sfa)
{
    float maximum = 0;
    for (int64_t i = 0; i < assay_tensor_elements(sfa); i++) {
        const uint32_t bits = assay_tensor_bits(sfa, i);
        float value;
        memcpy(&value, &bits, sizeof(value));
        maximum = fmaxf(maximum, value);
    }
    return maximum;
}

/* fp8_gemm_nt and m_grouped_fp8_gemm_nt_contiguous with f32 scales, no c. */
static void plain_kernel(const struct related_run *run)
{
    const struct assay_tensors *const tensors = &run->tensors;
    const struct assay_tensor *const d = assay_tensors_find(tensors, "d");
    const struct assay_tensor *const labels = assay_tensors_find(tensors, "m_indices");
    struct assay_tensor b = *assay_tensors_find(tensors, "b");
    struct assay_tensor sfb = *assay_tensors_find(tensors, "sfb");
    struct operands of = { .a = assay_tensors_find(tensors, "a"),
                           .b = &b,
                           .sfa = assay_tensors_find(tensors, "sfa"),
                           .sfb = &sfb,
                           .rows = d->shape[0] };
    of.maximum = maximum_of(of.sfa);
    for (of.row = 0; of.row < d->shape[0]; of.row++) {
        if (labels) {
            const int32_t group = (int32_t)assay_tensor_bits(labels, of.row);
            if (group < 0) continue;
            b = assay_tensor_slice(assay_tensors_find(tensors, "b"), group);
            sfb = assay_tensor_slice(assay_tensors_find(tensors, "sfb"), group);
        }
        of.granularity = sfb.shape[0] < b.shape[0] ? 128 : 1;
        for (of.column = 0; of.column < d->shape[1]; of.column++)
            store(d, of.row * d->shape[1] + of.column, plain(&of));
    }
}

START_TEST(plain_kernels_keep_to_every_relation)
{
    static const char *const lines[] = {
        "fp8_gemm_nt m=9 n=24 k=272 out=f32 a_stride=288 seed=1",
        "fp8_gemm_nt m=9 n=24 k=272 recipe=1d1d out=f32 data=cancel seed=2",
        "fp8_gemm_nt m=9 n=24 k=272 recipe=1d1d out=f32 a_format=e5m2 data=wide seed=3",
        "fp8_gemm_nt m=5 n=8 k=144 recipe=tensor out=f32 b_format=e5m2 data=wide seed=4",
        "fp8_gemm_nt m=9 n=24 k=272 recipe=1d1d out=f32 data=special seed=5",
        "fp8_gemm_nt m=9 n=24 k=272 recipe=1d1d out=f32 data=subnormal seed=6",
        "m_grouped_fp8_gemm_nt_contiguous group_m=5,0,3,2 n=24 k=272 out=f32 seed=7",
    };
    static const enum fault right[] = { NO_FAULT, IN_DOUBLE };
    for (size_t i = 0; i < 2 * sizeof(lines) / sizeof(lines[0]); i++) {
        const char *const line = lines[i / 2];
        const struct assay_case the_case = parsed(line);
        fault = right[i % 2];
        for (const struct assay_property *p = the_case.operation->properties; p->name;
             p++) {
            const struct related_verdict verdict = relate(line, p->name, plain_kernel);
            ck_assert_msg(verdict.wrong == 0, "%s: %s: element %lld is %x, not %x", line,
                          p->name, (long long)verdict.element, verdict.found,
                          verdict.wanted);
            ck_assert_msg(verdict.touched == 0 &&
                              (verdict.outside == 0 || verdict.first_outside > 0),
                          "%s: %s", line, p->name);
        }
    }
}
END_TEST

/* Exponents of a row's scales from one end of f32 to the other, subnormal and infinite
 * ones included; those of b stay near 2^-10, 2^60 or 2^-60. */
static int64_t other_exponent;

static void spread_scales(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const sfa = assay_tensors_find(tensors, "sfa");
    const struct assay_tensor *const sfb = assay_tensors_find(tensors, "sfb");
    const int64_t rows = sfa->shape[0], blocks = sfa->shape[1];
    for (int64_t i = 0; i < assay_tensor_elements(sfa); i++) {
        const int64_t exponent = (i / blocks * 256 + i % blocks) / rows;
        const uint32_t bits = assay_tensor_bits(sfa, i) & 0x7FFFFF;
        assay_tensor_set_bits(sfa, i, bits | (uint32_t)exponent << 23);
    }
    for (int64_t i = 0; i < assay_tensor_elements(sfb); i++) {
        const uint32_t bits = assay_tensor_bits(sfb, i) & 0x7FFFFF;
        assay_tensor_set_bits(sfb, i, bits | (uint32_t)(127 + other_exponent) << 23);
    }
}

START_TEST(doubling_stops_before_anything_leaves_the_normal_range)
{
    static const int64_t exponents[] = { -10, 60, -60 };
    static const enum fault right[] = { NO_FAULT, IN_DOUBLE, FLUSHED };
    static const char line[] =
        "fp8_gemm_nt m=256 n=8 k=272 recipe=1d1d out=f32 data=cancel seed=8";
    for (int i = 0; i < 3 * 4; i++) {
        other_exponent = exponents[i / 4];
        if (i % 4 < 3) fault = right[i % 4];
        struct related_case *const related =
            open_related(line, "doubling", spread_scales);
        const struct related_verdict verdict =
            judge_related(related, i % 4 < 3 ? plain_kernel : NULL);
        ck_assert_msg(verdict.wrong == 0, "2^%lld: element %lld is %x, not %x",
                      (long long)other_exponent, (long long)verdict.element,
                      verdict.found, verdict.wanted);
        ck_assert_int_ge(verdict.judged, 256 * 8 / 4);
        ck_assert_int_le(verdict.judged, 256 * 8 * 3 / 4);
        close_related(related);
    }
}
END_TEST

static void empty_tail(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const a = assay_tensors_find(tensors, "a");
    for (int64_t i = 0; i < assay_tensor_elements(a); i++)
        if (i % a->shape[1] >= a->shape[1] - 16) assay_tensor_set_bits(a, i, 0);
}

/* Each is within the bound of the case, and found out by the relation without the
 * model. */
START_TEST(kernels_that_are_wrong_within_the_bound_break_their_relation)
{
    static const char one[] = "fp8_gemm_nt m=12 n=24 k=256 recipe=1d1d out=f32 seed=1";
    static const char many[] =
        "m_grouped_fp8_gemm_nt_contiguous group_m=5,4,3 n=24 k=256 out=f32 seed=3";
    static const struct {
        const char *line, *property;
        enum fault fault;
    } rows[] = {
        { one, "doubling", FIXED_POINT_SCALES }, { many, "doubling", FIXED_POINT_SCALES },
        { one, "negation", ROUNDED_DOWN },       { many, "negation", ROUNDED_DOWN },
        { one, "rows", LATE_ROWS_BACKWARDS },    { one, "fewer-rows", FEW_ROWS_SPLIT },
        { one, "columns", TAIL_IGNORED },        { one, "blocks", TAIL_IGNORED },
        { many, "columns", TAIL_IGNORED },       { many, "blocks", TAIL_IGNORED },
        { many, "even-groups", SHARED_MAXIMUM }, { many, "odd-groups", SHARED_MAXIMUM },
        { many, "nobody", SHARED_MAXIMUM },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct related_case *const related =
            open_related(rows[i].line, rows[i].property,
                         rows[i].fault == TAIL_IGNORED ? empty_tail : NULL);
        ck_assert(related != NULL);
        fault = rows[i].fault;
        const struct related_verdict verdict = judge_related(related, plain_kernel);
        ck_assert_msg(is_caught(&verdict), "%s: %s: %lld wrong, %lld and %lld outside",
                      rows[i].line, rows[i].property, (long long)verdict.wrong,
                      (long long)verdict.outside, (long long)verdict.first_outside);
        close_related(related);
    }
}
END_TEST

/* --- what matters ------------------------------------------------------------------- */

static int64_t used_of(const char *line, const char *name)
{
    struct related_run run = { .the_case = parsed(line) };
    const struct assay_operation *const operation = run.the_case.operation;
    int64_t used = 0;
    open_related_run(&run);
    operation->fill(&run.problem, run.the_case.data, run.the_case.seed, &run.tensors);
    for (int i = 0; i < run.tensors.count; i++) {
        const struct assay_tensor *const tensor = &run.tensors.item[i];
        const int64_t elements = assay_tensor_elements(tensor);
        if (strcmp(tensor->name, name) != 0) continue;
        uint8_t *const is_used = calloc((size_t)elements + 1, 1);
        operation->used(&run.problem, &run.tensors, i, is_used);
        for (int64_t e = 0; e < elements; e++)
            used += is_used[e];
        free(is_used);
    }
    assay_buffers_close(&run.buffers);
    return used;
}

START_TEST(rows_of_nobody_and_groups_without_rows_are_not_used)
{
    static const char contiguous[] =
        "m_grouped_fp8_gemm_nt_contiguous group_m=130,0,7 n=136 k=272";
    static const char masked[] =
        "m_grouped_fp8_gemm_nt_masked groups=3 m_max=128 n=136 k=272 masked_m=0,7,128";
    ck_assert_int_eq(used_of(contiguous, "a"), 137 * 272);
    ck_assert_int_eq(used_of(contiguous, "sfa"), 137 * 3);
    ck_assert_int_eq(used_of(contiguous, "b"), 2 * 136 * 272);
    ck_assert_int_eq(used_of(contiguous, "sfb"), 2 * 2 * 3);
    ck_assert_int_eq(used_of(contiguous, "m_indices"), 384);
    ck_assert_int_eq(used_of(masked, "a"), 135 * 272);
    ck_assert_int_eq(used_of(masked, "sfa"), 135 * 3);
    ck_assert_int_eq(used_of(masked, "b"), 2 * 136 * 272);
    ck_assert_int_eq(used_of(masked, "sfb"), 2 * 2 * 3);
    ck_assert_int_eq(used_of(masked, "masked_m"), 3);
    ck_assert_int_eq(
        used_of("m_grouped_fp8_gemm_nt_masked groups=2 m_max=0 n=8 k=0 masked_m=0,0",
                "a"),
        0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        model_keeps_to_every_relation_of_dense_gemms_for_all_kinds_of_data,
        model_keeps_to_every_relation_of_grouped_gemms_for_all_kinds_of_data,
        empty_tensors_have_no_relation_to_break,
        model_keeps_to_every_relation_in_drawn_cases,
        relations_to_the_bit_judge_every_element_of_normal_data,
        another_order_of_k_leaves_exact_sums_as_they_are,
        groups_that_change_have_scales_with_other_significands,
        subnormal_data_have_no_bits_to_double,
        subnormal_and_huge_c_have_no_bits_to_double,
        relations_that_say_nothing_about_a_case_do_not_apply,
        groups_that_lie_otherwise_than_the_case_says_are_left_alone,
        plain_kernels_keep_to_every_relation,
        doubling_stops_before_anything_leaves_the_normal_range,
        kernels_that_are_wrong_within_the_bound_break_their_relation,
        rows_of_nobody_and_groups_without_rows_are_not_used,
        NULL,
    };
    openblas_set_num_threads(1);
    return run_tests("gemm_properties", tests);
}
