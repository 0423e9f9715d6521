/* SPDX-License-Identifier: MIT */
/* The attention oracle over FP8 and FP4 caches that are built by hand here, byte by byte,
 * against a softmax in long double. */
#include "tests/oracle/slow_attention.h"

#include <cblas.h>

static double e4m3_value(unsigned code)
{
    const int exponent = code >> 3 & 15;
    const double sign = code >> 7 ? -1 : 1;
    if ((code & 127) == 127) return (double)NAN;
    return exponent ? sign * ldexp(1 + (code & 7) / 8.0, exponent - 7)
                    : sign * ldexp(code & 7, -9);
}

static double e2m1_value(unsigned code)
{
    static const double values[16] = { 0,  0.5,  1,  1.5,  2,  3,  4,  6,
                                       -0, -0.5, -1, -1.5, -2, -3, -4, -6 };
    return values[code & 15];
}

static float sinks[128];

/* --- caches ------------------------------------------------------------------------- */

struct layout { /* of a token, in bytes: by hand */
    enum assay_mla_kv kv;
    int d_qk, coded, tile, scale_bytes, record;
    int scales, rope; /* in the record; scales of model1 lie behind all records */
};

static const struct layout layouts[] = {
    { ASSAY_MLA_V32, 576, 512, 128, 4, 656, 512, 528 },
    { ASSAY_MLA_MODEL1, 512, 448, 64, 1, 576, -1, 448 },
    { ASSAY_MLA_V41_FP8, 512, 512, 32, 1, 528, 512, -1 },
    { ASSAY_MLA_V41_FP4, 512, 512, 16, 1, 288, 256, -1 },
};

static uint8_t *scale_bytes(const struct layout *layout,
                            const struct assay_mla_cache *from, uint8_t *bytes,
                            int64_t slot, int tile)
{
    uint8_t *const page = bytes + slot / from->page_size * from->page_stride;
    const int64_t place = slot % from->page_size;
    if (layout->scales < 0) return page + from->page_size * 576 + place * 8 + tile;
    return page + place * layout->record + layout->scales + tile * layout->scale_bytes;
}

static double scale_value(enum assay_mla_kv kv, const uint8_t *from)
{
    float single;
    memcpy(&single, from, sizeof(single));
    if (kv == ASSAY_MLA_V32) return (double)single;
    return kv == ASSAY_MLA_V41_FP4 ? e4m3_value(*from) : exp2(*from - 127);
}

static double cached_element(const struct layout *layout,
                             const struct assay_mla_cache *from, uint8_t *bytes,
                             int64_t slot, int d)
{
    const uint8_t *const record = bytes + slot / from->page_size * from->page_stride +
                                  slot % from->page_size * layout->record;
    if (d >= layout->coded) {
        const uint8_t *const at = record + layout->rope + 2 * (d - layout->coded);
        return bf16_value((unsigned)(at[0] | at[1] << 8));
    }
    const double scale =
        scale_value(layout->kv, scale_bytes(layout, from, bytes, slot, d / layout->tile));
    if (layout->kv == ASSAY_MLA_V41_FP4)
        return scale * e2m1_value(record[d / 2] >> (d % 2 * 4));
    return scale * e4m3_value(record[d]);
}

static void write_token(const struct layout *layout, const struct assay_mla_cache *from,
                        uint8_t *bytes, int64_t slot)
{
    uint8_t *const record = bytes + slot / from->page_size * from->page_stride +
                            slot % from->page_size * layout->record;
    for (int i = 0; i < layout->coded / (layout->kv == ASSAY_MLA_V41_FP4 ? 2 : 1); i++) {
        do {
            record[i] = (uint8_t)draw();
        } while (layout->kv != ASSAY_MLA_V41_FP4 && (record[i] & 127) == 127);
        if (layout->kv != ASSAY_MLA_V41_FP4) record[i] &= 0xbf; /* below 2 */
    }
    for (int tile = 0; tile < layout->coded / layout->tile; tile++) {
        uint8_t *const at = scale_bytes(layout, from, bytes, slot, tile);
        const float single = (float)(0.5 + uniform() / 4);
        if (layout->kv == ASSAY_MLA_V32)
            memcpy(at, &single, sizeof(single));
        else
            *at = (uint8_t)(layout->kv == ASSAY_MLA_V41_FP4 ? 0x20 + below(16)
                                                            : 124 + below(4));
    }
    for (int i = layout->coded; i < layout->d_qk; i++) {
        const uint16_t code = bf16_code(uniform());
        memcpy(record + layout->rope + 2 * (i - layout->coded), &code, sizeof(code));
    }
}

/* A cache of which every second slot is written; indices name those, repeat them, or are
 * -1. */
static void fill_cache(int which, const struct assay_mla_cache *from, int64_t tokens)
{
    memset(cache[which], 0xff, sizeof(cache[which]));
    for (int64_t slot = 0; slot < from->pages * from->page_size; slot += 2)
        write_token(&layouts[from->kv], from, cache[which], slot);
    for (int64_t i = 0; i < tokens * from->topk; i++)
        indices[which][i] =
            below(5) ? (int32_t)(2 * below(from->pages * from->page_size / 2)) : -1;
}

static const struct assay_mla_sparse_decode_problem sparse_problem = {
    .b = 3,
    .s_q = 2,
    .h_q = 128,
    .num_sm_parts = 4,
    .has_sink = true,
    .softmax_scale = 0.21f,
};

static struct assay_mla_cache cache_of(enum assay_mla_kv kv, int64_t page_size,
                                       int64_t topk)
{
    return (struct assay_mla_cache){ .kv = kv,
                                     .pages = 3,
                                     .page_size = page_size,
                                     .page_stride = 700 * page_size + 48,
                                     .topk = topk,
                                     .has_topk_length = kv != ASSAY_MLA_V32 };
}

static void add_cache(const struct assay_mla_sparse_decode_problem *problem, int which)
{
    static const char *const names[2][3] = {
        { "k_cache", "indices", "topk_length" },
        { "extra_k_cache", "extra_indices_in_kvcache", "extra_topk_length" },
    };
    const struct assay_mla_cache *const from = which ? &problem->extra : &problem->cache;
    if (from->topk == 0) return;
    add_tensor(names[which][0], ASSAY_U8, 2, SHAPE(from->pages, from->page_stride),
               cache[which]);
    add_tensor(names[which][1], ASSAY_I32, 3, SHAPE(3, 2, from->topk), indices[which]);
    if (from->has_topk_length)
        add_tensor(names[which][2], ASSAY_I32, 1, SHAPE(3), lengths[which]);
    fill_cache(which, from, 6);
    lengths[which][0] = which ? 0 : (int32_t)from->topk;
    lengths[which][1] = 0;
    lengths[which][2] = 5;
}

static void shape_sparse(const struct assay_mla_sparse_decode_problem *problem)
{
    const int64_t d_qk = assay_mla_d_qk(problem->cache.kv);
    tensors.count = 0;
    add_tensor("q", ASSAY_BF16, 4, SHAPE(3, 2, 128, d_qk), q_codes);
    add_tensor("attn_sink", ASSAY_F32, 1, SHAPE(128), sinks);
    add_cache(problem, 0);
    add_cache(problem, 1);
    fill_bf16(q_codes, 3 * 2 * 128 * d_qk, 1);
    for (int i = 0; i < 128; i++)
        sinks[i] = i % 3 ? (i % 3 == 1 ? INFINITY : -INFINITY) : (float)uniform() * 3;
    sinks[0] = sinks[64] = 0.5f;
}

static void gather(const struct assay_mla_sparse_decode_problem *problem, int64_t request,
                   int64_t token)
{
    slow.keys = 0;
    slow.d_qk = (int)assay_mla_d_qk(problem->cache.kv);
    for (int which = 0; which < 2; which++) {
        const struct assay_mla_cache *const from =
            which ? &problem->extra : &problem->cache;
        const int64_t length =
            from->has_topk_length ? lengths[which][request] : from->topk;
        for (int64_t i = 0; i < (from->topk ? length : 0); i++) {
            const int32_t slot = indices[which][(request * 2 + token) * from->topk + i];
            if (slot == -1) continue;
            for (int d = 0; d < slow.d_qk; d++)
                slow.key[slow.keys][d] =
                    cached_element(&layouts[from->kv], from, cache[which], slot, d);
            slow.keys++;
        }
    }
}

static void check_sparse(const struct assay_mla_sparse_decode_problem *problem)
{
    static struct answer answer;
    double q[576];
    shape_sparse(problem);
    for (int64_t index = 0; index < assay_mla_sparse_decode_parts(problem); index++) {
        const int64_t request = index / 4, token = index / 2 % 2;
        struct assay_mla_part part;
        assay_mla_sparse_decode_part(problem, &tensors, index, &part);
        struct assay_mla_oracle *const oracle = assay_mla_oracle_open(&part);
        assay_mla_oracle_rows(oracle, 0, NULL);
        gather(problem, request, token);
        for (int64_t row = 0; row < 64; row += 1 + below(6)) {
            const int64_t head = index % 2 * 64 + row;
            for (int d = 0; d < slow.d_qk; d++)
                q[d] = bf16_value(
                    q_codes[((request * 2 + token) * 128 + head) * slow.d_qk + d]);
            attend(q, (double)problem->softmax_scale, (double)sinks[head], &answer);
            check_row(oracle, row, &answer);
        }
        assay_mla_oracle_close(oracle);
    }
}

START_TEST(sparse_decode_reads_every_cache_format_as_stored)
{
    struct assay_mla_sparse_decode_problem problem = sparse_problem;
    for (int kv = ASSAY_MLA_V32; kv <= ASSAY_MLA_V41_FP8; kv++) {
        problem.cache = cache_of((enum assay_mla_kv)kv, 17, 128);
        problem.extra = (struct assay_mla_cache){ .topk = 0 };
        check_sparse(&problem);
    }
}
END_TEST

START_TEST(an_extra_cache_adds_its_keys)
{
    struct assay_mla_sparse_decode_problem problem = sparse_problem;
    problem.cache = cache_of(ASSAY_MLA_MODEL1, 64, 64);
    problem.extra = cache_of(ASSAY_MLA_MODEL1, 2, 70);
    check_sparse(&problem);
    problem.cache = cache_of(ASSAY_MLA_V41_FP8, 9, 64);
    problem.extra = cache_of(ASSAY_MLA_V41_FP4, 13, 100);
    problem.extra.has_topk_length = false;
    check_sparse(&problem);
}
END_TEST

static uint16_t nearest_bf16(double x)
{
    unsigned best = 0;
    for (unsigned code = 0; code < 0x7f80; code++)
        if (fabs(bf16_value(code) - fabs(x)) < fabs(bf16_value(best) - fabs(x)) ||
            (fabs(bf16_value(code) - fabs(x)) == fabs(bf16_value(best) - fabs(x)) &&
             code % 2 == 0))
            best = code;
    return (uint16_t)(best | (x < 0 ? 0x8000u : 0));
}

START_TEST(readings_round_as_kernels_do)
{
    struct assay_mla_sparse_decode_problem problem = sparse_problem;
    struct assay_mla_key_list keys;
    struct assay_mla_key key;
    const struct layout *const layout = &layouts[ASSAY_MLA_V32];
    problem.cache = cache_of(ASSAY_MLA_V32, 16, 64);
    shape_sparse(&problem);
    indices[0][0] = 2;
    assay_mla_sparse_decode_keys(&problem, &tensors, 0, 0, &keys);
    for (int d = 0; d < 576; d += 7) {
        const double stored = cached_element(layout, &problem.cache, cache[0], 2, d);
        const uint8_t *const scale =
            scale_bytes(layout, &problem.cache, cache[0], 2, d / 128);
        const double factor = d < 512 ? scale_value(ASSAY_MLA_V32, scale) : 1;
        const double rounded = d < 512 ? bf16_value(nearest_bf16(factor)) : 1;
        keys.reading = ASSAY_MLA_BF16_OF_BF16S;
        assay_mla_read_key(&keys, 0, &key);
        ck_assert(key.is_rounded);
        ck_assert_double_eq(key.element[d],
                            bf16_value(nearest_bf16(stored / factor * rounded)));
        keys.reading = ASSAY_MLA_BF16_OF_SINGLE;
        assay_mla_read_key(&keys, 0, &key);
        ck_assert_double_eq(key.element[d], bf16_value(nearest_bf16(stored)));
        keys.reading = ASSAY_MLA_AS_STORED;
        assay_mla_read_key(&keys, 0, &key);
        ck_assert(!key.is_rounded);
        ck_assert_double_eq(key.element[d], stored);
    }
    for (int tile = 0; tile < 4; tile++) {
        const float power = ldexpf(1, tile - 3);
        memcpy(scale_bytes(layout, &problem.cache, cache[0], 2, tile), &power, 4);
    }
    keys.reading = ASSAY_MLA_BF16_OF_BF16S;
    assay_mla_read_key(&keys, 0, &key);
    ck_assert_msg(!key.is_rounded, "powers of two round nothing");
}
END_TEST

/* Key 0 of request 0 and token 0 is slot 4, all others are slot 2. */
START_TEST(one_rounded_key_is_remembered_whatever_follows)
{
    struct assay_mla_sparse_decode_problem problem = sparse_problem;
    struct assay_mla_part part;
    const struct layout *const layout = &layouts[ASSAY_MLA_V32];
    problem.cache = cache_of(ASSAY_MLA_V32, 16, 128);
    shape_sparse(&problem);
    for (int i = 0; i < 128; i++)
        indices[0][i] = i ? 2 : 4;
    for (int is_odd = 0; is_odd < 2; is_odd++) {
        for (int tile = 0; tile < 4; tile++) {
            const float two = 2, odd = 1 + 0x1p-20f; /* of more bits than a BF16 */
            uint8_t *const plain = scale_bytes(layout, &problem.cache, cache[0], 2, tile);
            memcpy(plain, &two, sizeof(two));
            memcpy(scale_bytes(layout, &problem.cache, cache[0], 4, tile),
                   is_odd ? &odd : &two, sizeof(odd));
        }
        assay_mla_sparse_decode_part(&problem, &tensors, 0, &part);
        part.keys.reading = ASSAY_MLA_BF16_OF_BF16S;
        struct assay_mla_oracle *const oracle = assay_mla_oracle_open(&part);
        assay_mla_oracle_rows(oracle, 0, NULL);
        ck_assert_int_eq(oracle->was_rounded, is_odd);
        assay_mla_oracle_close(oracle);
    }
}
END_TEST

START_TEST(slots_outside_and_odd_sinks_are_unknown)
{
    struct assay_mla_sparse_decode_problem problem = sparse_problem;
    struct assay_mla_part part;
    problem.cache = cache_of(ASSAY_MLA_V32, 16, 64);
    shape_sparse(&problem);
    sinks[3] = NAN;
    sinks[4] = -3e38f;
    for (int wild = 0; wild < 3; wild++) {
        if (wild) indices[0][1] = wild == 1 ? 48 : -2;
        assay_mla_sparse_decode_part(&problem, &tensors, 0, &part);
        struct assay_mla_oracle *const oracle = assay_mla_oracle_open(&part);
        assay_mla_oracle_rows(oracle, 0, NULL);
        for (int i = 0; i < 64; i++)
            ck_assert_int_eq(oracle->row[i].state, wild || i == 3 || i == 4
                                                       ? ASSAY_MLA_ROW_UNKNOWN
                                                       : ASSAY_MLA_ROW_FINITE);
        assay_mla_oracle_close(oracle);
    }
}
END_TEST

int main(void)
{
    openblas_set_num_threads(1);
    const TTest *const tests[] = {
        sparse_decode_reads_every_cache_format_as_stored,
        an_extra_cache_adds_its_keys,
        readings_round_as_kernels_do,
        one_rounded_key_is_remembered_whatever_follows,
        slots_outside_and_odd_sinks_are_unknown,
        NULL,
    };
    return run_tests("oracle_mla_attention_caches", tests);
}
