/* SPDX-License-Identifier: MIT */
/* The relations of quantise and of the cache operations: the model keeps to them, kernels
 * that are wrong within the bound do not. */
#include "tests/harness.h"
#include "tests/verify/related_case.h"

static const char *const lines[] = {
    "quantise m=9 k=300 x_stride=320 q_stride=304",
    "quantise m=9 k=300 x_format=f32 as=deepgemm-reciprocal",
    "quantise m=40 k=100 granularity=block gran_k=32",
    "quantise m=9 k=96 gran_k=32 scale=ue8m0 x_format=f32 as=pytorch-cuda",
    "quantise m=130 k=140 granularity=block scale=ue8m0",
    "mla_cache_quantise kv=v32 tokens=5 page_size=4",
    "mla_cache_quantise kv=v32 tokens=5 page_size=2 scale=f32 page_padding=16",
    "mla_cache_quantise kv=model1 tokens=5 page_size=4",
    "mla_cache_quantise kv=v41_fp8 tokens=3",
    "mla_cache_quantise kv=v41_fp4 tokens=5 page_size=4",
    "mla_cache_dequantise kv=v32 tokens=5 page_size=4",
    "mla_cache_dequantise kv=v32 tokens=5 page_size=2 scale=f32 page_padding=16",
    "mla_cache_dequantise kv=model1 tokens=5 page_size=4 as=flashmla-dequantise-f32",
    "mla_cache_dequantise kv=v41_fp8 tokens=3",
    "mla_cache_dequantise kv=v41_fp4 tokens=5 page_size=4",
    NULL,
};

START_TEST(model_keeps_to_every_relation_for_all_kinds_of_data)
{
    for (int i = 0; lines[i]; i++)
        for (int kind = 0; kind < ASSAY_GENERAL_DATA_KINDS; kind++) {
            char line[512];
            struct assay_case the_case;
            struct assay_message message;
            unsigned char problem[ASSAY_MAX_PROBLEM_BYTES];
            snprintf(line, sizeof(line), "%s data=%s seed=%d", lines[i],
                     assay_data_kinds[kind].name, kind + 3);
            if (assay_case_parse(line, &the_case, &message) != ASSAY_RAN ||
                the_case.operation->bind(&the_case, problem, &message) != ASSAY_RAN)
                continue;
            ck_assert_int_ge(expect_model_keeps_to_all(line), 2);
        }
}
END_TEST

/* Codes, scales and what is kept in bf16. */
START_TEST(relations_judge_every_element_of_normal_data)
{
    static const struct {
        const char *line, *property;
        int64_t judged;
    } rows[] = {
        { "quantise m=9 k=300", "doubling", 9 * 303 },
        { "quantise m=40 k=100 granularity=block gran_k=32", "doubling", 40 * 100 + 8 },
        { "quantise m=9 k=300", "order", 9 * 303 },
        { "quantise m=9 k=300", "rows", 9 * 303 },
        { "quantise m=9 k=300", "fewer-rows", 4 * 303 },
        { "mla_cache_quantise kv=v32 tokens=5 page_size=4", "doubling", 5 * 656 },
        { "mla_cache_quantise kv=model1 tokens=5 page_size=4", "doubling", 5 * 583 },
        { "mla_cache_quantise kv=v41_fp8 tokens=5", "tokens", 5 * 528 },
        { "mla_cache_quantise kv=v41_fp4 tokens=5", "tokens", 5 * 288 },
        { "mla_cache_dequantise kv=model1 tokens=5 page_size=4", "tokens", 5 * 512 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const int64_t judged = expect_model_keeps_to(rows[i].line, rows[i].property);
        ck_assert_msg(judged == rows[i].judged, "%s: %s judges %lld", rows[i].line,
                      rows[i].property, (long long)judged);
    }
}
END_TEST

/* Keys that are zero say nothing; nearly all others do. */
START_TEST(doubled_scales_judge_nearly_all_keys)
{
    ck_assert_int_ge(
        expect_model_keeps_to("mla_cache_dequantise kv=v32 tokens=5", "doubling"),
        5 * 576 * 9 / 10);
    ck_assert_int_ge(
        expect_model_keeps_to("mla_cache_dequantise kv=v41_fp8 tokens=5", "doubling"),
        5 * 512 * 9 / 10);
    ck_assert_int_ge(expect_model_keeps_to("quantise m=9 k=300", "negation"),
                     9 * 303 * 9 / 10);
}
END_TEST

static void make_tiny(const struct assay_tensors *tensors)
{
    const struct assay_tensor *const x = &tensors->item[0];
    for (int64_t i = 0; i < assay_tensor_elements(x); i++)
        assay_tensor_set_bits(x, i, 0x3727); /* 1e-5 */
}

/* A scale raised to its floor does not double. */
START_TEST(scales_at_their_floor_are_left_out)
{
    static const char *const tiny[] = { "quantise m=9 k=300",
                                        "quantise m=9 k=300 scale=ue8m0",
                                        "mla_cache_quantise kv=v41_fp8 tokens=3",
                                        "mla_cache_quantise kv=v32 tokens=3 scale=f32" };
    for (int i = 0; i < 4; i++) {
        struct related_case *const related = open_related(tiny[i], "doubling", make_tiny);
        ck_assert(related != NULL);
        const struct related_verdict verdict = judge_related(related, NULL);
        const int64_t rope = i == 3 ? 3 * 128 : 0;
        ck_assert_msg(verdict.judged == rope && verdict.wrong == 0, "%s", tiny[i]);
        close_related(related);
    }
}
END_TEST

/* --- wrong kernels ------------------------------------------------------------------ */

static void change_scales(const struct related_run *run,
                          uint32_t (*change)(uint32_t bits, int64_t row))
{
    const struct assay_tensor *const sf = assay_tensors_find(&run->tensors, "sf");
    run_model(run);
    for (int64_t i = 0; i < assay_tensor_elements(sf); i++)
        assay_tensor_set_bits(sf, i, change(assay_tensor_bits(sf, i), i / sf->shape[1]));
}

/* Scales of one row in fixed point. */
static uint32_t fixed(uint32_t bits, int64_t row)
{
    float scale;
    if (row != 2) return bits;
    memcpy(&scale, &bits, sizeof(scale));
    scale = roundf(scale * 0x1p30f) * 0x1p-30f;
    memcpy(&bits, &scale, sizeof(bits));
    return bits;
}

static void fixed_point_scales(const struct related_run *run)
{
    change_scales(run, fixed);
}

static uint32_t one_more_in_row_1(uint32_t bits, int64_t row)
{
    return bits + (row == 1);
}

static void row_by_place(const struct related_run *run)
{
    change_scales(run, one_more_in_row_1);
}

static uint32_t first_sign(const struct related_run *run)
{
    return assay_tensor_bits(&run->tensors.item[0], 0) >> 15 & 1;
}

static void scales_by_sign(const struct related_run *run)
{
    run_model(run);
    const struct assay_tensor *const sf = assay_tensors_find(&run->tensors, "sf");
    assay_tensor_set_bits(sf, 0, assay_tensor_bits(sf, 0) + first_sign(run));
}

static void scales_by_first_element(const struct related_run *run)
{
    run_model(run);
    const struct assay_tensor *const sf = assay_tensors_find(&run->tensors, "sf");
    const uint32_t low = assay_tensor_bits(&run->tensors.item[0], 0) & 1;
    assay_tensor_set_bits(sf, 0, assay_tensor_bits(sf, 0) + low);
}

static void scales_by_count_of_rows(const struct related_run *run)
{
    run_model(run);
    const struct assay_tensor *const sf = assay_tensors_find(&run->tensors, "sf");
    assay_tensor_set_bits(sf, sf->shape[1] * (sf->shape[0] - 1),
                          assay_tensor_bits(sf, sf->shape[1] * (sf->shape[0] - 1)) +
                              (sf->shape[0] < 8));
}

START_TEST(kernels_that_are_wrong_within_the_bound_break_their_relation)
{
    static const struct {
        const char *property;
        related_kernel *kernel;
    } rows[] = {
        { "doubling", fixed_point_scales },        { "negation", scales_by_sign },
        { "order", scales_by_first_element },      { "rows", row_by_place },
        { "fewer-rows", scales_by_count_of_rows },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct related_verdict verdict =
            relate("quantise m=9 k=300 seed=4", rows[i].property, rows[i].kernel);
        ck_assert_msg(is_caught(&verdict), "%s: %lld wrong, %lld and %lld outside",
                      rows[i].property, (long long)verdict.wrong,
                      (long long)verdict.outside, (long long)verdict.first_outside);
    }
}
END_TEST

/* Its first key is what any is: the bound of a cache leaves no room for wrong bytes, but
 * those of a record that is too short show in other tokens only. */
static void last_token_from_its_neighbour(const struct related_run *run)
{
    const struct assay_tensor *const key = &run->tensors.item[1];
    const int64_t columns = key->shape[1], last = key->shape[0] - 1;
    run_model(run);
    for (int64_t i = 0; i < columns; i++)
        assay_tensor_set_bits(key, last * columns + i,
                              assay_tensor_bits(key, (last - 1) * columns + i));
}

static void make_last_two_alike(const struct assay_tensors *tensors)
{
    uint8_t *const cache = tensors->item[0].data;
    memcpy(cache + 4 * 528, cache + 3 * 528, 528);
}

START_TEST(a_stale_token_shows_when_tokens_change_places)
{
    struct related_case *const related = open_related(
        "mla_cache_dequantise kv=v41_fp8 tokens=5 seed=2", "tokens", make_last_two_alike);
    ck_assert(related != NULL);
    const struct related_verdict verdict =
        judge_related(related, last_token_from_its_neighbour);
    ck_assert(is_caught(&verdict));
    close_related(related);
}
END_TEST

/* --- what matters ------------------------------------------------------------------- */

START_TEST(bytes_of_no_token_are_not_used)
{
    static const struct {
        const char *line;
        int64_t used;
    } rows[] = {
        { "mla_cache_dequantise kv=v32 tokens=5 page_size=4", 5 * 656 },
        { "mla_cache_dequantise kv=model1 tokens=5 page_size=4", 5 * 583 },
        { "mla_cache_dequantise kv=v41_fp4 tokens=5 page_size=4", 5 * 288 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct related_run run = { .the_case = parsed(rows[i].line) };
        int64_t used = 0;
        open_related_run(&run);
        const int64_t bytes = assay_tensor_elements(&run.tensors.item[0]);
        uint8_t *const is_used = malloc((size_t)bytes);
        run.the_case.operation->used(&run.problem, &run.tensors, 0, is_used);
        for (int64_t byte = 0; byte < bytes; byte++)
            used += is_used[byte];
        ck_assert_msg(used == rows[i].used, "%s: %lld", rows[i].line, (long long)used);
        free(is_used);
        assay_buffers_close(&run.buffers);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        model_keeps_to_every_relation_for_all_kinds_of_data,
        relations_judge_every_element_of_normal_data,
        doubled_scales_judge_nearly_all_keys,
        scales_at_their_floor_are_left_out,
        kernels_that_are_wrong_within_the_bound_break_their_relation,
        a_stale_token_shows_when_tokens_change_places,
        bytes_of_no_token_are_not_used,
        NULL,
    };
    return run_tests("quantise_properties", tests);
}
