/* SPDX-License-Identifier: MIT */
/* Tests of data kinds runs and zero in every operation, read back through the formats. */
#include "ref/layout/mla_cache.h"
#include "ref/layout/scale_layout.h"
#include "tests/harness.h"
#include "tests/verify/judged_case.h"
#include "tests/verify/shaped_case.h"
#include "verify/data/runs.h"
#include "verify/operation/mla_sparse_decode/mla_sparse_decode.h"

#include <math.h>
#include <stdlib.h>

/* One line an operation at least, without data=. */
static const char *const lines[] = {
    "fp8_gemm_nt m=40 n=48 k=640",
    "fp8_gemm_nt m=40 n=48 k=640 recipe=1d1d out=f32 c=1 a_format=e5m2",
    "fp8_gemm_nt m=40 n=48 k=640 recipe=mx b_format=e2m1 gran_k=32",
    "m_grouped_fp8_gemm_nt_contiguous group_m=128,0,128 n=48 k=256",
    "m_grouped_fp8_gemm_nt_masked groups=2 m_max=128 masked_m=128,128 n=48 k=256",
    "k_grouped_fp8_gemm_nt_contiguous m=128 n=48 ks=256,0,128",
    "k_grouped_fp8_gemm_tn_contiguous m=128 n=48 ks=256,0,128",
    "quantise m=70 k=600",
    "quantise m=70 k=600 x_format=f32 scale=ue8m0 granularity=block",
    "scale_layout mn=50 k=1280",
    "scale_layout mn=52 k=1024 from=packed_ue8m0",
    "scale_layout mn=50 k=1280 to=packed_ue8m0",
    "mla_cache_quantise kv=v32 tokens=40",
    "mla_cache_quantise kv=v41_fp4 tokens=40",
    "mla_cache_dequantise kv=v32 tokens=40 scale=f32",
    "mla_cache_dequantise kv=model1 tokens=40 page_size=16",
    "mla_cache_dequantise kv=v41_fp8 tokens=40",
    "mla_cache_dequantise kv=v41_fp4 tokens=40",
    "mla_dense_decode b=2 h_q=16 s_k=200",
    "mla_dense_decode b=2 h_q=16 s_k=200 format=f16",
    "mla_sparse_decode kv=v32 b=2 h_q=64 topk=64 scales=any sink=1",
    "mla_sparse_decode kv=model1 b=2 h_q=64 topk=64 topk_length=40",
    "mla_sparse_decode kv=v41 b=1 h_q=64 topk=64 extra_topk=64 extra_kv=v41_fp4",
    "mla_sparse_prefill s_q=2 h_q=64 s_kv=200 topk=128 sink=1",
    "mla_combine b=2 h_q=20 splits=5 sink=1",
    "mla_combine b=2 h_q=20 splits=5 format=f16",
    "mla_absorb n=20 s_q=4 h_q=2 d=256 d_c=64 d_c_q=64 d_h=32 d_r=8",
    "mla_plan b=3 s_k=500",
    "wgmma blocks=2 steps=9 n=64",
    "wgmma blocks=2 steps=9 n=64 a_format=tf32 b_format=tf32",
    "wgmma blocks=2 steps=9 n=64 a_format=f16 b_format=f16",
    "sfu function=ex2 count=4000",
    "sfu function=lg2 count=4000",
    "sfu function=rcp count=4000",
    "sfu function=rsqrt count=4000",
    "convert to=e4m3 count=4000",
    "convert to=bf16 count=4000",
};
enum { LINES = sizeof(lines) / sizeof(lines[0]) };

struct made { /* a case with its inputs */
    _Alignas(16) char problem[ASSAY_MAX_PROBLEM_BYTES];
    struct assay_case the_case;
    struct assay_tensors tensors;
    struct assay_buffers buffers;
};

static void make(struct made *made, const char *line, const char *kind)
{
    char text[300];
    struct assay_message message;
    snprintf(text, sizeof(text), "%s data=%s seed=5", line, kind);
    made->the_case = parsed(text);
    generate_case(&made->the_case, &made->tensors, &made->buffers);
    ck_assert(made->the_case.operation->bind(&made->the_case, made->problem, &message) ==
              ASSAY_RAN);
}

/* Of input @input whether a kernel may look at an element; to be freed. */
static uint8_t *used_of(const struct made *made, int input)
{
    const struct assay_operation *const operation = made->the_case.operation;
    const int64_t elements = assay_tensor_elements(&made->tensors.item[input]);
    uint8_t *const used = malloc((size_t)elements + 1);
    ck_assert_ptr_nonnull(used);
    memset(used, 1, (size_t)elements);
    if (operation->used) operation->used(made->problem, &made->tensors, input, used);
    return used;
}

START_TEST(every_operation_takes_both_kinds)
{
    for (int i = 0; assay_operations[i]; i++) {
        const struct assay_operation *const operation = assay_operations[i];
        const size_t length = strlen(operation->name);
        int found = 0;
        ck_assert(assay_operation_takes(operation, ASSAY_DATA_RUNS));
        ck_assert(assay_operation_takes(operation, ASSAY_DATA_ZERO));
        for (int line = 0; line < LINES; line++)
            found += strncmp(lines[line], operation->name, length) == 0 &&
                     lines[line][length] == ' ';
        ck_assert_msg(found, "%s has no line", operation->name);
    }
    ck_assert_int_lt(ASSAY_DATA_RUNS, ASSAY_GENERAL_DATA_KINDS);
    ck_assert_int_lt(ASSAY_DATA_ZERO, ASSAY_GENERAL_DATA_KINDS);
}
END_TEST

/* --- elements --------------------------------------------------------------------- */

/* Every value and every scale of the inputs goes to one of these. */
struct reader {
    void (*value)(struct reader *, const struct assay_minifloat *, uint32_t code);
    void (*scale)(struct reader *, double value);
    const char *line;
    int64_t values, scales, zeros, subnormals, largest;
};

static bool is_scale(const char *name)
{
    return strcmp(name, "sfa") == 0 || strcmp(name, "sfb") == 0 ||
           strcmp(name, "sf") == 0;
}

static enum assay_mla_kv kv_of(const struct made *made, const char *k_cache)
{
    const bool is_extra = strncmp(k_cache, "extra", 5) == 0;
    const int64_t extra = is_extra ? assay_case_value(&made->the_case, "extra_kv") : -1;
    return (enum assay_mla_kv)(extra >= 0 ? extra
                                          : assay_case_value(&made->the_case, "kv"));
}

/* Tokens that nobody wrote are all NaN. */
static void read_cache(const struct made *made, const struct assay_tensor *k_cache,
                       struct reader *reader)
{
    const struct assay_mla_token_layout *const layout =
        &assay_mla_token_layouts[kv_of(made, k_cache->name)];
    const int64_t page_size = k_cache->shape[1] / layout->token_bytes;
    for (int64_t slot = 0; slot < k_cache->shape[0] * page_size; slot++) {
        struct assay_mla_token token;
        int empty = 0;
        assay_mla_token_unpack(layout, page_size, slot % page_size,
                               (const uint8_t *)k_cache->data +
                                   slot / page_size * k_cache->stride[0],
                               &token);
        for (int i = 0; i < layout->coded_dims; i++)
            empty += token.code[i] == (layout->code == ASSAY_E2M1 ? 0xF : 0xFF);
        if (empty == layout->coded_dims) continue;
        for (int i = 0; i < layout->coded_dims; i++)
            reader->value(reader, assay_minifloat(layout->code), token.code[i]);
        for (int i = 0; i < layout->rope_dims; i++)
            reader->value(reader, assay_minifloat(ASSAY_BF16), token.rope[i]);
        for (int i = 0; i < layout->scales; i++)
            reader->scale(reader, assay_minifloat_decode(assay_minifloat(layout->scale),
                                                         token.scale[i]));
    }
}

/* Four codes a word; a row's last word is filled up with 0, which says 2^-127. */
static void read_packed_scales(uint32_t word, struct reader *reader)
{
    for (int i = 0; i < 4; i++)
        if (word >> 8 * i & 0xFF)
            reader->scale(reader, assay_minifloat_decode(assay_minifloat(ASSAY_UE8M0),
                                                         word >> 8 * i & 0xFF));
}

static void read_element(const struct assay_tensor *tensor, int64_t element,
                         struct reader *reader)
{
    const uint32_t bits = assay_tensor_bits(tensor, element);
    const struct assay_minifloat *const format = assay_minifloat(tensor->format);
    if (!is_scale(tensor->name)) {
        const bool is_tf32 = tensor->format == ASSAY_TF32;
        if (format) reader->value(reader, format, is_tf32 ? bits >> 13 : bits);
    } else if (tensor->format == ASSAY_F32)
        reader->scale(reader, assay_minifloat_decode(format, bits));
    else
        read_packed_scales(bits, reader);
}

static void read_inputs(const struct made *made, struct reader *reader)
{
    for (int i = 0; i < made->tensors.count; i++) {
        const struct assay_tensor *const tensor = &made->tensors.item[i];
        if (tensor->is_output || strcmp(tensor->name, "cos") == 0 ||
            strcmp(tensor->name, "sin") == 0)
            continue;
        if (tensor->format == ASSAY_U8) {
            read_cache(made, tensor, reader);
            continue;
        }
        uint8_t *const used = used_of(made, i);
        for (int64_t at = 0; at < assay_tensor_elements(tensor); at++)
            if (used[at]) read_element(tensor, at, reader);
        free(used);
    }
}

/* --- zero ------------------------------------------------------------------------- */

static void expect_zero(struct reader *reader, const struct assay_minifloat *format,
                        uint32_t code)
{
    const double value = assay_minifloat_decode(format, code);
    ck_assert_msg(value == 0 && !signbit(value), "%s: %g", reader->line, value);
    reader->values++;
}

static void expect_one(struct reader *reader, double value)
{
    ck_assert_msg(value == 1, "%s: scale %g", reader->line, value);
    reader->scales++;
}

START_TEST(zero_is_nothing_but_zeros_and_scales_of_one)
{
    static const char *const scaled[] = { "fp8", "grouped", "dequantise", "sparse_decode",
                                          "scale_layout" };
    for (int i = 0; i < LINES; i++) {
        struct reader reader = { .value = expect_zero,
                                 .scale = expect_one,
                                 .line = lines[i] };
        struct made made;
        bool has_scales = false;
        for (size_t word = 0; word < sizeof(scaled) / sizeof(scaled[0]); word++)
            has_scales |= strstr(lines[i], scaled[word]) != NULL;
        make(&made, lines[i], "zero");
        read_inputs(&made, &reader);
        ck_assert_msg(has_scales == (reader.scales > 0), "%s", lines[i]);
        const bool has_values =
            !strstr(lines[i], "mla_plan") && !strstr(lines[i], "scale_layout");
        ck_assert_msg(has_values == (reader.values > 0), "%s", lines[i]);
        assay_buffers_close(&made.buffers);
    }
}
END_TEST

/* The unused bits of tf32 as well. */
START_TEST(zero_is_zero_to_the_bit)
{
    struct made made;
    make(&made, "wgmma blocks=1 steps=2 n=8 a_format=tf32 b_format=tf32", "zero");
    for (int i = 0; i < 3; i++)
        for (int64_t at = 0; at < assay_tensor_elements(&made.tensors.item[i]); at++)
            ck_assert_uint_eq(assay_tensor_bits(&made.tensors.item[i], at), 0);
    assay_buffers_close(&made.buffers);
}
END_TEST

/* Indices, lengths and tables are what they are with any other kind. */
START_TEST(zero_and_runs_have_the_usual_lists_and_tables)
{
    for (int i = 0; i < LINES; i++) {
        struct made usual, made;
        make(&usual, lines[i], "normal");
        for (int kind = 0; kind < 2; kind++) {
            make(&made, lines[i], kind ? "zero" : "runs");
            for (int at = 0; at < made.tensors.count; at++) {
                const struct assay_tensor *const tensor = &made.tensors.item[at];
                if (tensor->is_output || tensor->format != ASSAY_I32 ||
                    is_scale(tensor->name) || strstr(lines[i], "prefill"))
                    continue;
                ck_assert_uint_eq(assay_tensor_hash(tensor),
                                  assay_tensor_hash(&usual.tensors.item[at]));
            }
            assay_buffers_close(&made.buffers);
        }
        assay_buffers_close(&usual.buffers);
    }
}
END_TEST

/* --- runs ------------------------------------------------------------------------- */

static void count_value(struct reader *reader, const struct assay_minifloat *format,
                        uint32_t code)
{
    const double value = assay_minifloat_decode(format, code);
    const double smallest = ldexp(1, 1 - format->bias);
    ck_assert_msg(isfinite(value) || strstr(reader->line, "sink"), "%s: %g", reader->line,
                  value);
    reader->values++;
    reader->zeros += value == 0;
    reader->subnormals += value != 0 && fabs(value) < smallest;
    reader->largest +=
        fabs(value) == assay_minifloat_decode(format, format->largest_finite);
}

static void count_scale(struct reader *reader, double value)
{
    ck_assert_msg(isfinite(value) && value > 0, "%s: scale %g", reader->line, value);
    reader->scales++;
}

/* Which of the modes can be told from one element alone, in every operation: about one
 * element in nine is a zero (of e2m1 and e4m3 some ordinary ones as well), one in nine
 * subnormal. */
START_TEST(runs_hold_zeros_subnormals_and_no_nan)
{
    for (int i = 0; i < LINES; i++) {
        struct reader reader = { .value = count_value,
                                 .scale = count_scale,
                                 .line = lines[i] };
        struct made made;
        make(&made, lines[i], "runs");
        read_inputs(&made, &reader);
        const double zeros = (double)reader.zeros / (double)reader.values;
        const double subnormals = (double)reader.subnormals / (double)reader.values;
        if (reader.values)
            ck_assert_msg(zeros > 0.06 && zeros < 0.25 && subnormals > 0.06 &&
                              subnormals < 0.3,
                          "%s: %g, %g of %lld", lines[i], zeros, subnormals,
                          (long long)reader.values);
        if (strncmp(lines[i], "fp8", 3) == 0 || strstr(lines[i], "quantise"))
            ck_assert_msg((double)reader.largest > 0.05 * (double)reader.values, "%s",
                          lines[i]);
        assay_buffers_close(&made.buffers);
    }
}
END_TEST

/* Share of the elements of floating-point outputs that are finite in the model. */
static double finite_share(struct made *made)
{
    const struct assay_operation *const operation = made->the_case.operation;
    const void *const numerics = operation->default_numerics(made->problem)->numerics;
    double finite = 0, all = 0;
    for (int64_t part = 0; part < operation->parts(made->problem); part++)
        ck_assert(operation->model(made->problem, numerics, &made->tensors, part) ==
                  ASSAY_RAN);
    for (int i = 0; i < made->tensors.count; i++) {
        const struct assay_tensor *const tensor = &made->tensors.item[i];
        const struct assay_minifloat *const format = assay_minifloat(tensor->format);
        for (int64_t at = 0; tensor->is_output && at < assay_tensor_elements(tensor);
             at++) {
            if (!format) continue;
            finite +=
                isfinite(assay_minifloat_decode(format, assay_tensor_bits(tensor, at)));
            all++;
        }
    }
    return all > 0 ? finite / all : 1;
}

/* Of sfu a zero or subnormal in four or five has an infinite result. */
START_TEST(most_results_of_runs_are_finite)
{
    for (int i = 0; i < LINES; i++) {
        struct made made;
        make(&made, lines[i], "runs");
        const double finite = finite_share(&made);
        ck_assert_msg(finite > (strstr(lines[i], "sfu") ? 0.7 : 0.9), "%s: %g", lines[i],
                      finite);
        assay_buffers_close(&made.buffers);
    }
}
END_TEST

/* --- smaller cases ---------------------------------------------------------------- */

static const char *const pairs[][2] = {
    { "fp8_gemm_nt m=40 n=48 k=640 recipe=1d1d out=f32 c=1",
      "fp8_gemm_nt m=7 n=16 k=272 recipe=1d1d out=f32 c=1" },
    { "m_grouped_fp8_gemm_nt_masked groups=2 m_max=128 masked_m=40,30 n=48 k=256",
      "m_grouped_fp8_gemm_nt_masked groups=1 m_max=128 masked_m=9 n=16 k=144" },
    { "k_grouped_fp8_gemm_tn_contiguous m=128 n=48 ks=256",
      "k_grouped_fp8_gemm_tn_contiguous m=128 n=16 ks=128" },
    { "quantise m=70 k=600", "quantise m=3 k=129" },
    { "scale_layout mn=50 k=1280", "scale_layout mn=30 k=300" },
    { "mla_cache_quantise kv=v32 tokens=40", "mla_cache_quantise kv=v32 tokens=3" },
    { "mla_dense_decode b=2 h_q=16 s_q=2 s_k=200",
      "mla_dense_decode b=1 h_q=5 s_q=1 s_k=70" },
    { "mla_sparse_decode kv=v32 b=2 h_q=128 topk=64 sink=1",
      "mla_sparse_decode kv=v32 b=1 h_q=64 topk=64 sink=1" },
    { "mla_sparse_prefill s_q=3 h_q=128 s_kv=200 topk=128 sink=1",
      "mla_sparse_prefill s_q=1 h_q=64 s_kv=100 topk=128 sink=1 d_qk=512" },
    { "mla_combine b=1 s_q=2 h_q=20 splits=5", "mla_combine b=1 s_q=1 h_q=7 splits=3" },
    { "mla_absorb n=20 s_q=4 h_q=2 d=256 d_c=64 d_c_q=64 d_h=32 d_r=8",
      "mla_absorb n=5 s_q=1 h_q=1 d=100 d_c=30 d_c_q=20 d_h=16 d_r=2" },
    { "wgmma blocks=2 steps=9 n=64", "wgmma blocks=1 steps=2 n=24" },
    { "sfu function=ex2 count=4000", "sfu function=ex2 count=77" },
    { "convert to=e4m3 count=4000", "convert to=e4m3 count=77" },
};

/* The element of @large with the logical coordinates of element @at of @small. */
static int64_t same_place(const struct assay_tensor *small,
                          const struct assay_tensor *large, int64_t at)
{
    int64_t place = 0, step = 1;
    for (int i = small->rank - 1; i >= 0; i--) {
        place += at % small->shape[i] * step;
        at /= small->shape[i];
        step *= large->shape[i];
    }
    return place;
}

START_TEST(a_smaller_case_keeps_the_values_it_shares)
{
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct made large, small;
        int64_t compared = 0;
        make(&large, pairs[i][0], "runs");
        make(&small, pairs[i][1], "runs");
        for (int at = 0; at < small.tensors.count; at++) {
            const struct assay_tensor *const few = &small.tensors.item[at];
            const struct assay_tensor *const many =
                assay_tensors_find(&large.tensors, few->name);
            if (few->is_output || !assay_minifloat(few->format)) continue;
            uint8_t *const used_few = used_of(&small, at);
            uint8_t *const used_many = used_of(&large, (int)(many - large.tensors.item));
            for (int64_t k = 0; k < assay_tensor_elements(few); k++) {
                const int64_t there = same_place(few, many, k);
                if (!used_few[k] || !used_many[there]) continue;
                if (strcmp(few->name, "k_cache") == 0) continue; /* pages are shuffled */
                ck_assert_msg(assay_tensor_bits(few, k) == assay_tensor_bits(many, there),
                              "%s, %s %lld", pairs[i][1], few->name, (long long)k);
                compared++;
            }
            free(used_few);
            free(used_many);
        }
        ck_assert_msg(compared > 50, "%s: %lld", pairs[i][1], (long long)compared);
        assay_buffers_close(&large.buffers);
        assay_buffers_close(&small.buffers);
    }
}
END_TEST

static void read_token(const struct made *made, int64_t slot,
                       struct assay_mla_token *token)
{
    const struct assay_tensor *const k_cache = &made->tensors.item[0];
    const int64_t page_size = assay_case_value(&made->the_case, "page_size");
    memset(token, 0, sizeof(*token));
    assay_mla_token_unpack(
        &assay_mla_token_layouts[kv_of(made, "k_cache")], page_size, slot % page_size,
        (const uint8_t *)k_cache->data + slot / page_size * k_cache->stride[0], token);
}

START_TEST(a_cached_token_does_not_depend_on_how_many_there_are)
{
    static const char *const kvs[] = { "v32", "model1", "v41_fp8", "v41_fp4" };
    for (int kv = 0; kv < 4; kv++) {
        struct assay_mla_token first, second, before = { .scale = { 0 } };
        struct made large, small;
        char text[100];
        snprintf(text, sizeof(text), "mla_cache_dequantise kv=%s tokens=70", kvs[kv]);
        make(&large, text, "runs");
        snprintf(text, sizeof(text), "mla_cache_dequantise kv=%s tokens=9 page_size=4",
                 kvs[kv]);
        make(&small, text, "runs");
        for (int slot = 0; slot < 9; slot++) {
            read_token(&large, slot, &first);
            read_token(&small, slot, &second);
            ck_assert_int_eq(memcmp(&first, &second, sizeof(first)), 0);
            ck_assert_int_ne(memcmp(&first, &before, sizeof(first)), 0);
            before = first;
        }
        assay_buffers_close(&large.buffers);
        assay_buffers_close(&small.buffers);
    }
}
END_TEST

/* Rows, tensors and seeds differ: runs are not the same everywhere. */
START_TEST(rows_have_runs_of_their_own)
{
    struct made made;
    make(&made, "fp8_gemm_nt m=40 n=48 k=640", "runs");
    const uint8_t *const a = made.tensors.item[0].data;
    for (int row = 1; row < 40; row++)
        ck_assert_int_ne(memcmp(a, a + row * 640, 640), 0);
    assay_buffers_close(&made.buffers);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_operation_takes_both_kinds,
        zero_is_nothing_but_zeros_and_scales_of_one,
        zero_is_zero_to_the_bit,
        zero_and_runs_have_the_usual_lists_and_tables,
        runs_hold_zeros_subnormals_and_no_nan,
        most_results_of_runs_are_finite,
        a_smaller_case_keeps_the_values_it_shares,
        a_cached_token_does_not_depend_on_how_many_there_are,
        rows_have_runs_of_their_own,
        NULL,
    };
    return run_tests("data_kinds", tests);
}
