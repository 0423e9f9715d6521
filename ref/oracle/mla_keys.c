/* SPDX-License-Identifier: MIT */
/* Codes times scales are exact in double: at most 4 by 24 bits. */
#include "ref/oracle/mla_keys.h"

#include "ref/oracle/fp8_code.h"
#include "ref/oracle/mla_cache.h"

#include <math.h>
#include <string.h>

enum { BLOCK = ASSAY_MLA_BLOCK };

/* --- numbers ---------------------------------------------------------------------- */

static float f32_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static double f16_value(uint16_t code)
{
    const int field = code >> 10 & 31, fraction = code & 1023;
    const double sign = code & 0x8000 ? -1 : 1;
    if (field == 31) return fraction ? (double)NAN : sign * (double)INFINITY;
    if (field == 0) return sign * fraction * 0x1p-24;
    const double power = (double)f32_of((uint32_t)(field + 127 - 15) << 23);
    return sign * (1024 + fraction) * 0x1p-10 * power;
}

double assay_mla_element_value(enum assay_format format, uint16_t code)
{
    return format == ASSAY_F16 ? f16_value(code) : (double)f32_of((uint32_t)code << 16);
}

enum assay_mla_holding assay_mla_holding_of(const double *element, int64_t count)
{
    bool has_nan = false, has_infinity = false;
    for (int64_t i = 0; i < count; i++) {
        has_nan |= isnan(element[i]) != 0;
        has_infinity |= isinf(element[i]) != 0;
    }
    return has_nan        ? ASSAY_MLA_HOLDS_NAN
           : has_infinity ? ASSAY_MLA_HOLDS_INFINITY
                          : ASSAY_MLA_HOLDS_NUMBERS;
}

/* Of normal numbers of bf16, in the significand's bits; others are rare. */
static double bf16_nearest(double value)
{
    const double magnitude = fabs(value);
    if (!(magnitude >= 0x1p-126 && magnitude < 0x1p127))
        return assay_mla_bf16_nearest(value);
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    bits += (UINT64_C(1) << 44) - 1 + (bits >> 45 & 1);
    bits &= ~((UINT64_C(1) << 45) - 1);
    memcpy(&value, &bits, sizeof(bits));
    return value;
}

/* --- lists ------------------------------------------------------------------------ */

static const int32_t *integers(const struct assay_tensors *tensors, const char *name)
{
    return assay_tensors_find(tensors, name)->data;
}

static int64_t blocks_of(int64_t positions)
{
    return (positions + BLOCK - 1) / BLOCK;
}

/* @length, or what is nearest to it in [0, @longest]. */
static int64_t legal_length(struct assay_mla_key_list *keys, int64_t length,
                            int64_t longest)
{
    if (length >= 0 && length <= longest) return length;
    keys->is_undefined = true;
    return length < 0 ? 0 : longest;
}

void assay_mla_dense_decode_keys(const struct assay_mla_dense_decode_problem *problem,
                                 const struct assay_tensors *tensors, int64_t request,
                                 int64_t head, struct assay_mla_key_list *keys)
{
    const struct assay_tensor *const table = assay_tensors_find(tensors, "block_table");
    const int32_t *const length = integers(tensors, "cache_seqlens");
    *keys = (struct assay_mla_key_list){
        .source = ASSAY_MLA_FROM_PAGES,
        .format = problem->format,
        .d_qk = ASSAY_MLA_MAX_D_QK,
        .tensor = assay_tensors_find(tensors, "k_cache"),
        .pages = (const int32_t *)table->data + request * table->stride[0],
        .head = head,
        .vectors = problem->pages * BLOCK,
    };
    keys->positions = legal_length(keys, length[request], problem->table_columns * BLOCK);
    keys->blocks = blocks_of(keys->positions);
}

static void open_cache(const struct assay_mla_sparse_decode_problem *problem, int which,
                       const struct assay_tensors *tensors, int64_t request,
                       int64_t token, struct assay_mla_key_list *keys)
{
    static const char *const names[2][3] = {
        { "k_cache", "indices", "topk_length" },
        { "extra_k_cache", "extra_indices_in_kvcache", "extra_topk_length" },
    };
    const struct assay_mla_cache *const cache = which ? &problem->extra : &problem->cache;
    if (cache->topk == 0) return;
    const struct assay_tensor *const indices =
        assay_tensors_find(tensors, names[which][1]);
    struct assay_mla_indexed_cache *const opened = &keys->cache[which];
    opened->tensor = assay_tensors_find(tensors, names[which][0]);
    opened->cache = *cache;
    opened->indices = (const int32_t *)indices->data + request * indices->stride[0] +
                      token * indices->stride[1];
    opened->length = cache->topk;
    if (cache->has_topk_length)
        opened->length =
            legal_length(keys, integers(tensors, names[which][2])[request], cache->topk);
    keys->positions += opened->length;
    keys->blocks += blocks_of(opened->length);
}

void assay_mla_sparse_decode_keys(const struct assay_mla_sparse_decode_problem *problem,
                                  const struct assay_tensors *tensors, int64_t request,
                                  int64_t token, struct assay_mla_key_list *keys)
{
    struct assay_fp8_code table[256];
    *keys = (struct assay_mla_key_list){
        .source = ASSAY_MLA_FROM_CACHES,
        .format = ASSAY_BF16,
        .d_qk = (int)assay_mla_d_qk(problem->cache.kv),
    };
    assay_fp8_codes(ASSAY_E4M3, table);
    for (int code = 0; code < 256; code++)
        keys->code_value[code] =
            table[code].kind == ASSAY_FP8_NAN ? NAN : table[code].value;
    open_cache(problem, 0, tensors, request, token, keys);
    open_cache(problem, 1, tensors, request, token, keys);
}

void assay_mla_sparse_prefill_keys(const struct assay_mla_sparse_prefill_problem *problem,
                                   const struct assay_tensors *tensors, int64_t token,
                                   struct assay_mla_key_list *keys)
{
    const struct assay_tensor *const indices = assay_tensors_find(tensors, "indices");
    *keys = (struct assay_mla_key_list){
        .source = ASSAY_MLA_FROM_VECTORS,
        .format = ASSAY_BF16,
        .d_qk = (int)problem->d_qk,
        .positions = problem->topk,
        .tensor = assay_tensors_find(tensors, "kv"),
        .indices = (const int32_t *)indices->data + token * indices->stride[0],
        .vectors = problem->s_kv,
    };
    if (problem->has_topk_length)
        keys->positions =
            legal_length(keys, integers(tensors, "topk_length")[token], problem->topk);
    keys->blocks = blocks_of(keys->positions);
}

/* --- keys ------------------------------------------------------------------------- */

static void set_unknown(struct assay_mla_key *key)
{
    memset(key->element, 0, sizeof(key->element));
    key->holding = ASSAY_MLA_HOLDS_UNKNOWN;
}

static void read_vector(const struct assay_mla_key_list *keys, int64_t offset,
                        struct assay_mla_key *key)
{
    const uint16_t *const code = (const uint16_t *)keys->tensor->data + offset;
    if (keys->format == ASSAY_F16)
        for (int i = 0; i < keys->d_qk; i++)
            key->element[i] = f16_value(code[i]);
    else
        for (int i = 0; i < keys->d_qk; i++)
            key->element[i] = (double)f32_of((uint32_t)code[i] << 16);
    key->holding = assay_mla_holding_of(key->element, keys->d_qk);
}

static void read_paged(const struct assay_mla_key_list *keys, int64_t position,
                       struct assay_mla_key *key)
{
    const int64_t page = keys->pages[position / BLOCK];
    const int64_t *const stride = keys->tensor->stride;
    if (page < 0 || page >= keys->vectors / BLOCK)
        set_unknown(key);
    else
        read_vector(keys,
                    page * stride[0] + position % BLOCK * stride[1] +
                        keys->head * stride[2],
                    key);
}

static void read_indexed(const struct assay_mla_key_list *keys, int64_t position,
                         struct assay_mla_key *key)
{
    const int64_t index = keys->indices[position];
    key->is_attended = index >= 0 && index < keys->vectors;
    if (key->is_attended) read_vector(keys, index * keys->tensor->stride[0], key);
}

static uint32_t little_endian(const uint8_t *bytes, int count)
{
    uint32_t bits = 0;
    for (int i = 0; i < count; i++)
        bits |= (uint32_t)bytes[i] << 8 * i;
    return bits;
}

static double scale_value(const struct assay_mla_key_list *keys, enum assay_mla_kv kv,
                          const uint8_t *from)
{
    switch (kv) {
    case ASSAY_MLA_V32: return (double)f32_of(little_endian(from, 4));
    case ASSAY_MLA_V41_FP4: return (double)keys->code_value[*from];
    default: return *from == 255 ? (double)NAN : ldexp(1, *from - 127);
    }
}

static double e2m1_value(unsigned code)
{
    static const double magnitude[8] = { 0, 0.5, 1, 1.5, 2, 3, 4, 6 };
    return code & 8 ? -magnitude[code & 7] : magnitude[code & 7];
}

/* Elements [first, first + count), of one scale, as they are stored. */
static void read_codes(const struct assay_mla_key_list *keys, int codes_a_byte,
                       const uint8_t *from, double scale, int first, int count,
                       double *element)
{
    for (int i = first; i < first + count; i++) {
        const uint8_t byte = from[i / codes_a_byte];
        element[i] =
            scale * (codes_a_byte == 2 ? e2m1_value(i % 2 ? byte >> 4 : byte & 15)
                                       : (double)keys->code_value[byte]);
    }
}

/* What kernels multiply instead, with the factor that turns a product by @scale into one
 * by the scale they use. */
static void round_codes(enum assay_mla_reading reading, double scale, int first,
                        int count, struct assay_mla_key *key)
{
    const double scale_used =
        reading == ASSAY_MLA_BF16_OF_BF16S ? bf16_nearest(scale) : scale;
    for (int i = first; i < first + count; i++) {
        const double stored = key->element[i];
        /* stored / scale is the code: a double, and so is its product. */
        double product = scale_used == scale ? stored : stored / scale * scale_used;
        if (reading == ASSAY_MLA_BF16_OF_SINGLE) product = (double)(float)product;
        const double rounded = bf16_nearest(product);
        key->is_rounded |= rounded != stored && !isnan(stored);
        key->element[i] = rounded;
    }
}

static void read_token(const struct assay_mla_key_list *keys,
                       const struct assay_mla_indexed_cache *from, int64_t slot,
                       struct assay_mla_key *key)
{
    const struct assay_mla_cache_problem layout = { .kv = from->cache.kv,
                                                    .page_size = from->cache.page_size };
    const struct assay_mla_cache_bytes at =
        assay_mla_cache_bytes_of(&layout, slot % from->cache.page_size);
    const uint8_t *const page = (const uint8_t *)from->tensor->data +
                                slot / from->cache.page_size * from->tensor->stride[0];
    for (int first = 0; first < at.coded; first += at.tile) {
        const double scale =
            scale_value(keys, layout.kv,
                        page + at.scales + (int64_t)(first / at.tile) * at.scale_bytes);
        read_codes(keys, at.codes_a_byte, page + at.codes, scale, first, at.tile,
                   key->element);
        if (keys->reading != ASSAY_MLA_AS_STORED)
            round_codes(keys->reading, scale, first, at.tile, key);
    }
    for (int i = at.coded; i < keys->d_qk; i++)
        key->element[i] =
            (double)f32_of(little_endian(page + at.rope + 2 * (i - at.coded), 2) << 16);
    key->holding = assay_mla_holding_of(key->element, keys->d_qk);
}

static void read_cached(const struct assay_mla_key_list *keys, int64_t position,
                        struct assay_mla_key *key)
{
    const struct assay_mla_indexed_cache *cache = &keys->cache[0];
    if (position >= cache->length) {
        position -= cache->length;
        cache++;
    }
    const int64_t slot = cache->indices[position];
    key->is_attended = slot != -1;
    if (!key->is_attended) return;
    if (slot < 0 || slot >= cache->cache.pages * cache->cache.page_size)
        set_unknown(key);
    else
        read_token(keys, cache, slot, key);
}

void assay_mla_read_key(const struct assay_mla_key_list *keys, int64_t position,
                        struct assay_mla_key *key)
{
    key->is_attended = true;
    key->is_rounded = false;
    switch (keys->source) {
    case ASSAY_MLA_FROM_PAGES: read_paged(keys, position, key); break;
    case ASSAY_MLA_FROM_CACHES: read_cached(keys, position, key); break;
    case ASSAY_MLA_FROM_VECTORS: read_indexed(keys, position, key); break;
    }
}
