/* SPDX-License-Identifier: MIT */
/* Of data, the elements that matter are left among zeros, with simple values. */
#include "fuzz/fault/fault.h"
#include "tests/fuzz/shrink_subject.h"
#include "verify/check/inputs.h"

static float input(const struct assay_run_call *call, const char *name, int64_t row,
                   int64_t column)
{
    const struct assay_tensor *const tensor = assay_tensors_find(call->tensors, name);
    if (row >= tensor->shape[0] || column >= tensor->shape[1]) return 0;
    return assay_fault_value(tensor, row * tensor->shape[1] + column);
}

static bool meets(struct subject *subject, const struct assay_run_call *call)
{
    (void)subject;
    return input(call, "a", 1, 17) < 0 && input(call, "b", 3, 2) > 1;
}

START_TEST(elements_that_matter_are_found_among_zeros)
{
    struct subject subject = { meets, ASSAY_RAN, 0 };
    for (int seed = 1; seed == 1 || outcome.end == ASSAY_SHRINK_PASSES; seed++) {
        char given[64];
        ck_assert_int_lt(seed, 100); /* one data in eight meets it */
        snprintf(given, sizeof(given), "fp8_gemm_nt m=9 n=16 k=256 seed=%d", seed);
        assay_shrink_outcome_close(&outcome);
        ck_assert_int_eq(shrink(&subject, given, 0), ASSAY_RAN);
    }
    const struct assay_case *const smallest = &outcome.smallest;
    const char *const line = line_of(smallest);
    ck_assert_msg(smallest->explicit_bits_count == 2, "%s", line);
    ck_assert_msg(strstr(line, "m=2 n=8 k=32 data=zero") && strstr(line, "a.1.17:b8") &&
                      strstr(line, "b.3.2:"),
                  "%s", line);
    assay_shrink_outcome_close(&outcome);
}
END_TEST

/* More than a line can name. */
static int64_t others_than_zero(const struct assay_run_call *call)
{
    const struct assay_tensor *const a = assay_tensors_find(call->tensors, "a");
    int64_t others = 0;
    for (int64_t i = 0; a->shape[0] > 0 && i < a->shape[1]; i++)
        others += (assay_tensor_bits(a, i) & 0x7f) != 0;
    return others;
}

static bool is_full_row(struct subject *subject, const struct assay_run_call *call)
{
    (void)subject;
    return others_than_zero(call) > 70;
}

/* A line could name them, and would be the longer for it. */
static bool has_twenty(struct subject *subject, const struct assay_run_call *call)
{
    (void)subject;
    return others_than_zero(call) >= 20;
}

START_TEST(data_that_matter_as_a_whole_stay)
{
    expect((struct subject){ is_full_row, ASSAY_RAN, 0 },
           "fp8_gemm_nt m=9 n=16 k=256 data=uniform seed=40",
           "fp8_gemm_nt m=1 n=8 k=80 seed=1");
}
END_TEST

START_TEST(a_seed_is_shorter_than_many_elements)
{
    expect((struct subject){ has_twenty, ASSAY_RAN, 0 },
           "fp8_gemm_nt m=9 n=16 k=256 seed=40", "fp8_gemm_nt m=1 n=8 k=32 seed=1");
}
END_TEST

static bool is_above_a_third(struct subject *subject, const struct assay_run_call *call)
{
    (void)subject;
    return input(call, "a", 0, 0) > 0.3F;
}

START_TEST(one_is_the_simplest_value)
{
    expect((struct subject){ is_above_a_third, ASSAY_RAN, 0 },
           "fp8_gemm_nt m=2 n=8 k=32 data=zero seed=1 bits=a.0.0:45",
           "fp8_gemm_nt m=1 n=8 k=16 data=zero seed=1 bits=a.0.0:38");
}
END_TEST

START_TEST(explicit_elements_of_the_case_itself_are_kept_or_dropped)
{
    expect((struct subject){ meets, ASSAY_RAN, 0 },
           "fp8_gemm_nt m=2 n=8 k=32 data=zero seed=1 "
           "bits=a.0.0:40,a.1.17:c1,b.3.2:43,sfa.1.0:40400000",
           "fp8_gemm_nt m=2 n=8 k=32 data=zero seed=1 bits=a.1.17:b8,b.3.2:40");
}
END_TEST

static bool ends_negative(struct subject *subject, const struct assay_run_call *call)
{
    const struct assay_tensor *const a = assay_tensors_find(call->tensors, "a");
    (void)subject;
    bool found = false;
    for (int64_t i = 0; a->shape[0] > 0 && i < a->shape[1]; i++)
        found |= assay_tensor_bits(a, (a->shape[0] - 1) * a->shape[1] + i) > 0x80;
    return found;
}

START_TEST(explicit_elements_stay_at_the_end_of_what_shrinks)
{
    expect((struct subject){ ends_negative, ASSAY_RAN, 0 },
           "fp8_gemm_nt m=7 n=8 k=64 data=zero seed=1 bits=a.6.60:c1",
           "fp8_gemm_nt m=1 n=8 k=16 data=zero seed=1 bits=a.0.15:b8");
}
END_TEST

/* What a trial of the line is told by its inputs; their hash in @hash. */
static enum assay_status run_on(const char *line, const char *inputs_line, uint64_t *hash)
{
    struct subject subject = { is_full_row, ASSAY_RAN, 0 };
    const struct assay_trial_plan plan = plan_of(&subject);
    const struct assay_case the_case = parse(line), other = parse(inputs_line);
    union assay_problem_storage problem;
    struct assay_tensors inputs;
    struct assay_buffers buffers = { 0 };
    struct assay_message message;
    struct assay_result result;
    ck_assert_int_eq(
        assay_inputs_open(&other, NULL, 0, &problem, &inputs, &buffers, &message),
        ASSAY_RAN);
    assay_trial_run_on(&plan, &the_case, &inputs, &result);
    ck_assert(result.status != ASSAY_RAN ||
              result.input_hash == assay_inputs_hash(&inputs));
    ck_assert_str_eq(result.case_line, line);
    *hash = result.input_hash;
    const enum assay_status status = result.status;
    assay_result_close(&result);
    assay_buffers_close(&buffers);
    return status;
}

START_TEST(a_trial_takes_the_inputs_it_is_given)
{
    uint64_t own, others;
    const char *const zeros = "fp8_gemm_nt m=4 n=8 k=256 data=zero seed=1";
    ck_assert_int_eq(run_on(zeros, zeros, &own), ASSAY_RAN);
    ck_assert_int_eq(run_on(zeros, "fp8_gemm_nt m=4 n=8 k=256 seed=3", &others),
                     ASSAY_RAN);
    ck_assert_uint_ne(own, others);
    ck_assert_int_eq(run_on("mla_combine b=1 h_q=1 splits=2 seed=1",
                            "mla_combine b=1 h_q=1 splits=2 seed=1 unsafe=1 "
                            "bits=num_splits.1:9",
                            &others),
                     ASSAY_REFUSED);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        elements_that_matter_are_found_among_zeros,
        data_that_matter_as_a_whole_stay,
        a_seed_is_shorter_than_many_elements,
        one_is_the_simplest_value,
        explicit_elements_of_the_case_itself_are_kept_or_dropped,
        explicit_elements_stay_at_the_end_of_what_shrinks,
        a_trial_takes_the_inputs_it_is_given,
        NULL
    };
    return run_tests("shrink_elements", tests);
}
