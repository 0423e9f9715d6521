/* SPDX-License-Identifier: MIT */
/* The search for settings that reproduce given bits. */
#include "tests/harness.h"
#include "tests/verify/knob_variants.h"

START_TEST(every_variant_of_a_gemm_is_found_with_all_that_equals_it)
{
    check_all_variants("fp8_gemm_nt m=8 n=8 k=256 recipe=tensor out=f32 seed=3", 1, 40);
    check_all_variants("fp8_gemm_nt m=8 n=8 k=256 seed=3", 1, 20);
    check_all_variants("fp8_gemm_nt m=8 n=16 k=256 recipe=1d1d out=f32 c=1 seed=3", 1,
                       40);
    check_all_variants("fp8_gemm_nt m=8 n=8 k=256 recipe=mx seed=3", 1, 10);
}
END_TEST

START_TEST(twenty_pairs_of_knobs_are_found)
{
    static const char *const pairs[] = {
        "cublaslt-promoted,promote_k=64,k_order=descending",
        "cublaslt-promoted,promote_k=64,promotion=fused",
        "cublaslt-promoted,promote_k=32,scale_form=product-first",
        "cublaslt-promoted,promote_k=256,k_order=descending",
        "cublaslt-promoted,unit=ada-fp8,promote_k=64",
        "cublaslt-promoted,unit=hopper-mma-fp8,k_order=descending",
        "cublaslt-promoted,k_order=descending,out_rounding=toward-zero",
        "cublaslt-promoted,promote_k=32,out_rounding=toward-zero",
        "cublaslt-promoted,unit=blackwell-fp8,promote_k=32",
        "cublaslt-promoted,align_bits=11,k_order=descending",
        "cublaslt-promoted,align_bits=12,promote_k=64",
        "cublaslt-promoted,result_bits=12,promote_k=64",
        "cublaslt-promoted,align_bits=10,result_bits=12",
        "cublaslt-fast,k_order=descending,align_bits=12",
        "cublaslt-fast,k_order=descending,out_rounding=toward-zero",
        "cublaslt-fast,result_bits=11,k_order=descending",
        "deepgemm-1d2d,promote_k=64,k_order=descending",
        "deepgemm-1d2d,promote_k=32,scale_form=b-then-a",
        "deepgemm-1d2d,k_order=descending,scale_form=a-then-b",
        "deepgemm-1d2d,align_bits=11,promote_k=64",
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        struct searched *const searched =
            open_searched("fp8_gemm_nt m=8 n=8 k=512 recipe=tensor seed=5");
        struct assay_knob_search search;
        const uint64_t truth = bits_of_model(searched, pairs[i]);
        write_model(searched, pairs[i]);
        search_case(searched, true, &search);
        ck_assert_msg(search.fits > 0, "%s is not found", pairs[i]);
        for (int at = 0; at < search.space.count; at++) {
            char text[ASSAY_MAX_NUMERICS_TEXT];
            if (search.space.item[at].state != ASSAY_SETTING_FITS) continue;
            assay_numerics_format(search.space.operation, search.space.item[at].numerics,
                                  text, sizeof(text));
            ck_assert_msg(bits_of_model(searched, text) == truth, "%s: %s", pairs[i],
                          text);
        }
        assay_knob_search_close(&search);
        close_searched(searched);
    }
}
END_TEST

START_TEST(one_wrong_bit_anywhere_is_unexplained_and_the_share_says_how_near)
{
    struct searched *const searched =
        open_searched("fp8_gemm_nt m=130 n=136 k=64 recipe=tensor out=f32 seed=1");
    struct assay_tensor *const d = searched_output(searched);
    const int64_t elements = assay_tensor_elements(d);
    for (int64_t at = 0; at < elements; at += elements / 5) {
        struct assay_knob_search search;
        write_model(searched, "cublaslt-promoted");
        assay_tensor_set_bits(d, at, assay_tensor_bits(d, at) ^ 1);
        search_case(searched, false, &search);
        ck_assert_int_eq(search.fits, 0);
        ck_assert(assay_knob_search_count(&search, 0) == ASSAY_RAN);
        ck_assert_int_eq(search.space.item[0].whole.elements, elements);
        ck_assert_int_eq(search.space.item[0].whole.equal, elements - 1);
        assay_knob_search_close(&search);
    }
    close_searched(searched);
}
END_TEST

START_TEST(two_threads_find_what_one_finds)
{
    struct searched *const searched =
        open_searched("fp8_gemm_nt m=130 n=72 k=192 recipe=tensor out=f32 seed=1");
    struct assay_knob_search search[2];
    write_model(searched, "cublaslt-fast,k_order=descending");
    for (int i = 0; i < 2; i++) {
        omp_set_num_threads(i + 1);
        search_case(searched, false, &search[i]);
    }
    ck_assert_int_gt(search[0].fits, 0);
    ck_assert_int_eq(search[0].space.count, search[1].space.count);
    for (int i = 0; i < search[0].space.count; i++) {
        bool is_there = false;
        for (int j = 0; j < search[1].space.count && !is_there; j++)
            is_there = search[0].space.item[i].state == search[1].space.item[j].state &&
                       assay_knobs_are_equal(searched->the_case.operation,
                                             search[0].space.item[i].numerics,
                                             search[1].space.item[j].numerics);
        ck_assert(is_there);
    }
    assay_knob_search_close(&search[0]);
    assay_knob_search_close(&search[1]);
    close_searched(searched);
}
END_TEST

START_TEST(outputs_that_may_hold_anything_are_not_searched)
{
    struct searched *const searched = open_searched(
        "m_grouped_fp8_gemm_nt_masked groups=1 m_max=128 n=64 k=128 masked_m=0 seed=1");
    struct assay_knob_search search;
    search_case(searched, false, &search);
    ck_assert_int_eq(search.observation->judged, 0);
    ck_assert_int_eq(search.fits, 0);
    assay_knob_search_close(&search);
    close_searched(searched);
}
END_TEST

START_TEST(wide_ranges_are_tried_at_their_ends_powers_of_two_and_neighbours)
{
    static const int expected[] = { -3,  1,   2,   4,    8,    16,   32,  64,
                                    128, 256, 512, 1022, 1023, 1024, 1500 };
    const struct assay_knob knob = { .name = "wide", .minimum = -3, .maximum = 1500 };
    int values[ASSAY_MAX_KNOB_VALUES];
    const int count = assay_knob_values(&knob, 1023, values);
    ck_assert_int_eq(count, sizeof(expected) / sizeof(*expected));
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(values[i], expected[i]);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_variant_of_a_gemm_is_found_with_all_that_equals_it,
        twenty_pairs_of_knobs_are_found,
        one_wrong_bit_anywhere_is_unexplained_and_the_share_says_how_near,
        two_threads_find_what_one_finds,
        outputs_that_may_hold_anything_are_not_searched,
        wide_ranges_are_tried_at_their_ends_powers_of_two_and_neighbours,
        NULL,
    };
    return run_tests("knob_search", tests);
}
