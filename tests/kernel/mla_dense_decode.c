/* SPDX-License-Identifier: MIT */
/* Dense decode against tiles whose keys this test gathers by itself: pages, heads, the
 * causal rule, plans, strides, and what may never be read. */
#include "ref/kernel/mla_dense_decode.h"

#include "ref/kernel/mla_combine.h"
#include "tests/kernel/key_list.h"

enum {
    MAX_B = 4,
    MAX_PAGES = 24,
    COLUMNS = 8, /* of the block table */
    MAX_PARTS = 8,
    D_QK = 576,
    Q_STRIDE = D_QK + 8,
    OUT_STRIDE = D_V + 8,
    UNUSED_ENTRY = 2147480000,
    MAX_ROWS = 256, /* of all requests, tokens and heads */
};
static const uint16_t nan_code = 0x7FFF;

static struct fixture {
    struct assay_mla_dense_decode_problem problem;
    struct assay_mla_numerics numerics;
    struct assay_tensors tensors;
    uint16_t q[MAX_ROWS * Q_STRIDE];
    uint16_t k_cache[MAX_PAGES * 64 * 2 * D_QK];
    int32_t block_table[MAX_B * COLUMNS], cache_seqlens[MAX_B];
    int32_t metadata[MAX_PARTS * 8], num_splits[MAX_B + 1];
    uint16_t out[MAX_ROWS * OUT_STRIDE];
    float lse[2 * MAX_ROWS];
} fixture;

/* --- inputs ----------------------------------------------------------------------- */

static struct assay_tensor *add(const char *name, enum assay_format format, void *data,
                                int rank, const int64_t *shape)
{
    struct assay_tensor *const tensor = &fixture.tensors.item[fixture.tensors.count++];
    *tensor = (struct assay_tensor){ .name = name, .format = format, .data = data };
    tensor->rank = rank;
    memcpy(tensor->shape, shape, (size_t)rank * sizeof(shape[0]));
    assay_tensor_set_dense(tensor);
    return tensor;
}

/* Rows of the last dimension are @stride elements apart. */
static void spread(struct assay_tensor *tensor, int64_t stride)
{
    tensor->stride[tensor->rank - 2] = stride;
    for (int i = tensor->rank - 3; i >= 0; i--)
        tensor->stride[i] = tensor->stride[i + 1] * tensor->shape[i + 1];
}

static void add_tensors(void)
{
    const struct assay_mla_dense_decode_problem *const p = &fixture.problem;
    const int64_t q[] = { p->b, p->s_q, p->h_q, D_QK };
    const int64_t out[] = { p->b, p->s_q, p->h_q, D_V };
    const int64_t cache[] = { p->pages, 64, p->h_k, D_QK };
    const int64_t table[] = { p->b, COLUMNS }, lse[] = { p->b, p->h_q, p->s_q };
    const int64_t parts[] = { p->num_sm_parts, 8 }, b[] = { p->b }, sums[] = { p->b + 1 };
    fixture.tensors.count = 0;
    spread(add("q", p->format, fixture.q, 4, q), Q_STRIDE);
    ck_assert_int_le(p->b * p->s_q * p->h_q, MAX_ROWS);
    add("k_cache", p->format, fixture.k_cache, 4, cache);
    add("block_table", ASSAY_I32, fixture.block_table, 2, table);
    add("cache_seqlens", ASSAY_I32, fixture.cache_seqlens, 1, b);
    add("tile_scheduler_metadata", ASSAY_I32, fixture.metadata, 2, parts);
    add("num_splits", ASSAY_I32, fixture.num_splits, 1, sums);
    spread(add("out", p->format, fixture.out, 4, out), OUT_STRIDE);
    struct assay_tensor *const t = add("lse", ASSAY_F32, fixture.lse, 3, lse);
    for (int i = 0; i < 3; i++)
        t->stride[i] *= 2;
}

/* One part takes all requests whole. */
static void plan_whole(void)
{
    const int64_t b = fixture.problem.b, length = fixture.cache_seqlens[b - 1];
    const int32_t record[8] = { 0, (int32_t)b - 1, 0, (int32_t)((length + 63) / 64) };
    fixture.problem.num_sm_parts = 1;
    memcpy(fixture.metadata, record, sizeof(record));
    for (int32_t i = 0; i <= b; i++)
        fixture.num_splits[i] = i;
}

/* Lengths as given, a page for each 64 keys in shuffled order, NaN in every other slot,
 * enormous entries behind the table's own. */
static void prepare(const struct assay_mla_dense_decode_problem *problem,
                    const int32_t *lengths)
{
    memset(&fixture, 0, sizeof(fixture));
    random_state = 656;
    fixture.problem = *problem;
    fixture.problem.pages = MAX_PAGES;
    fixture.problem.table_columns = COLUMNS;
    fixture.problem.softmax_scale = 1.0f / 24.0f;
    if (!fixture.problem.format) fixture.problem.format = ASSAY_BF16;
    fixture.numerics = assay_mla_flashmla_dense;
    for (int64_t i = 0; i < MAX_ROWS * Q_STRIDE; i++)
        fixture.q[i] = i % Q_STRIDE < D_QK ? bf16_code(draw_uniform(6.0f)) : nan_code;
    for (int64_t i = 0; i < MAX_PAGES * 64 * 2 * D_QK; i++)
        fixture.k_cache[i] = nan_code;
    memset(fixture.out, 0x5A, sizeof(fixture.out));
    memset(fixture.lse, 0x5A, sizeof(fixture.lse));
    int page = 0;
    for (int r = 0; r < problem->b; r++) {
        fixture.cache_seqlens[r] = lengths[r];
        for (int column = 0; column < COLUMNS; column++) {
            int32_t *const entry = &fixture.block_table[r * COLUMNS + column];
            *entry = UNUSED_ENTRY;
            if (column * 64 >= lengths[r]) continue;
            *entry = (7 * page++ + 5) % MAX_PAGES;
            const int64_t left = lengths[r] - column * 64;
            draw_codes(fixture.k_cache + *entry * 64 * problem->h_k * D_QK,
                       (left < 64 ? left : 64) * problem->h_k * D_QK, 1.0f);
        }
    }
    ck_assert_int_le(page, MAX_PAGES);
    plan_whole();
    add_tensors();
}

static void run(void)
{
    for (int64_t i = 0; i < assay_mla_dense_decode_parts(&fixture.problem); i++)
        ck_assert(assay_mla_dense_decode_model(&fixture.problem, &fixture.numerics,
                                               &fixture.tensors, i));
}

/* --- expectation ------------------------------------------------------------------ */

static struct key_list list;
static struct results results;

static int64_t row_of(int64_t request, int64_t token, int64_t head)
{
    return (request * fixture.problem.s_q + token) * fixture.problem.h_q + head;
}

static const uint16_t *out_at(int64_t request, int64_t token, int64_t head)
{
    return fixture.out + row_of(request, token, head) * OUT_STRIDE;
}

static uint32_t lse_at(int64_t request, int64_t token, int64_t head)
{
    const int64_t heads = fixture.problem.h_q, s_q = fixture.problem.s_q;
    return bits_of(fixture.lse[2 * ((request * heads + head) * s_q + token)]);
}

/* One token's heads of one KV head: rows of a tile of their own. */
static struct assay_mla_query gather(int64_t request, int64_t kv_head, int64_t token)
{
    const struct assay_mla_dense_decode_problem *const p = &fixture.problem;
    const int64_t group = p->h_q / p->h_k, length = fixture.cache_seqlens[request];
    struct assay_mla_query query = {
        .numerics = &fixture.numerics,
        .format = p->format,
        .rows = (int)group,
        .d_qk = D_QK,
        .softmax_scale = p->softmax_scale,
        .is_base_two = p->is_base_two,
        .keys = { &list, load_from_list },
    };
    memset(&list, 0, sizeof(list));
    list.count = (int)length;
    for (int64_t key = 0; key < length; key++) {
        const int64_t page = fixture.block_table[request * COLUMNS + key / 64];
        const int64_t slot = (page * 64 + key % 64) * p->h_k + kv_head;
        memcpy(list.key[key], fixture.k_cache + slot * D_QK, sizeof(list.key[key]));
        for (int64_t row = 0; row < group; row++)
            list.attended[row][key] =
                !p->is_causal || key < length - (p->s_q - 1 - token);
    }
    for (int64_t row = 0; row < group; row++)
        query.q[row] =
            fixture.q + row_of(request, token, kv_head * group + row) * Q_STRIDE;
    return query;
}

static void assert_request(int64_t request)
{
    const struct assay_mla_dense_decode_problem *const p = &fixture.problem;
    const int64_t group = p->h_q / p->h_k;
    for (int64_t kv_head = 0; kv_head < p->h_k; kv_head++)
        for (int64_t token = 0; token < p->s_q; token++) {
            const struct assay_mla_query query = gather(request, kv_head, token);
            attend(&query, 0, blocks_of_list(&list), &results);
            for (int64_t row = 0; row < group; row++) {
                const int64_t head = kv_head * group + row;
                ck_assert(same_bits(out_at(request, token, head), results.out[row],
                                    sizeof(results.out[row])));
                ck_assert_uint_eq(lse_at(request, token, head),
                                  bits_of(results.lse[row]));
            }
        }
}

static void assert_padding(void)
{
    const int64_t rows = row_of(fixture.problem.b, 0, 0);
    for (int64_t i = 0; i < MAX_ROWS * OUT_STRIDE; i++) {
        const bool is_padding = i / OUT_STRIDE >= rows || i % OUT_STRIDE >= D_V;
        if (is_padding && fixture.out[i] != 0x5A5A) ck_abort_msg("out %jd", (intmax_t)i);
    }
    for (int64_t i = 1; i < 2 * MAX_ROWS; i += 2)
        ck_assert_uint_eq(bits_of(fixture.lse[i]), 0x5A5A5A5A);
}

/* --- tests ------------------------------------------------------------------------ */

START_TEST(rows_attend_to_their_requests_pages)
{
    static const int32_t lengths[] = { 200, 64, 1, 129 };
    static const struct assay_mla_dense_decode_problem problems[] = {
        { .b = 4, .s_q = 1, .h_q = 6, .h_k = 2 },
        { .b = 4, .s_q = 2, .h_q = 6, .h_k = 2, .is_causal = true },
        { .b = 3, .s_q = 3, .h_q = 9, .h_k = 1, .is_causal = false },
        { .b = 2, .s_q = 4, .h_q = 32, .h_k = 1, .is_causal = true, .is_base_two = true },
        { .b = 1, .s_q = 3, .h_q = 30, .h_k = 1, .is_causal = true },
        { .b = 1, .s_q = 2, .h_q = 128, .h_k = 2 },
    };
    for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++) {
        prepare(&problems[i], lengths);
        run();
        for (int64_t request = 0; request < problems[i].b; request++)
            assert_request(request);
        assert_padding();
    }
}
END_TEST

START_TEST(half_precision_is_read_and_written_as_such)
{
    static const int32_t lengths[] = { 70 };
    prepare(
        &(struct assay_mla_dense_decode_problem){
            .b = 1, .s_q = 1, .h_q = 3, .h_k = 1, .format = ASSAY_F16 },
        lengths);
    run();
    assert_request(0);
}
END_TEST

START_TEST(a_request_of_length_0_reads_nothing)
{
    static const int32_t lengths[] = { 0, 65, 0 };
    prepare(
        &(struct assay_mla_dense_decode_problem){
            .b = 3, .s_q = 2, .h_q = 4, .h_k = 1, .is_causal = true },
        lengths);
    run();
    for (int request = 0; request < 3; request += 2)
        for (int head = 0; head < 4; head++) {
            for (int column = 0; column < D_V; column++)
                ck_assert_uint_eq(out_at(request, 1, head)[column], 0);
            ck_assert_uint_eq(lse_at(request, 1, head), 0x7F800000);
        }
    assert_request(1);
}
END_TEST

/* With 64 heads a token is a tile. What its rows cannot see is left alone block by block,
 * but multiplied by zero inside a block. */
START_TEST(a_causal_tile_ends_at_the_last_block_that_its_last_row_sees)
{
    for (int32_t length = 65; length <= 66; length++) {
        prepare(
            &(struct assay_mla_dense_decode_problem){
                .b = 1, .s_q = 2, .h_q = 64, .h_k = 1, .is_causal = true },
            &length);
        const int64_t last = length - 1, page = fixture.block_table[last / 64];
        fixture.k_cache[(page * 64 + last % 64) * D_QK + 3] = nan_code;
        run();
        const bool leaks = length == 66;
        ck_assert_int_eq(out_at(0, 0, 5)[3] == nan_code, leaks);
        ck_assert_uint_ne(out_at(0, 0, 5)[4], nan_code);
        ck_assert_uint_ne(lse_at(0, 0, 5), 0x7F800000);
        ck_assert_uint_eq(out_at(0, 1, 5)[4], nan_code);
        ck_assert_uint_eq(lse_at(0, 1, 5), 0x7F800000); /* a NaN sum counts as none */
    }
}
END_TEST

START_TEST(a_causal_tile_that_sees_no_key_has_lse_infinity)
{
    static const int32_t lengths[] = { 1 };
    prepare(
        &(struct assay_mla_dense_decode_problem){
            .b = 1, .s_q = 3, .h_q = 64, .h_k = 1, .is_causal = true },
        lengths);
    run();
    for (int token = 0; token < 2; token++) {
        ck_assert_uint_eq(lse_at(0, token, 63), 0x7F800000);
        ck_assert_uint_eq(out_at(0, token, 63)[511], 0);
    }
    assert_request(0);
}
END_TEST

START_TEST(one_token_sees_all_keys_causal_or_not)
{
    static const int32_t lengths[] = { 100 };
    static uint16_t out[D_V];
    for (int is_causal = 0; is_causal < 2; is_causal++) {
        prepare(
            &(struct assay_mla_dense_decode_problem){
                .b = 1, .s_q = 1, .h_q = 2, .h_k = 1, .is_causal = is_causal },
            lengths);
        run();
        if (!is_causal) memcpy(out, out_at(0, 0, 1), sizeof(out));
        ck_assert(same_bits(out, out_at(0, 0, 1), sizeof(out)));
    }
}
END_TEST

START_TEST(pages_outside_the_cache_read_as_zeros)
{
    static const int32_t lengths[] = { 150 }, outside[] = { -1, MAX_PAGES, UNUSED_ENTRY };
    static uint16_t out[2][D_V];
    for (int i = -1; i < 3; i++) {
        prepare(
            &(struct assay_mla_dense_decode_problem){
                .b = 1, .s_q = 1, .h_q = 2, .h_k = 1 },
            lengths);
        int32_t *const entry = &fixture.block_table[1];
        if (i < 0)
            memset(fixture.k_cache + *entry * 64 * D_QK, 0, 64 * D_QK * 2);
        else
            *entry = outside[i];
        run();
        memcpy(out[i >= 0], out_at(0, 0, 1), sizeof(out[0]));
        if (i >= 0) ck_assert(same_bits(out[0], out[1], sizeof(out[0])));
    }
}
END_TEST

START_TEST(blocks_beyond_the_table_read_as_zeros)
{
    static const int32_t lengths[] = { COLUMNS * 64 + 10, 64 };
    prepare(
        &(struct assay_mla_dense_decode_problem){ .b = 2, .s_q = 1, .h_q = 2, .h_k = 1 },
        lengths);
    run();
    const struct assay_mla_query query = gather(0, 0, 0);
    for (int key = COLUMNS * 64; key < list.count; key++)
        memset(list.key[key], 0, sizeof(list.key[key]));
    attend(&query, 0, blocks_of_list(&list), &results);
    ck_assert(same_bits(out_at(0, 0, 1), results.out[1], sizeof(results.out[1])));
}
END_TEST

START_TEST(a_part_is_one_request_and_kv_head)
{
    static const int32_t lengths[] = { 65, 64, 3 };
    prepare(
        &(struct assay_mla_dense_decode_problem){ .b = 3, .s_q = 2, .h_q = 4, .h_k = 2 },
        lengths);
    for (int64_t part = 0; part < 6; part++) {
        memset(fixture.out, 0x5A, sizeof(fixture.out));
        ck_assert(assay_mla_dense_decode_model(&fixture.problem, &fixture.numerics,
                                               &fixture.tensors, part));
        for (int row = 0; row < 3 * 2 * 4; row++) {
            const bool is_part = row / 8 == part / 2 && row % 4 / 2 == part % 2;
            ck_assert_int_eq(fixture.out[row * OUT_STRIDE] != 0x5A5A, is_part);
        }
    }
}
END_TEST

/* Request 0 in three parts of 2, 0 and 3 blocks; the last goes on with request 1. */
static void plan_splits(void)
{
    static const int32_t records[3][8] = { { 0, 0, 0, 2, 0, 1, 1, 0 },
                                           { 0, 0, 2, 2, 1, 1, 1, 0 },
                                           { 0, 1, 2, 2, 2, 1, 0, 0 } };
    static const int32_t sums[] = { 0, 3, 4 };
    fixture.problem.num_sm_parts = 3;
    memcpy(fixture.metadata, records, sizeof(records));
    memcpy(fixture.num_splits, sums, sizeof(sums));
    add_tensors();
}

START_TEST(splits_of_a_plan_are_attended_apart_and_combined)
{
    static const int32_t lengths[] = { 300, 128 };
    static const int bounds[] = { 0, 2, 2, 5 };
    static float oaccum[3][D_V], lseaccum[3];
    prepare(
        &(struct assay_mla_dense_decode_problem){
            .b = 2, .s_q = 2, .h_q = 40, .h_k = 1, .is_causal = true },
        lengths);
    plan_splits();
    run();
    for (int token = 0; token < 2; token++)
        for (int head = 0; head < 40; head += 13) {
            const struct assay_mla_query query = gather(0, 0, token);
            for (int split = 0; split < 3; split++) {
                attend(&query, bounds[split], bounds[split + 1], &results);
                memcpy(oaccum[split], results.oaccum[head], sizeof(oaccum[0]));
                lseaccum[split] = results.lseaccum[head];
            }
            uint16_t out[D_V];
            float lse;
            assay_mla_combine_row(&fixture.numerics.combine, 3, oaccum[0], D_V, lseaccum,
                                  1, NULL, false, ASSAY_BF16, out, &lse);
            ck_assert(same_bits(out, out_at(0, token, head), sizeof(out)));
            ck_assert_uint_eq(lse_at(0, token, head), bits_of(lse));
        }
    assert_request(1);
}
END_TEST

START_TEST(combine_has_numerics_of_its_own)
{
    static const int32_t lengths[] = { 300, 128 };
    uint32_t lse[2];
    for (int i = 0; i < 2; i++) {
        int differ = 0;
        prepare(
            &(struct assay_mla_dense_decode_problem){
                .b = 2, .s_q = 1, .h_q = 40, .h_k = 1 },
            lengths);
        plan_splits();
        if (i) fixture.numerics.combine.lse_form = ASSAY_MLA_LSE_FUSED;
        static uint32_t before[2][40];
        run();
        for (int request = 0; request < 2; request++)
            for (int head = 0; head < 40; head++) {
                lse[0] = before[request][head];
                lse[1] = before[request][head] = lse_at(request, 0, head);
                differ += i && request == 0 && lse[0] != lse[1];
                if (i && request == 1) ck_assert_uint_eq(lse[0], lse[1]);
            }
        if (i) ck_assert_int_gt(differ, 0);
    }
}
END_TEST

START_TEST(permuted_requests_of_the_same_boundaries_have_permuted_results)
{
    static const int32_t lengths[] = { 200, 64, 130 };
    static uint16_t out[3][D_V];
    static uint32_t lse[3];
    for (int shift = 0; shift < 3; shift++) {
        prepare(
            &(struct assay_mla_dense_decode_problem){
                .b = 3, .s_q = 1, .h_q = 1, .h_k = 1 },
            lengths);
        uint16_t q[3][Q_STRIDE];
        int32_t table[3][COLUMNS];
        memcpy(q, fixture.q, sizeof(q));
        memcpy(table, fixture.block_table, sizeof(table));
        for (int i = 0; i < 3; i++) {
            const int from = (i + shift) % 3;
            memcpy(fixture.q + i * Q_STRIDE, q[from], sizeof(q[0]));
            memcpy(fixture.block_table + i * COLUMNS, table[from], sizeof(table[0]));
            fixture.cache_seqlens[i] = lengths[from];
        }
        plan_whole();
        run();
        for (int i = 0; i < 3; i++) {
            const int from = (i + shift) % 3;
            if (shift == 0) memcpy(out[i], out_at(i, 0, 0), sizeof(out[0]));
            if (shift == 0) lse[i] = lse_at(i, 0, 0);
            ck_assert(same_bits(out[from], out_at(i, 0, 0), sizeof(out[0])));
            ck_assert_uint_eq(lse[from], lse_at(i, 0, 0));
        }
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        rows_attend_to_their_requests_pages,
        half_precision_is_read_and_written_as_such,
        a_request_of_length_0_reads_nothing,
        a_causal_tile_ends_at_the_last_block_that_its_last_row_sees,
        a_causal_tile_that_sees_no_key_has_lse_infinity,
        one_token_sees_all_keys_causal_or_not,
        pages_outside_the_cache_read_as_zeros,
        blocks_beyond_the_table_read_as_zeros,
        a_part_is_one_request_and_kv_head,
        splits_of_a_plan_are_attended_apart_and_combined,
        combine_has_numerics_of_its_own,
        permuted_requests_of_the_same_boundaries_have_permuted_results,
        NULL,
    };
    return run_tests("mla_dense_decode", tests);
}
