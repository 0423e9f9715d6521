/* SPDX-License-Identifier: MIT */
/* A few rows taken out of a problem (the hook `narrow`) hold the bits that they have in
 * the whole, with every named numerics, on drawn cases. */
#include "tests/harness.h"
#include "tests/verify/drawn_result.h"
#include "tests/verify/searched_case.h"
#include "verify/identify/knob_stage.h"

enum { DRAWN = 24, DRAWN_COST = 1 << 24, FEWEST = 12 };

/* Judged elements of the narrow stage that @numerics give other bits than the whole
 * model; *@elements: all of them. */
static int64_t differing(const struct searched *searched,
                         const struct assay_named_numerics *row, int64_t *elements)
{
    struct assay_knob_stages stages;
    struct assay_scratch scratch;
    int64_t equal = 0;
    write_model(searched, row->name);
    ck_assert(assay_knob_stages_open(&stages, &searched->observation, row->numerics) ==
              ASSAY_RAN);
    const struct assay_observation *const narrow = &stages.narrow.observation;
    *elements = 0;
    if (narrow->parts) ck_assert(assay_scratch_open(narrow, &scratch) == ASSAY_RAN);
    for (int64_t part = 0; part < narrow->parts; part++) {
        struct assay_part_comparison comparison;
        ck_assert(assay_compare_part(narrow, row->numerics, &scratch, part,
                                     &comparison) == ASSAY_RAN);
        *elements += comparison.elements;
        equal += comparison.equal;
    }
    if (narrow->parts) assay_scratch_close(&scratch);
    ck_assert_int_lt(*elements, searched->observation.judged + 1);
    assay_knob_stages_close(&stages);
    return *elements - equal;
}

/* Returns whether the case had rows to take out. */
static bool check_case(const char *line)
{
    struct searched *const searched = open_searched(line);
    const struct assay_operation *const operation = searched->the_case.operation;
    bool has_rows = false;
    for (const struct assay_named_numerics *row = operation->numerics; row->name; row++) {
        struct assay_message ignored;
        int64_t elements;
        if (operation->check_numerics(searched->problem, row->numerics, &ignored) !=
            ASSAY_RAN)
            continue;
        const int64_t differ = differing(searched, row, &elements);
        ck_assert_msg(differ == 0, "%s as=%s: %lld of %lld elements differ", line,
                      row->name, (long long)differ, (long long)elements);
        has_rows |= elements > 0 && elements < searched->observation.judged;
    }
    close_searched(searched);
    return has_rows;
}

static int check_drawn(const struct assay_operation *operation)
{
    int with_rows = 0;
    for (int i = 0; i < DRAWN; i++) {
        struct assay_case drawn;
        char line[ASSAY_MAX_CASE_LINE];
        draw_case(operation->name, 4, "narrow", i, i % 4 ? DRAWN_COST / 16 : DRAWN_COST,
                  &drawn, line);
        with_rows += check_case(line);
    }
    return with_rows;
}

START_TEST(rows_taken_out_of_drawn_problems_keep_their_bits)
{
    int operations = 0;
    for (int i = 0; assay_operations[i]; i++) {
        if (!assay_operations[i]->narrow) continue;
        const int with_rows = check_drawn(assay_operations[i]);
        /* Operands one behind the other can't be narrowed. */
        if (strcmp(assay_operations[i]->name, "k_grouped_fp8_gemm_nt_contiguous") == 0)
            ck_assert_int_eq(with_rows, 0);
        else
            ck_assert_msg(with_rows >= FEWEST, "%s: %d", assay_operations[i]->name,
                          with_rows);
        operations++;
    }
    ck_assert_int_eq(operations, 8);
}
END_TEST

START_TEST(causal_rows_strided_outputs_sinks_and_packed_scales_are_taken_out)
{
    static const char *const lines[] = {
        "mla_dense_decode b=2 h_q=128 s_q=3 causal=1 s_k=129,65 seed=1",
        "mla_dense_decode b=1 h_q=48 s_q=2 causal=1 s_k=65 data=special seed=1",
        "mla_dense_decode b=2 h_q=32 h_k=2 s_k=300,64 data=wide seed=1",
        "mla_sparse_decode kv=v32 b=2 h_q=128 topk=128 invalid=0.2 sink=1 seed=1",
        "mla_sparse_prefill s_q=2 h_q=128 s_kv=99 d_qk=576 topk=128 sink=1 seed=1",
        "fp8_gemm_nt m=40 n=40 k=256 d_stride=64 a_stride=272 seed=1",
        "fp8_gemm_nt m=40 n=40 k=256 recipe=mx gran_k=32 seed=1",
        "fp8_gemm_nt m=40 n=40 k=256 recipe=1d1d out=f32 c=1 seed=1",
        ("m_grouped_fp8_gemm_nt_masked groups=2 m_max=128 n=40 k=128 masked_m=0,70 "
         "seed=1"),
        "k_grouped_fp8_gemm_tn_contiguous m=128 n=40 ks=128,256 seed=1",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
        ck_assert_msg(check_case(lines[i]), "%s: nothing is taken out", lines[i]);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        rows_taken_out_of_drawn_problems_keep_their_bits,
        causal_rows_strided_outputs_sinks_and_packed_scales_are_taken_out,
        NULL,
    };
    return run_tests("knob_narrow", tests);
}
