/* SPDX-License-Identifier: MIT */
/* Relations of the test's own between two runs of fp8_gemm_nt, one of each kind, and a
 * trial that asks for them. */
#ifndef ASSAY_TESTS_VERIFY_OWN_RELATIONS_H
#define ASSAY_TESTS_VERIFY_OWN_RELATIONS_H

#include "tests/verify/rerun_backend.h"

static const char dense[] =
    "fp8_gemm_nt m=6 n=8 k=160 a_stride=176 out=f32 seed=5 bits=b.0.0:38";

static const struct assay_backend_claim deterministic = { .is_deterministic = true };
static const struct assay_backend_claim invariant = { .is_deterministic = true,
                                                      .is_batch_invariant = true };
static const struct assay_backend_claim numerics = { .has_numerics = true };
static const struct assay_backend_claim nothing = { .is_deterministic = false };

static inline const struct assay_tensor *find(const struct assay_property_run *run,
                                              const char *name)
{
    return assay_tensors_find(run->tensors, name);
}

static inline void copy(const struct assay_tensor *from, const struct assay_tensor *to)
{
    for (int64_t i = 0; i < assay_tensor_elements(to); i++)
        assay_tensor_set_bits(to, i, assay_tensor_bits(from, i));
}

static inline void copy_all(const struct assay_property_run *first,
                            const struct assay_property_run *second)
{
    for (int i = 0; i < second->tensors->count; i++)
        if (!second->tensors->item[i].is_output)
            copy(&first->tensors->item[i], &second->tensors->item[i]);
}

/* d(2 sfa) = 2 d(sfa), and no rounding tells the two apart. */
static inline bool double_sfa(const struct assay_property_run *first,
                              const struct assay_property_run *second)
{
    copy_all(first, second);
    const struct assay_tensor *const sfa = find(second, "sfa");
    for (int64_t i = 0; i < assay_tensor_elements(sfa); i++)
        assay_tensor_set_bits(sfa, i, assay_tensor_bits(sfa, i) + 0x00800000);
    return true;
}

static inline bool expect_doubled(const struct assay_property_run *first,
                                  const struct assay_property_run *second, int output,
                                  int64_t element, uint32_t *bits)
{
    ck_assert_str_eq(second->tensors->item[output].name, "d");
    *bits = assay_tensor_bits(&first->tensors->item[output], element) + 0x00800000;
    return true;
}

/* Three more rows, which are random; those that were there stay. */
static inline bool derive_longer(const struct assay_property_run *first,
                                 struct assay_case *second)
{
    ck_assert_int_eq(assay_case_value(first->the_case, "m"), 6);
    ck_assert_int_eq(second->explicit_bits_count, 0);
    assay_case_set(second, "m", 9);
    return true;
}

static inline bool add_rows(const struct assay_property_run *first,
                            const struct assay_property_run *second)
{
    second->the_case->operation->fill(second->problem, ASSAY_DATA_NORMAL, 77,
                                      second->tensors);
    copy(find(first, "b"), find(second, "b"));
    copy(find(first, "sfb"), find(second, "sfb"));
    for (int64_t i = 0; i < 6 * 160; i++)
        assay_tensor_set_bits(find(second, "a"), i,
                              assay_tensor_bits(find(first, "a"), i));
    for (int64_t i = 0; i < 6 * 2; i++)
        assay_tensor_set_bits(find(second, "sfa"), i,
                              assay_tensor_bits(find(first, "sfa"), i));
    return true;
}

static inline bool expect_first_rows(const struct assay_property_run *first,
                                     const struct assay_property_run *second, int output,
                                     int64_t element, uint32_t *bits)
{
    ck_assert_int_eq(second->tensors->item[output].shape[0], 9);
    if (element >= 6 * 8) return false;
    *bits = assay_tensor_bits(&first->tensors->item[output], element);
    return true;
}

static inline bool copy_inputs(const struct assay_property_run *first,
                               const struct assay_property_run *second)
{
    copy_all(first, second);
    return true;
}

static const struct assay_property three[] = {
    { .name = "doubled_scales",
      .meaning = "twice the scales, twice the result",
      .kind = ASSAY_PROPERTY_MATHEMATICS,
      .transform = double_sfa,
      .expect = expect_doubled },
    { .name = "more_rows",
      .meaning = "rows do not know of others",
      .kind = ASSAY_PROPERTY_BATCH,
      .derive = derive_longer,
      .transform = add_rows,
      .expect = expect_first_rows },
    { .name = "another_plan",
      .meaning = "the same work",
      .kind = ASSAY_PROPERTY_PLAN,
      .transform = copy_inputs },
    { .name = NULL },
};

struct setting {
    const char *check;
    const struct assay_property *properties;
    struct assay_backend_claim claim;
    bool has_no_oracle;
    void (*after)(const struct assay_run_call *call, int run);
    enum assay_status (*status)(const struct assay_run_call *call, int run);
};

static inline struct assay_result run_setting(const struct setting *setting)
{
    struct assay_operation operation = *assay_operation_find("fp8_gemm_nt");
    struct assay_trial_plan plan = plan_of_check(setting->check);
    struct assay_case the_case = parsed_case(dense);
    operation.properties = setting->properties;
    operation.used = NULL;
    the_case.operation = &operation;
    plan.uses_oracle = !setting->has_no_oracle;
    rerun_backend.claim = setting->claim;
    rerun_backend.after = setting->after;
    rerun_backend.status = setting->status;
    return run_plan(&plan, &the_case, NULL);
}

static inline void check_finding(const struct assay_result *result, const char *check,
                                 const char *sentence)
{
    ck_assert_int_eq(result->status, ASSAY_RAN);
    ck_assert_int_eq(result->verdict, ASSAY_OUTSIDE);
    ck_assert(!result->has_passed);
    ck_assert_int_eq(result->finding_count, 1);
    ck_assert(result->finding[0].is_failure);
    ck_assert_str_eq(result->finding[0].check, check);
    ck_assert_str_eq(result->finding[0].sentence, sentence);
    ck_assert_str_eq(result->finding[0].output, "d");
}

static inline void check_silence(const struct assay_result *result)
{
    ck_assert_int_eq(result->status, ASSAY_RAN);
    ck_assert_int_eq(result->finding_count, 0);
    ck_assert_str_eq(result->message.text, "");
}

static inline void flip_two_in_second(const struct assay_run_call *call, int run)
{
    const struct assay_tensor *const d = tensor_d(call);
    if (run != 2) return;
    assay_tensor_set_bits(d, 13, assay_tensor_bits(d, 13) ^ 1);
    assay_tensor_set_bits(d, 47, assay_tensor_bits(d, 47) ^ 1);
}

#endif
