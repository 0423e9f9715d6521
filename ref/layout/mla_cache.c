/* SPDX-License-Identifier: MIT */
/* Cached tokens, packed and unpacked. Source of the layouts: FlashMLA 9241ae3 (v32,
 * model1); its later kv_cache_format.h and flash_mla_interface.py (v41). */
#include "ref/layout/mla_cache.h"

#include <assert.h>
#include <string.h>

const struct assay_mla_token_layout assay_mla_token_layouts[] = {
    [ASSAY_MLA_V32] = { "v32", ASSAY_MLA_V32, 576, 512, 64, ASSAY_E4M3, ASSAY_F32, 1, 4,
                        128, 656, 656, 0 },
    [ASSAY_MLA_MODEL1] = { "model1", ASSAY_MLA_MODEL1, 512, 448, 64, ASSAY_E4M3,
                           ASSAY_UE8M0, 1, 7, 64, 584, 576, 8 },
    [ASSAY_MLA_V41_FP8] = { "v41_fp8", ASSAY_MLA_V41_FP8, 512, 512, 0, ASSAY_E4M3,
                            ASSAY_UE8M0, 1, 16, 32, 528, 528, 0 },
    [ASSAY_MLA_V41_FP4] = { "v41_fp4", ASSAY_MLA_V41_FP4, 512, 512, 0, ASSAY_E2M1,
                            ASSAY_E4M3, 2, 32, 16, 288, 288, 0 },
    { .name = NULL },
};

static int64_t code_bytes(const struct assay_mla_token_layout *layout)
{
    return layout->coded_dims / layout->codes_per_byte;
}

struct assay_mla_token_place assay_mla_place(const struct assay_mla_token_layout *layout,
                                             int64_t page_size, int64_t place_in_page)
{
    const int64_t record = place_in_page * layout->record_bytes;
    const int64_t behind_codes = record + code_bytes(layout);
    const int64_t scale_bytes =
        layout->scales * (int64_t)assay_format_bytes(layout->scale);
    assert(place_in_page >= 0 && place_in_page < page_size);

    struct assay_mla_token_place place = { record, behind_codes, -1 };
    if (layout->scale_record_bytes)
        place.scales =
            page_size * layout->record_bytes + place_in_page * layout->scale_record_bytes;
    if (layout->rope_dims)
        place.rope =
            layout->scale_record_bytes ? behind_codes : behind_codes + scale_bytes;
    return place;
}

static void pack_codes(const struct assay_mla_token_layout *layout, const uint8_t *code,
                       uint8_t *to)
{
    if (layout->codes_per_byte == 1) {
        memcpy(to, code, (size_t)layout->coded_dims);
        return;
    }
    for (int i = 0; i < layout->coded_dims; i += 2)
        to[i / 2] = (uint8_t)((code[i] & 0xF) | (code[i + 1] & 0xF) << 4);
}

static void unpack_codes(const struct assay_mla_token_layout *layout, const uint8_t *from,
                         uint8_t *code)
{
    if (layout->codes_per_byte == 1) {
        memcpy(code, from, (size_t)layout->coded_dims);
        return;
    }
    for (int i = 0; i < layout->coded_dims; i++)
        code[i] = (uint8_t)(i % 2 ? from[i / 2] >> 4 : from[i / 2] & 0xF);
}

void assay_mla_token_pack(const struct assay_mla_token_layout *layout, int64_t page_size,
                          int64_t place_in_page, const struct assay_mla_token *token,
                          uint8_t *page)
{
    const struct assay_mla_token_place place =
        assay_mla_place(layout, page_size, place_in_page);
    const size_t scale_bytes = assay_format_bytes(layout->scale);
    pack_codes(layout, token->code, page + place.codes);
    for (int i = 0; i < layout->scales; i++) /* low bytes first */
        memcpy(page + place.scales + (size_t)i * scale_bytes, &token->scale[i],
               scale_bytes);
    if (layout->rope_dims)
        memcpy(page + place.rope, token->rope,
               (size_t)layout->rope_dims * sizeof(token->rope[0]));
}

void assay_mla_token_unpack(const struct assay_mla_token_layout *layout,
                            int64_t page_size, int64_t place_in_page, const uint8_t *page,
                            struct assay_mla_token *token)
{
    const struct assay_mla_token_place place =
        assay_mla_place(layout, page_size, place_in_page);
    const size_t scale_bytes = assay_format_bytes(layout->scale);
    unpack_codes(layout, page + place.codes, token->code);
    for (int i = 0; i < layout->scales; i++) {
        token->scale[i] = 0;
        memcpy(&token->scale[i], page + place.scales + (size_t)i * scale_bytes,
               scale_bytes);
    }
    if (layout->rope_dims)
        memcpy(token->rope, page + place.rope,
               (size_t)layout->rope_dims * sizeof(token->rope[0]));
}
