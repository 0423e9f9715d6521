/* SPDX-License-Identifier: MIT */
/* Relations of the cache operations, all to the bit.
 *
 * Twice x means twice the scales and the same codes where a scale is neither raised to
 * its floor (below 2^-12; v41_fp4: 2^-5, above its subnormal ones) nor near the end of
 * its range. Twice the scales means twice the keys where key and scale stay in the normal
 * range of bf16. */
#include "verify/operation/mla_cache/mla_cache_properties.h"

#include "ref/format/minifloat.h"
#include "ref/layout/mla_cache.h"
#include "verify/operation/mla_cache/mla_cache.h"

#include <math.h>
#include <string.h>

#define MOST 0x1p100

enum share { CODES, SCALES, ROPE, NOBODYS };

struct byte_place { /* of a byte of the cache */
    int64_t token;
    enum share share;
    int64_t index; /* of the byte in the token's share */
};

static const struct assay_mla_token_layout *
layout_of(const struct assay_property_run *run)
{
    const struct assay_mla_cache_problem *const problem = run->problem;
    return &assay_mla_token_layouts[problem->kv];
}

static const struct assay_tensor *cache_of(const struct assay_property_run *run)
{
    return assay_tensors_find(run->tensors, "k_cache");
}

static void share_bytes(const struct assay_mla_token_layout *layout, int64_t bytes[3])
{
    bytes[CODES] = layout->coded_dims / layout->codes_per_byte;
    bytes[SCALES] = layout->scales * (int64_t)assay_format_bytes(layout->scale);
    bytes[ROPE] = layout->rope_dims * 2;
}

/* First byte of each share of a token, from the start of the cache without padding. */
static void share_starts(const struct assay_mla_cache_problem *problem, int64_t token,
                         int64_t start[3])
{
    const int64_t page_bytes = assay_mla_cache_tensor(problem).shape[1];
    const int64_t page = token / problem->page_size * page_bytes;
    const struct assay_mla_token_place at =
        assay_mla_place(&assay_mla_token_layouts[problem->kv], problem->page_size,
                        token % problem->page_size);
    start[CODES] = page + at.codes;
    start[SCALES] = page + at.scales;
    start[ROPE] = page + at.rope;
}

/* The slot whose record, or whose record of scales, has the byte. */
static int64_t slot_of(const struct assay_mla_token_layout *layout, int64_t page_size,
                       int64_t byte)
{
    const int64_t records = page_size * layout->record_bytes;
    return byte < records ? byte / layout->record_bytes
                          : (byte - records) / layout->scale_record_bytes;
}

static struct byte_place place_of(const struct assay_property_run *run, int64_t element)
{
    const struct assay_mla_cache_problem *const problem = run->problem;
    const int64_t page_bytes = cache_of(run)->shape[1];
    struct byte_place place = { .share = NOBODYS };
    int64_t bytes[3], start[3];
    place.token = element / page_bytes * problem->page_size +
                  slot_of(layout_of(run), problem->page_size, element % page_bytes);
    if (place.token >= problem->tokens) return place;
    share_bytes(layout_of(run), bytes);
    share_starts(problem, place.token, start);
    for (int share = CODES; share <= ROPE; share++)
        if (element >= start[share] && element < start[share] + bytes[share]) {
            place.share = (enum share)share;
            place.index = element - start[share];
        }
    return place;
}

static uint8_t *page_of(const struct assay_property_run *run, int64_t token)
{
    const struct assay_mla_cache_problem *const problem = run->problem;
    const struct assay_tensor *const cache = cache_of(run);
    return (uint8_t *)cache->data + token / problem->page_size * cache->stride[0];
}

static void unpack(const struct assay_property_run *run, int64_t token,
                   struct assay_mla_token *unpacked)
{
    const struct assay_mla_cache_problem *const problem = run->problem;
    assay_mla_token_unpack(layout_of(run), problem->page_size, token % problem->page_size,
                           page_of(run, token), unpacked);
}

static void pack(const struct assay_property_run *run, int64_t token,
                 const struct assay_mla_token *packed)
{
    const struct assay_mla_cache_problem *const problem = run->problem;
    assay_mla_token_pack(layout_of(run), problem->page_size, token % problem->page_size,
                         packed, page_of(run, token));
}

void assay_mla_cache_used(const void *bound, const struct assay_tensors *tensors,
                          int input, uint8_t *is_used)
{
    const struct assay_mla_cache_problem *const problem = bound;
    int64_t bytes[3], start[3];
    memset(is_used, 0, (size_t)assay_tensor_elements(&tensors->item[input]));
    share_bytes(&assay_mla_token_layouts[problem->kv], bytes);
    for (int64_t token = 0; token < problem->tokens; token++) {
        share_starts(problem, token, start);
        for (int share = CODES; share <= ROPE; share++)
            if (bytes[share] > 0) memset(is_used + start[share], 1, (size_t)bytes[share]);
    }
}

static double value_of(enum assay_format format, uint32_t bits)
{
    return assay_minifloat_decode(assay_minifloat(format), bits);
}

/* What has no double in its format stays. */
static uint32_t doubled(enum assay_format format, uint32_t bits)
{
    const struct assay_minifloat *const codec = assay_minifloat(format);
    const double twice = 2 * assay_minifloat_decode(codec, bits);
    const double largest = assay_minifloat_decode(codec, codec->largest_finite);
    return fabs(twice) <= largest
               ? assay_minifloat_encode(codec, twice, ASSAY_OVERFLOW_SPECIAL)
               : bits;
}

/* --- quantising -------------------------------------------------------------------- */

static bool double_x(const struct assay_property_run *first,
                     const struct assay_property_run *second)
{
    const struct assay_tensor *const x = &first->tensors->item[ASSAY_MLA_CACHE_INPUT];
    for (int64_t i = 0; i < assay_tensor_elements(x); i++)
        assay_tensor_set_bits(&second->tensors->item[ASSAY_MLA_CACHE_INPUT], i,
                              doubled(x->format, assay_tensor_bits(x, i)));
    return true;
}

static bool is_ordinary(const struct assay_mla_token_layout *layout, uint32_t scale)
{
    const bool is_narrow = layout->scale == ASSAY_E4M3;
    const double value = value_of(layout->scale, scale);
    return value >= (is_narrow ? 0x1p-5 : 0x1p-12) && value <= (is_narrow ? 224 : MOST);
}

static bool expect_double(const struct assay_property_run *first,
                          const struct assay_property_run *second, int output,
                          int64_t element, uint32_t *bits)
{
    (void)second;
    const struct assay_mla_token_layout *const layout = layout_of(first);
    const struct byte_place place = place_of(first, element);
    struct assay_mla_token token;
    if (place.share == NOBODYS) return false;
    unpack(first, place.token, &token);
    *bits = assay_tensor_bits(&first->tensors->item[output], element);
    if (place.share == ROPE) {
        const uint32_t twice = doubled(ASSAY_BF16, token.rope[place.index / 2]);
        *bits = twice >> place.index % 2 * 8 & 0xFF;
        return true;
    }
    const int64_t size = (int64_t)assay_format_bytes(layout->scale);
    if (place.share == SCALES) {
        const uint32_t scale = token.scale[place.index / size];
        *bits = doubled(layout->scale, scale) >> place.index % size * 8 & 0xFF;
        return is_ordinary(layout, scale);
    }
    const int64_t tile = place.index * layout->codes_per_byte / layout->scale_dims;
    const bool is_nan = layout->code == ASSAY_E4M3 && (*bits & 0x7F) == 0x7F;
    return !is_nan && is_ordinary(layout, token.scale[tile]);
}

static bool has_two(const struct assay_property_run *run)
{
    const struct assay_mla_cache_problem *const problem = run->problem;
    return problem->tokens > 1;
}

static int64_t mirrored(const struct assay_property_run *run, int64_t token)
{
    const struct assay_mla_cache_problem *const problem = run->problem;
    return problem->tokens - 1 - token;
}

static bool reverse_x(const struct assay_property_run *first,
                      const struct assay_property_run *second)
{
    const struct assay_tensor *const x = &first->tensors->item[ASSAY_MLA_CACHE_INPUT];
    const int64_t columns = x->shape[1];
    for (int64_t i = 0; i < assay_tensor_elements(x); i++)
        assay_tensor_set_bits(&second->tensors->item[ASSAY_MLA_CACHE_INPUT],
                              mirrored(first, i / columns) * columns + i % columns,
                              assay_tensor_bits(x, i));
    return has_two(first);
}

static bool expect_reversed_cache(const struct assay_property_run *first,
                                  const struct assay_property_run *second, int output,
                                  int64_t element, uint32_t *bits)
{
    (void)second;
    const struct byte_place place = place_of(first, element);
    int64_t start[3];
    if (place.share == NOBODYS) return false;
    share_starts(first->problem, mirrored(first, place.token), start);
    *bits = assay_tensor_bits(&first->tensors->item[output],
                              start[place.share] + place.index);
    return true;
}

/* --- dequantising ------------------------------------------------------------------ */

/* Bytes of nobody as they were; each token changed on its way to its place. */
static void change_tokens(const struct assay_property_run *first,
                          const struct assay_property_run *second, bool is_doubled,
                          bool is_reversed)
{
    const struct assay_mla_cache_problem *const problem = first->problem;
    const struct assay_mla_token_layout *const layout = layout_of(first);
    const struct assay_tensor *const from = cache_of(first), *const to = cache_of(second);
    for (int64_t i = 0; i < assay_tensor_elements(from); i++)
        assay_tensor_set_bits(to, i, assay_tensor_bits(from, i));
    for (int64_t i = 0; i < problem->tokens; i++) {
        struct assay_mla_token token;
        unpack(first, i, &token);
        for (int j = 0; is_doubled && j < layout->scales; j++)
            token.scale[j] = doubled(layout->scale, token.scale[j]);
        pack(second, is_reversed ? mirrored(first, i) : i, &token);
    }
}

static bool double_scales(const struct assay_property_run *first,
                          const struct assay_property_run *second)
{
    change_tokens(first, second, true, false);
    return true;
}

static bool expect_double_keys(const struct assay_property_run *first,
                               const struct assay_property_run *second, int output,
                               int64_t element, uint32_t *bits)
{
    (void)second;
    const struct assay_mla_token_layout *const layout = layout_of(first);
    const struct assay_tensor *const key = &first->tensors->item[output];
    const int64_t dim = element % key->shape[1];
    const double value = value_of(key->format, assay_tensor_bits(key, element));
    *bits = assay_tensor_bits(key, element);
    if (dim >= layout->coded_dims) return true;
    struct assay_mla_token token;
    unpack(first, element / key->shape[1], &token);
    const uint32_t scale = token.scale[dim / layout->scale_dims];
    const double size = fabs(value_of(layout->scale, scale));
    *bits = doubled(key->format, *bits);
    return fabs(value) >= 1 / MOST && fabs(value) <= MOST && size >= 1 / MOST &&
           size <= (layout->scale == ASSAY_E4M3 ? 224 : MOST);
}

static bool reverse_tokens(const struct assay_property_run *first,
                           const struct assay_property_run *second)
{
    change_tokens(first, second, false, true);
    return has_two(first);
}

static bool expect_reversed_keys(const struct assay_property_run *first,
                                 const struct assay_property_run *second, int output,
                                 int64_t element, uint32_t *bits)
{
    (void)second;
    const struct assay_tensor *const key = &first->tensors->item[output];
    const int64_t columns = key->shape[1];
    *bits = assay_tensor_bits(key, mirrored(first, element / columns) * columns +
                                       element % columns);
    return true;
}

const struct assay_property assay_mla_cache_quantise_properties[] = {
    { "doubling", "x times two: twice the scales and the same codes",
      ASSAY_PROPERTY_MATHEMATICS, NULL, double_x, expect_double },
    { "tokens", "tokens reversed: those of the cache reversed, to the bit",
      ASSAY_PROPERTY_BATCH, NULL, reverse_x, expect_reversed_cache },
    { NULL, NULL, ASSAY_PROPERTY_MATHEMATICS, NULL, NULL, NULL },
};

const struct assay_property assay_mla_cache_dequantise_properties[] = {
    { "doubling", "scales times two: keys times two, to the bit",
      ASSAY_PROPERTY_MATHEMATICS, NULL, double_scales, expect_double_keys },
    { "tokens", "tokens of the cache reversed: keys reversed, to the bit",
      ASSAY_PROPERTY_BATCH, NULL, reverse_tokens, expect_reversed_keys },
    { NULL, NULL, ASSAY_PROPERTY_MATHEMATICS, NULL, NULL, NULL },
};
