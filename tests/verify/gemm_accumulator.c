/* SPDX-License-Identifier: MIT */
/* Relation "full-accumulator": integers that a kernel of the class must add exactly, in
 * whatever order, and that a narrower accumulator can't hold. */
#include "tests/harness.h"
#include "tests/verify/related_case.h"

#include <cblas.h>

static const char relation[] = "full-accumulator";

static int64_t value_at(const struct assay_tensor *tensor, int64_t row, int64_t k,
                        double unit)
{
    const uint32_t bits = assay_tensor_bits(tensor, row * tensor->shape[1] + k);
    const double value = assay_minifloat_decode(assay_minifloat(tensor->format), bits);
    /* An assertion that holds is not free, and this is asked a million times. */
    if (value * unit != (double)(int64_t)(value * unit)) ck_abort_msg("%g", value);
    return (int64_t)(value * unit);
}

/* Of the second run: the exact product of the codes, an integer. */
static int64_t product_at(const struct related_run *run, int64_t row, int64_t column,
                          int64_t k)
{
    const struct assay_tensor *const a = assay_tensors_find(&run->tensors, "a");
    const struct assay_tensor *const b = assay_tensors_find(&run->tensors, "b");
    const int64_t units = value_at(a, row, k, 0x1p14) * value_at(b, column, k, 0x1p14);
    if (units % (1 << 28)) ck_abort_msg("%lld", (long long)units);
    return units / (1 << 28);
}

/* --- the model ---------------------------------------------------------------------- */

/* Numerics, and what they keep: bits below the leading one, and products a chain. */
static const struct {
    const char *keys;
    int bits;
    int64_t chain;
} classes[] = {
    { "", 13, 128 },
    { "out=f32", 13, 128 },
    { "recipe=1d1d out=f32 c=1", 13, 128 },
    { "recipe=tensor out=f32", 13, 128 },
    { "recipe=tensor as=cublaslt-fast", 13, 0 },
    { "recipe=tensor out=f32 as=cublaslt-fast", 13, 0 },
    { "out=f32 a_format=e5m2 b_format=e5m2", 13, 128 },
    { "out=f32 as=deepgemm-1d2d,promote_k=32", 13, 32 },
    { "out=f32 as=deepgemm-1d2d,result_bits=11", 11, 128 },
    { "out=f32 as=deepgemm-1d2d,align_bits=10", 10, 128 },
    { "out=f32 as=deepgemm-1d2d,k_order=descending,scale_form=b-then-a", 13, 128 },
    { "out=f32 as=deepgemm-1d2d,unit=ada-fp8", 13, 128 },
    { "recipe=tensor out=f32 as=cublaslt-fast,unit=hopper-mma-fp8", 23, 0 },
    { "out=f32 a_format=e5m2 b_format=e5m2 as=deepgemm-1d2d,unit=blackwell-fp8", 23,
      128 },
    { "recipe=mx out=f32", 23, 0 },
    { "recipe=mx gran_k=32 out=f32 a_format=e2m1 b_format=e5m2", 23, 0 },
};
enum { CLASSES = sizeof(classes) / sizeof(classes[0]) };

static struct related_case *opened(int class, int64_t k)
{
    char line[512];
    snprintf(line, sizeof(line), "fp8_gemm_nt m=3 n=8 k=%lld %s seed=2", (long long)k,
             classes[class].keys);
    struct related_case *const related = open_related(line, relation, NULL);
    ck_assert_msg(related != NULL, "%s", line);
    return related;
}

/* The first of the columns has no negative products in rows of even number. */
static void expect_full_chains(const struct related_run *run, int class, int64_t k)
{
    const int64_t most = INT64_C(2) << classes[class].bits;
    const int64_t length =
        classes[class].chain && classes[class].chain < k ? classes[class].chain : k;
    for (int64_t row = 0; row < 3; row++) {
        int64_t sum = 0;
        for (int64_t i = 0; i < length; i++)
            sum += product_at(run, row, 0, i);
        sum = row % 2 ? -sum : sum;
        ck_assert_msg(sum >= most / 2 && sum < most && sum % 2 == 1, "%s k=%lld: %lld",
                      classes[class].keys, (long long)k, (long long)sum);
    }
}

/* In the second column the later half of a chain takes large products back, and leaves
 * the ones alone. */
static void expect_ones_to_be_left(const struct related_run *run, int class, int64_t k)
{
    const int64_t length =
        classes[class].chain && classes[class].chain < k ? classes[class].chain : k;
    int64_t sum = 0, ones = 0;
    for (int64_t i = 0; i < length; i++) {
        const int64_t product = product_at(run, 0, 1, i);
        sum += product;
        ones += product % 2;
        if (i >= length / 2 && (product > 0 || product % 2))
            ck_abort_msg("%lld", (long long)product);
    }
    ck_assert(sum == ones && ones % 2 == 1);
}

static void expect_exact_sums(const struct related_run *run, int64_t k)
{
    const struct assay_tensor *const d = assay_tensors_find(&run->tensors, "d");
    const struct assay_minifloat *const format = assay_minifloat(d->format);
    for (int64_t i = 0; i < assay_tensor_elements(d); i++) {
        int64_t sum = 0;
        for (int64_t at = 0; at < k; at++)
            sum += product_at(run, i / 8, i % 8, at);
        ck_assert(llabs(sum) <= 1 << 24);
        const uint32_t wanted =
            assay_minifloat_encode_f32(format, (float)sum, ASSAY_OVERFLOW_SPECIAL);
        ck_assert_msg(assay_tensor_bits(d, i) == wanted, "element %lld is %x, not %x",
                      (long long)i, assay_tensor_bits(d, i), wanted);
    }
}

START_TEST(model_adds_integers_that_just_fit_without_loss)
{
    static const int64_t lengths[] = { 1600, 2048, 4096, 4112 };
    for (int i = 0; i < CLASSES * 4; i++) {
        const int64_t k = lengths[i % 4];
        struct related_case *const related = opened(i / 4, k);
        const struct related_verdict verdict = judge_related(related, NULL);
        ck_assert(verdict.outside == 0 && verdict.touched == 0);
        expect_full_chains(&related->second, i / 4, k);
        expect_ones_to_be_left(&related->second, i / 4, k);
        expect_exact_sums(&related->second, k);
        close_related(related);
    }
}
END_TEST

START_TEST(thirteen_bits_are_filled_by_sixteen_products_already)
{
    static const int64_t lengths[] = { 16, 32, 48, 112, 128, 144, 256, 272 };
    for (int i = 0; i < 12 * 8; i++) {
        const int64_t k = lengths[i % 8];
        struct related_case *const related = opened(i / 8, k);
        const struct related_verdict verdict = judge_related(related, NULL);
        ck_assert(verdict.outside == 0);
        expect_full_chains(&related->second, i / 8, k);
        expect_ones_to_be_left(&related->second, i / 8, k);
        expect_exact_sums(&related->second, k);
        close_related(related);
    }
}
END_TEST

START_TEST(what_can_not_be_filled_is_left_alone)
{
    static const char *const lines[] = {
        "fp8_gemm_nt m=1 n=8 k=0",
        "fp8_gemm_nt m=1 n=8 k=16 recipe=mx",
        "fp8_gemm_nt m=1 n=8 k=256 recipe=mx a_format=e2m1 b_format=e2m1",
        "fp8_gemm_nt m=1 n=8 k=512 recipe=tensor as=cublaslt-fast,unit=blackwell-fp8",
        "fp8_gemm_nt m=1 n=8 k=256 as=deepgemm-1d2d,align_bits=1",
        NULL,
    };
    for (int i = 0; lines[i]; i++)
        ck_assert_msg(!relate(lines[i], relation, NULL).applies, "%s", lines[i]);
}
END_TEST

/* --- plain kernels ------------------------------------------------------------------ */

/* Chains of steps in integers, cut toward zero; then added in f32. */
struct units {
    int64_t chain, step;
    int align_bits, result_bits;
    bool is_backward, is_shuffled;
};
static struct units units;

static int exponent_of(int64_t value)
{
    return value ? ilogb((double)llabs(value)) : -1000;
}

static int64_t cut(int64_t value, int exponent)
{
    return exponent > 0 ? value / (INT64_C(1) << exponent) * (INT64_C(1) << exponent)
                        : value;
}

/* Element number @at of the order in which products are taken. */
static int64_t place_of(int64_t at, int64_t count)
{
    if (units.is_shuffled) at = at * 37 % count; /* a prime beside powers of two */
    return units.is_backward ? count - 1 - at : at;
}

static int64_t step_onto(const struct related_run *run, int64_t element, int64_t k0,
                         int64_t from, int64_t sum)
{
    int exponent = exponent_of(sum);
    for (int64_t i = from; i < from + units.step; i++) {
        const int64_t k = k0 + place_of(i, units.chain);
        const int of_product = exponent_of(product_at(run, element / 8, element % 8, k));
        if (of_product > exponent) exponent = of_product;
    }
    int64_t total = cut(sum, exponent - units.align_bits);
    for (int64_t i = from; i < from + units.step; i++) {
        const int64_t k = k0 + place_of(i, units.chain);
        total += cut(product_at(run, element / 8, element % 8, k),
                     exponent - units.align_bits);
    }
    return cut(total, exponent_of(total) - units.result_bits);
}

/* Whole chains, scales of 1: of second runs alone. */
static void plain_kernel(const struct related_run *run)
{
    const struct assay_tensor *const d = assay_tensors_find(&run->tensors, "d");
    const int64_t k = assay_tensors_find(&run->tensors, "a")->shape[1];
    for (int64_t i = 0; i < assay_tensor_elements(d); i++) {
        float sum = 0;
        for (int64_t k0 = 0; k0 < k; k0 += units.chain) {
            int64_t chain = 0;
            for (int64_t from = 0; from < units.chain; from += units.step)
                chain = step_onto(run, i, k0, from, chain);
            sum += (float)chain;
        }
        assay_tensor_set_bits(d, i,
                              assay_minifloat_encode_f32(assay_minifloat(d->format), sum,
                                                         ASSAY_OVERFLOW_SPECIAL));
    }
}

static int64_t wrong_elements(const char *keys, struct units of)
{
    char line[256];
    snprintf(line, sizeof(line), "fp8_gemm_nt m=2 n=8 k=1024 %s seed=1", keys);
    struct related_case *const related = open_related(line, relation, NULL);
    ck_assert(related != NULL);
    units = of;
    plain_kernel(&related->second);
    uint8_t *const map = map_of(&related->second, 4);
    const int64_t outside = outside_bound(&related->second, 4, map);
    free(map);
    close_related(related);
    return outside;
}

static const char *const outputs[] = { "", "out=f32", "recipe=tensor",
                                       "recipe=tensor out=f32" };
enum { OUTPUTS = 4 };

START_TEST(accumulators_of_the_class_lose_nothing_in_any_order)
{
    static const struct units right[] = {
        { 128, 32, 13, 13, false, false },  { 128, 32, 13, 13, true, false },
        { 128, 16, 13, 13, false, false },  { 128, 128, 13, 13, false, false },
        { 128, 32, 13, 13, false, true },   { 128, 1, 13, 13, false, true },
        { 128, 8, 13, 13, true, true },     { 32, 32, 13, 13, false, false },
        { 64, 16, 14, 13, true, false },    { 128, 32, 25, 23, false, false },
        { 1024, 32, 25, 23, false, false }, { 1024, 1, 25, 23, true, true },
    };
    for (size_t i = 0; i < OUTPUTS * sizeof(right) / sizeof(right[0]); i++)
        ck_assert_msg(wrong_elements(outputs[i % OUTPUTS], right[i / OUTPUTS]) == 0,
                      "%s: kernel %d", outputs[i % OUTPUTS], (int)(i / OUTPUTS));
}
END_TEST

START_TEST(coarser_accumulators_lose_bits_that_outputs_show)
{
    static const struct units wrong[] = {
        { 128, 32, 13, 12, false, false }, { 128, 32, 13, 12, true, false },
        { 128, 32, 12, 13, false, false }, { 128, 32, 12, 13, true, false },
        { 128, 64, 12, 12, false, false }, { 128, 32, 10, 10, true, false },
        { 512, 32, 13, 13, false, false }, { 1024, 32, 13, 13, true, false },
        { 128, 16, 12, 13, false, false }, { 128, 16, 13, 12, true, false },
    };
    for (size_t i = 0; i < OUTPUTS * sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_msg(wrong_elements(outputs[i % OUTPUTS], wrong[i / OUTPUTS]) > 0,
                      "%s: kernel %d", outputs[i % OUTPUTS], (int)(i / OUTPUTS));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        model_adds_integers_that_just_fit_without_loss,
        thirteen_bits_are_filled_by_sixteen_products_already,
        what_can_not_be_filled_is_left_alone,
        accumulators_of_the_class_lose_nothing_in_any_order,
        coarser_accumulators_lose_bits_that_outputs_show,
        NULL,
    };
    openblas_set_num_threads(1);
    return run_tests("gemm_accumulator", tests);
}
