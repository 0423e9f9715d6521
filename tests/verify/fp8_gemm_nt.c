/* SPDX-License-Identifier: MIT */
/* Tests of the operation fp8_gemm_nt as a whole: how tight the bound is against the real
 * model, and that the data kinds are what they promise. */
#include "verify/operation/fp8_gemm_nt/fp8_gemm_nt.h"

#include "ref/format/minifloat.h"
#include "tests/harness.h"
#include "verify/check/trial.h"
#include "verify/operation/parts.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

static struct assay_result result_of(const char *text, const char *numerics)
{
    static char state[ASSAY_MAX_NUMERICS_TEXT];
    struct assay_case the_case;
    struct assay_message message;
    snprintf(state, sizeof(state), "%s", numerics);
    ck_assert_msg(assay_case_parse(text, &the_case, &message) == ASSAY_RAN, "%s: %s",
                  text, message.text);
    struct assay_trial_plan plan = {
        .candidate_state = state,
        .uses_model = true,
        .uses_oracle = true,
        .checks = assay_checks,
    };
    for (int i = 0; assay_backends[i]; i++)
        if (strcmp(assay_backends[i]->scheme, "model") == 0)
            plan.candidate = assay_backends[i];
    struct assay_result result;
    assay_trial_run(&plan, &the_case, NULL, 0, &result);
    ck_assert_msg(result.status == ASSAY_RAN, "%s: %s", text, result.message.text);
    return result;
}

static double ratio_of(const char *text)
{
    struct assay_result result = result_of(text, "");
    const double ratio = result.output[0].max_error_over_bound;
    ck_assert_int_eq(result.output[0].unclaimed, 0);
    assay_result_close(&result);
    return ratio;
}

/* With positive data the truncations of the tensor core all go one way. The floors are
 * more than half of what the model reaches, so that doubling the bound fails here; the
 * project's promise is that positive data reach 0.2 somewhere. */
START_TEST(bound_is_tight_for_positive_data)
{
    static const struct {
        const char *text;
        double floor;
    } rows[] = {
        { "fp8_gemm_nt m=128 n=128 k=4096 recipe=tensor out=f32 data=positive "
          "as=cublaslt-fast",
          0.35 },
        { "fp8_gemm_nt m=128 n=128 k=128 out=f32 data=positive", 0.4 },
        { "fp8_gemm_nt m=128 n=128 k=1024 out=f32 data=positive", 0.3 },
        { "fp8_gemm_nt m=128 n=128 k=1024 recipe=1d1d out=f32 data=positive", 0.3 },
        { "fp8_gemm_nt m=128 n=128 k=1024 recipe=tensor out=f32 data=positive", 0.3 },
        { "fp8_gemm_nt m=128 n=128 k=128 data=positive", 0.5 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const double ratio = ratio_of(rows[i].text);
        ck_assert_msg(ratio >= rows[i].floor && ratio <= 1 && ratio < 2 * rows[i].floor,
                      "%s: error/bound %g is not in [%g, %g)", rows[i].text, ratio,
                      rows[i].floor, 2 * rows[i].floor);
    }
}
END_TEST

/* Every order, interval and unit gives the oracle's value itself: the bound is 0. */
START_TEST(exact_data_never_rounds)
{
    static const char *const cases[] = {
        "fp8_gemm_nt m=65 n=72 k=16384 data=exact",
        "fp8_gemm_nt m=65 n=72 k=1040 recipe=1d1d out=f32 c=1 data=exact",
        "fp8_gemm_nt m=65 n=72 k=1040 recipe=tensor b_format=e5m2 data=exact",
    };
    static const char *const numerics[] = {
        "",
        "k_order=descending",
        "promote_k=32",
        "promotion=separate",
        "promotion=fused,k_order=descending",
        "unit=blackwell-fp8",
    };
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 6; j++) {
            struct assay_result result = result_of(cases[i], numerics[j]);
            const struct assay_output_result *const d = &result.output[0];
            ck_assert_msg(d->max_error_over_bound == 0 && d->differ == 0 &&
                              d->bound_worst_bound == 0,
                          "%s, %s", cases[i], numerics[j]);
            ck_assert(result.is_decisive);
            assay_result_close(&result);
        }
}
END_TEST

START_TEST(ties_tell_roundings_apart)
{
    static const char text[] = "fp8_gemm_nt m=64 n=64 k=256 data=ties";
    struct assay_result result = result_of(text, "out_rounding=toward-zero");
    const struct assay_output_result *const d = &result.output[0];
    /* Half of all ties round away from zero. */
    ck_assert_int_ge(d->differ, 64 * 64 / 4);
    ck_assert_int_le(d->differ, 64 * 64 * 3 / 4);
    ck_assert_int_eq((int64_t)d->max_ulps, 1);
    assay_result_close(&result);
}
END_TEST

/* Numerics that matter change bits on normal data; those that can't, don't. */
START_TEST(knobs_change_bits)
{
    static const char text[] = "fp8_gemm_nt m=64 n=64 k=1024 out=f32";
    static const char *const knobs[] = {
        "align_bits=12",       "align_bits=14",      "result_bits=12",
        "promote_k=64",        "k_order=descending", "scale_form=a-then-b",
        "scale_form=b-then-a", "promotion=separate", "unit=ada-fp8",
        "unit=hopper-mma-fp8", "unit=blackwell-fp8",
    };
    for (size_t i = 0; i < sizeof(knobs) / sizeof(knobs[0]); i++) {
        struct assay_result result = result_of(text, knobs[i]);
        ck_assert_msg(result.output[0].differ > 0, "%s", knobs[i]);
        assay_result_close(&result);
    }
    struct assay_result result = result_of(text, "promote_k=128,align_bits=13");
    ck_assert_int_eq(result.output[0].differ, 0);
    assay_result_close(&result);
}
END_TEST

static struct assay_tensors filled(const char *text, struct assay_buffers *buffers)
{
    static union assay_problem_storage problem;
    struct assay_case the_case;
    struct assay_message message;
    struct assay_tensors tensors;
    ck_assert(assay_case_parse(text, &the_case, &message) == ASSAY_RAN);
    ck_assert(the_case.operation->bind(&the_case, &problem, &message) == ASSAY_RAN);
    the_case.operation->shape(&problem, &tensors);
    ck_assert(assay_buffers_open(buffers, &tensors, &message) == ASSAY_RAN);
    the_case.operation->fill(&problem, the_case.data, the_case.seed, &tensors);
    return tensors;
}

START_TEST(a_smaller_case_keeps_the_values_it_shares)
{
    for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++) {
        char texts[2][256];
        struct assay_buffers buffers[2];
        struct assay_tensors tensors[2];
        for (int i = 0; i < 2; i++) {
            snprintf(texts[i], sizeof(texts[i]),
                     "fp8_gemm_nt m=%d n=%d k=%d recipe=1d1d out=f32 c=1 data=%s seed=7",
                     i ? 5 : 33, i ? 16 : 40, i ? 80 : 400, assay_data_kinds[kind].name);
            tensors[i] = filled(texts[i], &buffers[i]);
        }
        for (int i = 0; i < tensors[1].count; i++) {
            const struct assay_tensor *const small = &tensors[1].item[i];
            const struct assay_tensor *const large = &tensors[0].item[i];
            if (small->is_output) continue;
            for (int64_t at = 0; at < assay_tensor_elements(small); at++) {
                const int64_t row = at / small->shape[1], column = at % small->shape[1];
                if (assay_tensor_bits(small, at) !=
                    assay_tensor_bits(large, row * large->shape[1] + column))
                    ck_abort_msg("data=%s, %s[%d, %d]", assay_data_kinds[kind].name,
                                 small->name, (int)row, (int)column);
            }
        }
        assay_buffers_close(&buffers[0]);
        assay_buffers_close(&buffers[1]);
    }
}
END_TEST

/* Frozen when data version 1 was released: generated inputs never change. */
START_TEST(generated_inputs_are_the_same_everywhere)
{
    static const uint64_t frozen[ASSAY_GENERAL_DATA_KINDS] = {
        0x6c366e73e87ea976, 0x5ca0baaff8fa590e, 0x7f550a3ae4ab1bac, 0x3e3ab3c97199236c,
        0x452b09e8fb24b5c0, 0x0453465d88214fae, 0x1009ffab6b849924, 0x9ce9cfe02c49e674,
        0xd4b2912a81a6c674, 0xaf5aba7c88801246, 0xf0e839009429c517, 0xbbeef712ce3541b1,
    };
    for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++) {
        char text[256];
        struct assay_buffers buffers;
        snprintf(text, sizeof(text),
                 "fp8_gemm_nt m=33 n=40 k=400 recipe=1d1d out=f32 c=1 b_format=e5m2 "
                 "data=%s seed=7",
                 assay_data_kinds[kind].name);
        const struct assay_tensors tensors = filled(text, &buffers);
        ck_assert_msg(assay_inputs_hash(&tensors) == frozen[kind], "data=%s: 0x%016llx",
                      assay_data_kinds[kind].name,
                      (unsigned long long)assay_inputs_hash(&tensors));
        assay_buffers_close(&buffers);
    }
}
END_TEST

START_TEST(special_data_reaches_some_rows_and_spares_others)
{
    struct assay_buffers buffers;
    const struct assay_tensors tensors =
        filled("fp8_gemm_nt m=256 n=256 k=256 a_format=e5m2 data=special", &buffers);
    static const char *const names[] = { "a", "b", "sfa" };
    for (int i = 0; i < 3; i++) {
        const struct assay_tensor *const tensor = assay_tensors_find(&tensors, names[i]);
        const struct assay_minifloat *const format = assay_minifloat(tensor->format);
        int rows = 0;
        for (int64_t row = 0; row < tensor->shape[0]; row++) {
            int specials = 0;
            for (int64_t k = 0; k < tensor->shape[1]; k++)
                specials += !isfinite(assay_minifloat_decode(
                    format, assay_tensor_bits(tensor, row * tensor->shape[1] + k)));
            ck_assert_int_le(specials, 1);
            ck_assert(row > 0 || specials == 0);
            rows += specials;
        }
        ck_assert_msg(rows >= 1 && rows <= 64, "%s: %d rows", names[i], rows);
    }
    assay_buffers_close(&buffers);
}
END_TEST

enum { MANY_ROWS = 1030 };

struct visits {
    int of_row[MANY_ROWS];
    bool has_threads;
};

static void visit(const void *context, int64_t row)
{
    struct visits *const visits = *(struct visits *const *)context;
    if (omp_get_level() > 0)
#pragma omp atomic write
        visits->has_threads = true;
#pragma omp atomic
    visits->of_row[row]++;
}

static struct visits visits_of(int64_t rows, int64_t elements)
{
    struct visits visits = { { 0 }, false }, *const all = &visits;
    assay_for_each_row(rows, elements, visit, &all);
    return visits;
}

START_TEST(every_row_is_filled_once_and_few_elements_by_one_thread)
{
    static const int64_t rows[] = { 0, 1, 15, 16, 17, MANY_ROWS };
    for (int i = 0; i < 6; i++)
        for (int is_large = 0; is_large < 2; is_large++) {
            const int64_t elements = is_large ? 1 << 24 : 16;
            const struct visits visits = visits_of(rows[i], elements);
            ck_assert_int_eq(visits.has_threads, is_large && rows[i] > 0);
            for (int64_t row = 0; row < MANY_ROWS; row++)
                ck_assert_int_eq(visits.of_row[row], row < rows[i]);
        }
}
END_TEST

/* Filled by several threads, a tensor holds what its rows hold that one thread fills one
 * at a time. */
static void assert_rows_keep_values(struct assay_tensor tensor, enum assay_data_kind kind,
                                    void (*fill)(const struct assay_tensor *,
                                                 enum assay_data_kind, uint64_t, int64_t))
{
    enum { COLUMNS = 1024, KEY = 7 };
    const size_t row_bytes = COLUMNS * assay_format_bytes(tensor.format);
    unsigned char *const many = malloc(MANY_ROWS * row_bytes);
    uint32_t one[COLUMNS];
    ck_assert_ptr_nonnull(many);
    tensor.rank = 2;
    tensor.shape[0] = MANY_ROWS;
    tensor.shape[1] = COLUMNS;
    tensor.data = many;
    assay_tensor_set_dense(&tensor);
    fill(&tensor, kind, 3, KEY);
    tensor.shape[0] = 1;
    tensor.data = one;
    for (int64_t row = 0; row < MANY_ROWS; row++) {
        fill(&tensor, kind, 3, KEY + row);
        ck_assert_msg(memcmp(many + (size_t)row * row_bytes, one, row_bytes) == 0,
                      "%s, row %lld", tensor.name, (long long)row);
    }
    free(many);
}

START_TEST(threads_fill_in_what_one_thread_does)
{
    static const enum assay_data_kind kinds[] = { ASSAY_DATA_NORMAL, ASSAY_DATA_RUNS };
    const struct assay_tensor b = { .name = "b", .format = ASSAY_E4M3 };
    const struct assay_tensor sfa = { .name = "sfa", .format = ASSAY_F32 };
    const struct assay_tensor c = { .name = "c", .format = ASSAY_F32 };
    omp_set_num_threads(4);
    for (int i = 0; i < 2; i++) {
        assert_rows_keep_values(b, kinds[i], assay_fp8_gemm_fill_operand);
        assert_rows_keep_values(sfa, kinds[i], assay_fp8_gemm_fill_scale);
        assert_rows_keep_values(c, kinds[i], assay_fp8_gemm_fill_c);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        bound_is_tight_for_positive_data,
        exact_data_never_rounds,
        ties_tell_roundings_apart,
        knobs_change_bits,
        a_smaller_case_keeps_the_values_it_shares,
        generated_inputs_are_the_same_everywhere,
        special_data_reaches_some_rows_and_spares_others,
        every_row_is_filled_once_and_few_elements_by_one_thread,
        threads_fill_in_what_one_thread_does,
        NULL,
    };
    return run_tests("fp8_gemm_nt", tests);
}
