/* SPDX-License-Identifier: MIT */
/* Cached tokens to bf16, and bf16 to cached tokens a tile at a time: every operation of
 * the quantiser is one f32 rounding. */
#include "ref/kernel/mla_cache.h"

#include "ref/format/minifloat.h"
#include "ref/kernel/mla_attention.h"
#include "ref/unit/scalar.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { MAX_CODES = 256, E4M3_NAN = 0x7F, UE8M0_NAN = 0xFF };

static const float smallest = 1e-4f; /* FlashMLA's and DeepGEMM's clamp */

static uint16_t to_bf16(double value)
{
    return (uint16_t)assay_minifloat_encode(assay_minifloat(ASSAY_BF16), value,
                                            ASSAY_OVERFLOW_SPECIAL);
}

static double scale_value(const struct assay_mla_token_layout *layout, int dequantisation,
                          uint32_t bits)
{
    const double scale = assay_minifloat_decode(assay_minifloat(layout->scale), bits);
    if (layout->scale != ASSAY_F32 || dequantisation == ASSAY_MLA_F32_PRODUCT)
        return scale;
    return assay_minifloat_decode(assay_minifloat(ASSAY_BF16), to_bf16(scale));
}

/* bf16 of each product. At most 4 and 24 significant bits: the product is exact as a
 * double; with a scale in bf16 it is exact as a float, a multiple of 2^-142. */
static void scale_codes(const float *value, const uint8_t *code, int count, float scale,
                        uint16_t *key)
{
    for (int i = 0; i < count; i++) {
        const uint32_t bits = assay_f32_bits(value[code[i]] * scale);
        const uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
        key[i] = (uint16_t)((bits & 0x7FFFFFFF) > 0x7F800000 ? 0x7FFF : rounded);
    }
}

void assay_mla_dequantise(const struct assay_mla_token_layout *layout, int dequantisation,
                          const struct assay_mla_token *token, uint16_t *key)
{
    const struct assay_minifloat *const format = assay_minifloat(layout->code);
    const int codes = layout->code == ASSAY_E2M1 ? 16 : MAX_CODES;
    float value[MAX_CODES];
    for (int code = 0; code < codes; code++)
        value[code] = (float)assay_minifloat_decode(format, (uint32_t)code);
    for (int i = 0; i < layout->scales; i++)
        scale_codes(value, token->code + i * layout->scale_dims, layout->scale_dims,
                    (float)scale_value(layout, dequantisation, token->scale[i]),
                    key + i * layout->scale_dims);
    if (layout->rope_dims)
        memcpy(key + layout->coded_dims, token->rope,
               (size_t)layout->rope_dims * sizeof(token->rope[0]));
}

static uint8_t *page_at(const struct assay_tensors *tensors, int64_t page)
{
    const struct assay_tensor *const k_cache = assay_tensors_find(tensors, "k_cache");
    return (uint8_t *)k_cache->data + page * k_cache->stride[0];
}

void assay_mla_cache_dequantise_model(const struct assay_mla_cache_problem *problem,
                                      int dequantisation,
                                      const struct assay_tensors *tensors, int64_t part)
{
    const struct assay_mla_token_layout *const layout =
        &assay_mla_token_layouts[problem->kv];
    const struct assay_tensor *const key = assay_tensors_find(tensors, "key");
    for (int64_t i = 0; i < assay_mla_cache_tokens(problem, part); i++) {
        const int64_t token = part * problem->page_size + i;
        struct assay_mla_token cached;
        assay_mla_token_unpack(layout, problem->page_size, i, page_at(tensors, part),
                               &cached);
        assay_mla_dequantise(layout, dequantisation, &cached,
                             (uint16_t *)key->data + token * key->stride[0]);
    }
}

static float value_at(const struct assay_mla_cache_tile *tile, int i)
{
    return assay_f32_from_bits((uint32_t)tile->x[i] << 16);
}

void assay_mla_cache_amax(struct assay_mla_cache_tile *tile)
{
    bool has_nan = false;
    tile->amax = 0.0f;
    for (int i = 0; i < tile->layout->scale_dims; i++) {
        has_nan |= isnan(value_at(tile, i));
        tile->amax = assay_f32_maximum(tile->amax, fabsf(value_at(tile, i)));
    }
    if (has_nan && tile->numerics->nan == ASSAY_MLA_AMAX_PROPAGATES_NAN)
        tile->amax = assay_f32_canonical(NAN);
}

static float over(const struct assay_mla_cache_tile *tile, float largest_code)
{
    return tile->numerics->reciprocal
               ? assay_f32_multiply(tile->amax, 1.0f / largest_code)
               : assay_f32_canonical(tile->amax / largest_code);
}

static void find_fp4_scale(struct assay_mla_cache_tile *tile)
{
    const struct assay_minifloat *const e4m3 = assay_minifloat(ASSAY_E4M3);
    const float clamped = fminf(fmaxf(over(tile, 6.0f), 0x1p-9f), 448.0f);
    tile->scale =
        isfinite(tile->amax)
            ? assay_minifloat_encode_f32(e4m3, clamped, ASSAY_OVERFLOW_SATURATES)
            : E4M3_NAN;
    tile->divisor = (float)assay_minifloat_decode(e4m3, tile->scale);
}

static float ceiling_power_of_two(float scale)
{
    if (!isfinite(scale)) return scale;
    return (float)assay_minifloat_decode(assay_minifloat(ASSAY_UE8M0),
                                         assay_ue8m0_encode(scale));
}

static float raised(float value)
{
    return isnan(value) ? value : fmaxf(value, smallest);
}

void assay_mla_cache_scale(struct assay_mla_cache_tile *tile)
{
    if (tile->layout->scale == ASSAY_E4M3) {
        find_fp4_scale(tile);
        return;
    }
    const bool is_amax_raised = tile->numerics->floor == ASSAY_MLA_FLOOR_AMAX;
    if (is_amax_raised) tile->amax = raised(tile->amax);
    const float raw = is_amax_raised ? over(tile, 448.0f) : raised(over(tile, 448.0f));
    tile->divisor = tile->has_power_of_two_scale ? ceiling_power_of_two(raw) : raw;
    if (tile->layout->scale == ASSAY_F32)
        tile->scale = assay_f32_bits(assay_f32_canonical(tile->divisor));
    else
        tile->scale =
            isfinite(tile->divisor) ? assay_ue8m0_encode(tile->divisor) : UE8M0_NAN;
}

void assay_mla_cache_payload(struct assay_mla_cache_tile *tile)
{
    const struct assay_minifloat *const format = assay_minifloat(tile->layout->code);
    const float inverse = 1.0f / tile->divisor;
    for (int i = 0; i < tile->layout->scale_dims; i++) {
        const float quotient = tile->numerics->payload == ASSAY_MLA_PAYLOAD_TIMES_INVERSE
                                   ? value_at(tile, i) * inverse
                                   : value_at(tile, i) / tile->divisor;
        /* e2m1 has no NaN. */
        const bool is_zero = isnan(quotient) && tile->layout->code == ASSAY_E2M1;
        tile->code[i] = (uint8_t)assay_minifloat_encode_f32(
            format, is_zero ? 0.0f : quotient, ASSAY_OVERFLOW_SATURATES);
    }
}

static void quantise_token(const struct assay_mla_cache_problem *problem,
                           const struct assay_mla_cache_numerics *numerics,
                           const uint16_t *x, struct assay_mla_token *token)
{
    const struct assay_mla_token_layout *const layout =
        &assay_mla_token_layouts[problem->kv];
    struct assay_mla_cache_tile tile = {
        .layout = layout,
        .numerics = numerics,
        .has_power_of_two_scale =
            layout->scale != ASSAY_F32 || problem->has_power_of_two_scale,
    };
    for (int i = 0; i < layout->scales; i++) {
        tile.x = x + i * layout->scale_dims;
        tile.code = token->code + i * layout->scale_dims;
        numerics->stage.amax(&tile);
        numerics->stage.scale(&tile);
        numerics->stage.payload(&tile);
        token->scale[i] = tile.scale;
    }
    memcpy(token->rope, x + layout->coded_dims,
           (size_t)layout->rope_dims * sizeof(token->rope[0]));
}

void assay_mla_cache_quantise_model(const struct assay_mla_cache_problem *problem,
                                    const struct assay_mla_cache_numerics *numerics,
                                    const struct assay_tensors *tensors, int64_t part)
{
    const struct assay_tensor *const x = assay_tensors_find(tensors, "x");
    for (int64_t i = 0; i < assay_mla_cache_tokens(problem, part); i++) {
        const int64_t token = part * problem->page_size + i;
        struct assay_mla_token cached;
        quantise_token(problem, numerics,
                       (const uint16_t *)x->data + token * x->stride[0], &cached);
        assay_mla_token_pack(&assay_mla_token_layouts[problem->kv], problem->page_size, i,
                             &cached, page_at(tensors, part));
    }
}
