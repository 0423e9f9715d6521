/* SPDX-License-Identifier: MIT */
/* Sparse decode against tiles whose keys this test takes out of the caches' bytes by
 * itself: formats, indices, lengths, the extra cache, heads, plans. */
#include "ref/kernel/mla_sparse_decode.h"

#include "ref/format/minifloat.h"
#include "ref/kernel/mla_combine.h"
#include "tests/kernel/key_list.h"

enum {
    B = 2,
    S_Q = 2,
    HEADS = 128,
    PAGES = 5,
    PAGE_SIZE = 61,
    TOKENS = PAGES * PAGE_SIZE,
    MAX_TOPK = 256,
    ROWS = B * S_Q * HEADS,
    PAGE_BYTES = PAGE_SIZE * 656 + 48,
    GARBAGE = 2147480000,
};

struct cache {
    uint8_t bytes[PAGES * PAGE_BYTES];
    int32_t indices[B * S_Q * MAX_TOPK], lengths[B];
};

static struct fixture {
    struct assay_mla_sparse_decode_problem problem;
    struct assay_mla_numerics numerics;
    struct assay_tensors tensors;
    struct cache main, extra;
    uint16_t q[ROWS * 576];
    float sink[HEADS];
    int32_t metadata[4 * 8], num_splits[B + 1];
    uint16_t out[ROWS * D_V];
    float lse[ROWS];
} fixture;

/* --- caches, by upstream's addresses ---------------------------------------------- */

static void put_bf16(uint8_t *bytes, float value)
{
    const uint16_t code = bf16_code(value);
    memcpy(bytes, &code, sizeof(code));
}

static uint8_t draw_e4m3(void)
{
    return (uint8_t)(draw() % 0x78 | (draw() & 1) << 7); /* below 256 */
}

static float code_value(enum assay_format format, unsigned code)
{
    return (float)assay_minifloat_decode(assay_minifloat(format), code);
}

/* bf16 of a double, nearest. */
static uint16_t rounded(double value)
{
    return (uint16_t)assay_minifloat_encode(assay_minifloat(ASSAY_BF16), value,
                                            ASSAY_OVERFLOW_SPECIAL);
}

static uint8_t *page_of(struct cache *cache, int slot)
{
    return cache->bytes + slot / PAGE_SIZE * PAGE_BYTES;
}

static void draw_v32(struct cache *cache, int slot, uint16_t *key)
{
    uint8_t *const token = page_of(cache, slot) + slot % PAGE_SIZE * 656;
    float scale[4];
    for (int i = 0; i < 4; i++)
        scale[i] = 0.004f + draw_uniform(0.003f);
    for (int i = 0; i < 512; i++) {
        const uint16_t rounded_scale = rounded((double)scale[i / 128]);
        token[i] = draw_e4m3();
        key[i] = rounded((double)code_value(ASSAY_E4M3, token[i]) *
                         (double)bf16_value(rounded_scale));
    }
    memcpy(token + 512, scale, sizeof(scale));
    for (int i = 0; i < 64; i++)
        put_bf16(token + 528 + 2 * i, draw_uniform(1.0f));
    memcpy(key + 512, token + 528, 128);
}

static void draw_model1(struct cache *cache, int slot, uint16_t *key)
{
    uint8_t *const page = page_of(cache, slot);
    uint8_t *const token = page + slot % PAGE_SIZE * 576;
    uint8_t *const scale = page + PAGE_SIZE * 576 + slot % PAGE_SIZE * 8;
    for (int i = 0; i < 7; i++)
        scale[i] = (uint8_t)(118 + draw() % 3);
    for (int i = 0; i < 448; i++) {
        token[i] = draw_e4m3();
        key[i] = rounded((double)code_value(ASSAY_E4M3, token[i]) *
                         ldexp(1.0, scale[i / 64] - 127));
    }
    for (int i = 0; i < 64; i++)
        put_bf16(token + 448 + 2 * i, draw_uniform(1.0f));
    memcpy(key + 448, token + 448, 128);
}

static void draw_v41_fp8(struct cache *cache, int slot, uint16_t *key)
{
    uint8_t *const token = page_of(cache, slot) + slot % PAGE_SIZE * 528;
    for (int i = 0; i < 16; i++)
        token[512 + i] = (uint8_t)(118 + draw() % 3);
    for (int i = 0; i < 512; i++) {
        token[i] = draw_e4m3();
        key[i] = rounded((double)code_value(ASSAY_E4M3, token[i]) *
                         ldexp(1.0, token[512 + i / 32] - 127));
    }
}

static void draw_v41_fp4(struct cache *cache, int slot, uint16_t *key)
{
    uint8_t *const token = page_of(cache, slot) + slot % PAGE_SIZE * 288;
    for (int i = 0; i < 32; i++)
        token[256 + i] = (uint8_t)(0x18 + draw() % 16);
    for (int i = 0; i < 256; i++)
        token[i] = (uint8_t)draw();
    for (int i = 0; i < 512; i++) {
        const unsigned code = i % 2 ? token[i / 2] >> 4 : token[i / 2] & 0xF;
        key[i] = rounded((double)code_value(ASSAY_E2M1, code) *
                         (double)code_value(ASSAY_E4M3, token[256 + i / 16]));
    }
}

static uint16_t main_keys[TOKENS][576], extra_keys[TOKENS][576];

static void draw_cache(struct cache *cache, enum assay_mla_kv kv, uint16_t (*keys)[576])
{
    static void (*const draw_token[])(struct cache *, int, uint16_t *) = {
        [ASSAY_MLA_V32] = draw_v32,
        [ASSAY_MLA_MODEL1] = draw_model1,
        [ASSAY_MLA_V41_FP8] = draw_v41_fp8,
        [ASSAY_MLA_V41_FP4] = draw_v41_fp4,
    };
    memset(cache->bytes, 0xFF, sizeof(cache->bytes)); /* NaN */
    for (int slot = 0; slot < TOKENS; slot++)
        draw_token[kv](cache, slot, keys[slot]);
    for (int i = 0; i < B * S_Q * MAX_TOPK; i++)
        cache->indices[i] = draw() % 5 ? (int32_t)(draw() % TOKENS) : -1;
}

/* --- inputs ----------------------------------------------------------------------- */

static void add(const char *name, enum assay_format format, void *data, int rank,
                const int64_t *shape)
{
    struct assay_tensor *const tensor = &fixture.tensors.item[fixture.tensors.count++];
    *tensor = (struct assay_tensor){ .name = name, .format = format, .data = data };
    tensor->rank = rank;
    memcpy(tensor->shape, shape, (size_t)rank * sizeof(shape[0]));
    assay_tensor_set_dense(tensor);
}

static void add_cache(struct cache *cache, const struct assay_mla_cache *described,
                      const char *k_cache, const char *indices_name, const char *lengths)
{
    const int64_t pages[] = { PAGES, PAGE_BYTES }, b[] = { B };
    const int64_t indices[] = { B, S_Q, described->topk };
    add(k_cache, ASSAY_U8, cache->bytes, 2, pages);
    add(indices_name, ASSAY_I32, cache->indices, 3, indices);
    if (described->has_topk_length) add(lengths, ASSAY_I32, cache->lengths, 1, b);
}

static void add_tensors(void)
{
    const struct assay_mla_sparse_decode_problem *const p = &fixture.problem;
    const int64_t q[] = { B, S_Q, p->h_q, assay_mla_d_qk(p->cache.kv) };
    const int64_t out[] = { B, S_Q, p->h_q, D_V }, lse[] = { B, p->h_q, S_Q };
    const int64_t heads[] = { p->h_q }, sums[] = { B + 1 };
    const int64_t parts[] = { p->num_sm_parts, 8 };
    fixture.tensors.count = 0;
    add("q", ASSAY_BF16, fixture.q, 4, q);
    add_cache(&fixture.main, &p->cache, "k_cache", "indices", "topk_length");
    if (p->extra.topk)
        add_cache(&fixture.extra, &p->extra, "extra_k_cache", "extra_indices_in_kvcache",
                  "extra_topk_length");
    if (p->has_sink) add("attn_sink", ASSAY_F32, fixture.sink, 1, heads);
    add("tile_scheduler_metadata", ASSAY_I32, fixture.metadata, 2, parts);
    add("num_splits", ASSAY_I32, fixture.num_splits, 1, sums);
    add("out", ASSAY_BF16, fixture.out, 4, out);
    add("lse", ASSAY_F32, fixture.lse, 3, lse);
}

/* Every request is taken whole; 1000 blocks are cut to what there is. */
static void prepare(enum assay_mla_kv kv, int64_t h_q, int64_t topk,
                    enum assay_mla_kv extra_kv, int64_t extra_topk)
{
    static const int32_t record[8] = { 0, B - 1, 0, 1000 }, sums[] = { 0, 1, 2 };
    memset(&fixture, 0, sizeof(fixture));
    random_state = 584;
    fixture.numerics = assay_mla_flashmla_sparse_decode;
    fixture.problem = (struct assay_mla_sparse_decode_problem){
        .b = B,
        .s_q = S_Q,
        .h_q = h_q,
        .cache = { kv, PAGES, PAGE_SIZE, PAGE_BYTES, topk, false },
        .num_sm_parts = 1,
        .softmax_scale = 1.0f / 24.0f,
    };
    draw_cache(&fixture.main, kv, main_keys);
    if (extra_topk) {
        fixture.problem.extra =
            (struct assay_mla_cache){ extra_kv,   PAGES,      PAGE_SIZE,
                                      PAGE_BYTES, extra_topk, false };
        draw_cache(&fixture.extra, extra_kv, extra_keys);
    }
    draw_codes(fixture.q, ROWS * 576, 6.0f);
    for (int i = 0; i < HEADS; i++)
        fixture.sink[i] = draw_uniform(3.0f);
    memcpy(fixture.metadata, record, sizeof(record));
    memcpy(fixture.num_splits, sums, sizeof(sums));
    add_tensors();
}

static void use_lengths(int32_t first, int32_t second)
{
    fixture.problem.cache.has_topk_length = true;
    fixture.main.lengths[0] = first;
    fixture.main.lengths[1] = second;
    add_tensors();
}

static void use_extra_lengths(int32_t first, int32_t second)
{
    fixture.problem.extra.has_topk_length = true;
    fixture.extra.lengths[0] = first;
    fixture.extra.lengths[1] = second;
    add_tensors();
}

static void run(void)
{
    memset(fixture.out, 0x5A, sizeof(fixture.out));
    for (int64_t i = 0; i < assay_mla_sparse_decode_parts(&fixture.problem); i++)
        ck_assert(assay_mla_sparse_decode_model(&fixture.problem, &fixture.numerics,
                                                &fixture.tensors, i));
}

/* --- expectation ------------------------------------------------------------------ */

static struct key_list list;
static struct results results;

static const uint16_t *out_at(int request, int token, int64_t head)
{
    return fixture.out + ((request * S_Q + token) * fixture.problem.h_q + head) * D_V;
}

static uint32_t lse_at(int request, int token, int64_t head)
{
    return bits_of(fixture.lse[(request * fixture.problem.h_q + head) * S_Q + token]);
}

/* Appends whole blocks for the first @length indices; at least @at_least of them. */
static void gather_cache(const struct cache *cache,
                         const struct assay_mla_cache *described, uint16_t (*keys)[576],
                         int request, int token, int at_least)
{
    const int64_t length =
        described->has_topk_length ? cache->lengths[request] : described->topk;
    const int64_t whole = (length + 63) / 64 * 64;
    const int64_t end = whole > 64 * at_least ? whole : 64 * at_least;
    const int32_t *const indices =
        cache->indices + (request * S_Q + token) * described->topk;
    for (int64_t i = 0; i < end; i++, list.count++) {
        if (i >= length || indices[i] == -1) continue;
        memcpy(list.key[list.count], keys[indices[i]], sizeof(list.key[0]));
        for (int row = 0; row < KEY_ROWS; row++)
            list.attended[row][list.count] = true;
    }
}

static struct assay_mla_query gather(int request, int token, int64_t first_head)
{
    const struct assay_mla_sparse_decode_problem *const p = &fixture.problem;
    struct assay_mla_query query = {
        .numerics = &fixture.numerics,
        .format = ASSAY_BF16,
        .rows = 64,
        .d_qk = (int)assay_mla_d_qk(p->cache.kv),
        .softmax_scale = p->softmax_scale,
        .is_base_two = p->is_base_two,
        .sink = p->has_sink ? fixture.sink + first_head : NULL,
        .keys = { &list, load_from_list },
    };
    memset(&list, 0, sizeof(list));
    gather_cache(&fixture.main, &p->cache, main_keys, request, token, 1);
    if (p->extra.topk)
        gather_cache(&fixture.extra, &p->extra, extra_keys, request, token, 0);
    for (int row = 0; row < 64; row++)
        query.q[row] = fixture.q +
                       ((request * S_Q + token) * p->h_q + first_head + row) * query.d_qk;
    return query;
}

static void assert_request(int request)
{
    for (int token = 0; token < S_Q; token++)
        for (int64_t head = 0; head < fixture.problem.h_q; head += 64) {
            const struct assay_mla_query query = gather(request, token, head);
            attend(&query, 0, blocks_of_list(&list), &results);
            ck_assert(same_bits(out_at(request, token, head), results.out,
                                sizeof(results.out)));
            for (int row = 0; row < 64; row++)
                ck_assert_uint_eq(lse_at(request, token, head + row),
                                  bits_of(results.lse[row]));
        }
}

static void run_and_assert(void)
{
    run();
    for (int request = 0; request < B; request++)
        assert_request(request);
}

/* --- tests ------------------------------------------------------------------------ */

START_TEST(tokens_of_every_format_are_attended)
{
    for (int has_sink = 0; has_sink < 2; has_sink++) {
        static const enum assay_mla_kv all[] = { ASSAY_MLA_V32, ASSAY_MLA_MODEL1,
                                                 ASSAY_MLA_V41_FP8 };
        for (int i = 0; i < 3; i++) {
            prepare(all[i], has_sink ? 128 : 64, 192, all[i], 0);
            fixture.problem.has_sink = has_sink;
            add_tensors();
            run_and_assert();
        }
    }
}
END_TEST

START_TEST(an_extra_cache_begins_on_a_block_of_its_own)
{
    prepare(ASSAY_MLA_MODEL1, 64, 128, ASSAY_MLA_MODEL1, 192);
    run_and_assert();
    use_lengths(70, 3);
    use_extra_lengths(130, 0);
    run_and_assert();
    prepare(ASSAY_MLA_V41_FP8, 64, 128, ASSAY_MLA_V41_FP4, 64);
    use_lengths(0, 128);
    run_and_assert();
    fixture.problem.is_base_two = true;
    run_and_assert();
}
END_TEST

START_TEST(what_lies_behind_a_length_is_never_looked_at)
{
    prepare(ASSAY_MLA_MODEL1, 64, 192, ASSAY_MLA_MODEL1, 64);
    use_lengths(100, 5);
    use_extra_lengths(7, 1);
    for (int request = 0; request < B; request++)
        for (int token = 0; token < S_Q; token++) {
            for (int i = fixture.main.lengths[request]; i < 192; i++)
                fixture.main.indices[(request * S_Q + token) * 192 + i] =
                    i % 2 ? GARBAGE : -GARBAGE;
            for (int i = fixture.extra.lengths[request]; i < 64; i++)
                fixture.extra.indices[(request * S_Q + token) * 64 + i] = i % 2 ? 0 : 1;
        }
    run_and_assert();
}
END_TEST

START_TEST(a_length_of_0_gives_out_0_and_lse_infinity)
{
    prepare(ASSAY_MLA_MODEL1, 64, 128, ASSAY_MLA_MODEL1, 0);
    use_lengths(0, 128);
    run_and_assert();
    ck_assert_uint_eq(lse_at(0, 1, 63), 0x7F800000);
    for (int column = 0; column < D_V; column++)
        ck_assert_uint_eq(out_at(0, 1, 63)[column], 0);
}
END_TEST

START_TEST(shortening_a_length_over_trailing_minus_ones_leaves_every_bit)
{
    static uint16_t out[ROWS * D_V];
    static float lse[ROWS];
    for (int32_t length = 192; length >= 60; length -= 22) {
        prepare(ASSAY_MLA_MODEL1, 64, 192, ASSAY_MLA_MODEL1, 0);
        for (int i = 0; i < B * S_Q * 192; i++)
            if (i % 192 >= 60) fixture.main.indices[i] = -1;
        use_lengths(length, 192);
        run();
        if (length == 192) memcpy(out, fixture.out, sizeof(out));
        if (length == 192) memcpy(lse, fixture.lse, sizeof(lse));
        ck_assert(same_bits(out, fixture.out, sizeof(out)));
        ck_assert(same_bits(lse, fixture.lse, sizeof(lse)));
    }
}
END_TEST

START_TEST(a_heads_bits_are_those_of_64_heads_under_the_same_plan)
{
    static uint16_t out[B * S_Q][64][D_V];
    static uint16_t q[ROWS / 2 * 576];
    prepare(ASSAY_MLA_V32, 128, 192, ASSAY_MLA_V32, 0);
    run();
    for (int i = 0; i < B * S_Q; i++) {
        memcpy(out[i], fixture.out + (i * 128 + 64) * D_V, sizeof(out[0]));
        memcpy(q + i * 64 * 576, fixture.q + (i * 128 + 64) * 576,
               sizeof(q[0]) * 64 * 576);
    }
    prepare(ASSAY_MLA_V32, 64, 192, ASSAY_MLA_V32, 0);
    memcpy(fixture.q, q, sizeof(q));
    run();
    ck_assert(same_bits(out, fixture.out, sizeof(out)));
}
END_TEST

START_TEST(a_repeated_index_is_attended_as_often)
{
    prepare(ASSAY_MLA_V32, 64, 64, ASSAY_MLA_V32, 0);
    memset(fixture.main.indices, 0xFF, sizeof(fixture.main.indices));
    for (int i = 0; i < B * S_Q; i++)
        fixture.main.indices[i * 64 + 9] = 17;
    run();
    float once;
    memcpy(&once, &fixture.lse[3], sizeof(once));
    for (int i = 0; i < B * S_Q; i++)
        fixture.main.indices[i * 64 + 40] = 17;
    run();
    ck_assert_double_eq_tol((double)(fixture.lse[3] - once), 0.6931472, 1e-5);
    for (int column = 0; column < D_V; column++)
        ck_assert(bf16_value(out_at(0, 0, 0)[column]) ==
                  bf16_value(main_keys[17][column]));
}
END_TEST

START_TEST(slots_outside_the_cache_read_as_zeros_and_are_attended)
{
    static const int32_t outside[] = { TOKENS, GARBAGE, -2, -GARBAGE };
    prepare(ASSAY_MLA_V32, 64, 64, ASSAY_MLA_V32, 0);
    for (int i = 0; i < 4; i++)
        fixture.main.indices[5 * (i + 1)] = outside[i];
    run();
    for (int i = 0; i < 4; i++)
        fixture.main.indices[5 * (i + 1)] = -1;
    const struct assay_mla_query query = gather(0, 0, 0);
    for (int i = 0; i < 4; i++)
        for (int row = 0; row < KEY_ROWS; row++)
            list.attended[row][5 * (i + 1)] = true;
    attend(&query, 0, 1, &results);
    ck_assert(same_bits(out_at(0, 0, 0), results.out, sizeof(results.out)));
}
END_TEST

START_TEST(a_knob_rounds_the_scale_of_v32_or_the_product)
{
    static uint16_t out[ROWS * D_V];
    for (int i = 0; i < 2; i++) {
        prepare(ASSAY_MLA_V32, 64, 64, ASSAY_MLA_V32, 0);
        fixture.numerics.dequantisation =
            i ? ASSAY_MLA_F32_PRODUCT : ASSAY_MLA_SCALE_TO_BF16;
        run();
        if (i == 0) memcpy(out, fixture.out, sizeof(out));
    }
    ck_assert(!same_bits(out, fixture.out, sizeof(out)));
}
END_TEST

/* Request 0, of four blocks, in three parts. */
static void assert_splits(void)
{
    static const int32_t records[3][8] = { { 0, 0, 0, 1, 0, 1, 1, 0 },
                                           { 0, 0, 1, 3, 1, 1, 1, 0 },
                                           { 0, 1, 3, 9, 2, 1, 0, 0 } };
    static const int32_t sums[] = { 0, 3, 4 };
    static const int bounds[] = { 0, 1, 3, 4 };
    static float oaccum[3][D_V], lseaccum[3];
    memcpy(fixture.metadata, records, sizeof(records));
    memcpy(fixture.num_splits, sums, sizeof(sums));
    fixture.problem.num_sm_parts = 3;
    fixture.problem.has_sink = true;
    add_tensors();
    run();
    for (int token = 0; token < S_Q; token++)
        for (int head = 0; head < 64; head += 21) {
            const struct assay_mla_query query = gather(0, token, 0);
            for (int split = 0; split < 3; split++) {
                attend(&query, bounds[split], bounds[split + 1], &results);
                memcpy(oaccum[split], results.oaccum[head], sizeof(oaccum[0]));
                lseaccum[split] = results.lseaccum[head];
            }
            uint16_t out[D_V];
            float lse;
            assay_mla_combine_row(&fixture.numerics.combine, 3, oaccum[0], D_V, lseaccum,
                                  1, &fixture.sink[head], false, ASSAY_BF16, out, &lse);
            ck_assert(same_bits(out, out_at(0, token, head), sizeof(out)));
            ck_assert_uint_eq(lse_at(0, token, head), bits_of(lse));
        }
    assert_request(1);
}

START_TEST(splits_run_from_the_main_cache_into_the_extra_one)
{
    prepare(ASSAY_MLA_MODEL1, 64, 128, ASSAY_MLA_MODEL1, 128);
    assert_splits();
}
END_TEST

START_TEST(a_main_cache_of_length_0_is_the_first_block_of_a_plan)
{
    prepare(ASSAY_MLA_MODEL1, 64, 128, ASSAY_MLA_MODEL1, 192);
    use_lengths(0, 128);
    assert_splits();
}
END_TEST

START_TEST(a_part_is_64_heads_of_one_token)
{
    prepare(ASSAY_MLA_V32, 128, 64, ASSAY_MLA_V32, 0);
    for (int64_t part = 0; part < B * S_Q * 2; part++) {
        memset(fixture.out, 0x5A, sizeof(fixture.out));
        ck_assert(assay_mla_sparse_decode_model(&fixture.problem, &fixture.numerics,
                                                &fixture.tensors, part));
        for (int row = 0; row < ROWS; row += 32)
            ck_assert_int_eq(fixture.out[row * D_V] != 0x5A5A, row / 64 == part);
    }
}
END_TEST

START_TEST(a_broken_plan_harms_nobody)
{
    prepare(ASSAY_MLA_V32, 64, 128, ASSAY_MLA_V32, 0);
    fixture.problem.num_sm_parts = 4;
    add_tensors();
    for (int repeat = 0; repeat < 12; repeat++) {
        for (int i = 0; i < 4 * 8; i++)
            fixture.metadata[i] = (int32_t)(draw() % 3 ? draw() % 4 : draw());
        for (int i = 0; i <= B; i++)
            fixture.num_splits[i] = (int32_t)(draw() % 3 ? draw() % 4 : draw());
        ck_assert(assay_mla_sparse_decode_model(&fixture.problem, &fixture.numerics,
                                                &fixture.tensors, repeat % 4));
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        tokens_of_every_format_are_attended,
        an_extra_cache_begins_on_a_block_of_its_own,
        what_lies_behind_a_length_is_never_looked_at,
        a_length_of_0_gives_out_0_and_lse_infinity,
        shortening_a_length_over_trailing_minus_ones_leaves_every_bit,
        a_heads_bits_are_those_of_64_heads_under_the_same_plan,
        a_repeated_index_is_attended_as_often,
        slots_outside_the_cache_read_as_zeros_and_are_attended,
        a_knob_rounds_the_scale_of_v32_or_the_product,
        splits_run_from_the_main_cache_into_the_extra_one,
        a_main_cache_of_length_0_is_the_first_block_of_a_plan,
        a_part_is_64_heads_of_one_token,
        a_broken_plan_harms_nobody,
        NULL,
    };
    return run_tests("mla_sparse_decode", tests);
}
