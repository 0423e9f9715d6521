/* SPDX-License-Identifier: MIT */
/* GEMMs that no setting of the knobs computes stay unexplained: plain arithmetic written
 * here, with nothing of the model. Their outputs are f32, so that one rounding shows. */
#include "ref/format/minifloat.h"
#include "tests/harness.h"
#include "tests/verify/searched_case.h"

#include <math.h>

enum { K = 512 };

typedef float sum_of_products(const float *a, const float *b);

static float sequential(const float *a, const float *b)
{
    float sum = 0;
    for (int k = 0; k < K; k++)
        sum = sum + a[k] * b[k];
    return sum;
}

static float pairwise(const float *a, const float *b)
{
    float sum[K];
    for (int k = 0; k < K; k++)
        sum[k] = a[k] * b[k];
    for (int half = K / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++)
            sum[k] = sum[k] + sum[k + half];
    return sum[0];
}

static float kahan(const float *a, const float *b)
{
    float sum = 0, lost = 0;
    for (int k = 0; k < K; k++) {
        const float term = a[k] * b[k] - lost;
        const float next = sum + term;
        lost = (next - sum) - term;
        sum = next;
    }
    return sum;
}

static float in_f64(const float *a, const float *b)
{
    double sum = 0;
    for (int k = 0; k < K; k++)
        sum += (double)a[k] * (double)b[k];
    return (float)sum;
}

static float to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    bits += 0x7FFF + (bits >> 16 & 1);
    bits &= UINT32_C(0xFFFF0000);
    memcpy(&value, &bits, sizeof(bits));
    return value;
}

static float in_bf16(const float *a, const float *b)
{
    float sum = 0;
    for (int k = 0; k < K; k++)
        sum = to_bf16(sum + a[k] * b[k]);
    return sum;
}

static void decode_row(const struct assay_tensor *tensor, int64_t row, float *values)
{
    const struct assay_minifloat *const codec = assay_minifloat(tensor->format);
    for (int64_t k = 0; k < K; k++)
        values[k] =
            (float)assay_minifloat_decode(codec, assay_tensor_bits(tensor, row * K + k));
}

static float scale_of(const struct searched *searched, const char *name)
{
    const uint32_t bits =
        assay_tensor_bits(assay_tensors_find(&searched->tensors, name), 0);
    float scale;
    memcpy(&scale, &bits, sizeof(scale));
    return scale;
}

static void write_gemm(struct searched *searched, sum_of_products *sum)
{
    struct assay_tensor *const d = searched_output(searched);
    const float scale = scale_of(searched, "sfa") * scale_of(searched, "sfb");
    for (int64_t at = 0; at < assay_tensor_elements(d); at++) {
        float a[K], b[K];
        decode_row(assay_tensors_find(&searched->tensors, "a"), at / d->shape[1], a);
        decode_row(assay_tensors_find(&searched->tensors, "b"), at % d->shape[1], b);
        const float value = sum(a, b) * scale;
        uint32_t bits;
        memcpy(&bits, &value, sizeof(bits));
        assay_tensor_set_bits(d, at, bits);
    }
}

static void check_unexplained(sum_of_products *sum, bool with_pairs)
{
    struct searched *const searched = open_searched(
        "fp8_gemm_nt m=16 n=16 k=512 recipe=tensor out=f32 data=wide seed=2");
    struct assay_knob_search search;
    write_gemm(searched, sum);
    search_case(searched, with_pairs, &search);
    ck_assert_int_eq(search.fits, 0);
    ck_assert(!search.was_cut_short);
    ck_assert_int_gt(search.tried, 200);
    assay_knob_search_close(&search);
    close_searched(searched);
}

START_TEST(a_sequential_f32_sum_is_unexplained)
{
    check_unexplained(sequential, true);
}
END_TEST

START_TEST(a_pairwise_f32_sum_is_unexplained)
{
    check_unexplained(pairwise, false);
}
END_TEST

START_TEST(a_compensated_f32_sum_is_unexplained)
{
    check_unexplained(kahan, false);
}
END_TEST

START_TEST(an_f64_sum_is_unexplained)
{
    check_unexplained(in_f64, false);
}
END_TEST

START_TEST(a_bf16_sum_is_unexplained)
{
    check_unexplained(in_bf16, false);
}
END_TEST

/* The kernels above are right but for their rounding: on small integers, whose sums never
 * round, they equal the named numerics. */
START_TEST(on_exact_data_a_foreign_sum_fits)
{
    struct searched *const searched = open_searched(
        "fp8_gemm_nt m=16 n=16 k=512 recipe=tensor out=f32 data=exact seed=2");
    static sum_of_products *const sums[] = { sequential, pairwise, kahan, in_f64 };
    for (int i = 0; i < 4; i++) {
        struct assay_knob_search search;
        write_gemm(searched, sums[i]);
        search_case(searched, false, &search);
        ck_assert_int_gt(search.fits, 20);
        ck_assert(search.space.item[0].state == ASSAY_SETTING_FITS);
        assay_knob_search_close(&search);
    }
    close_searched(searched);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_sequential_f32_sum_is_unexplained,
        a_pairwise_f32_sum_is_unexplained,
        a_compensated_f32_sum_is_unexplained,
        an_f64_sum_is_unexplained,
        a_bf16_sum_is_unexplained,
        on_exact_data_a_foreign_sum_fits,
        NULL,
    };
    return run_tests("knob_foreign", tests);
}
