/* SPDX-License-Identifier: MIT */
/* Where the parts of a cached token lie. Exact: addresses. Source: FlashMLA 9241ae3
 * (v32, model1), and its later interface (v41, which has no sm_90 kernel). */
#ifndef ASSAY_REF_LAYOUT_MLA_CACHE_H
#define ASSAY_REF_LAYOUT_MLA_CACHE_H

#include "ref/mla_problem.h"

/* A token is @coded_dims quantised elements, @scales scales of @scale_dims elements each,
 * and the rest of d_qk in bf16. */
struct assay_mla_token_layout {
    const char *name; /* "v32" */
    enum assay_mla_kv kv;
    int d_qk, coded_dims, rope_dims;
    enum assay_format code, scale; /* e4m3 or e2m1; f32, ue8m0 or e4m3 */
    int codes_per_byte;            /* 2: the even element in the low four bits */
    int scales, scale_dims;
    int token_bytes;        /* that a token takes, scales included */
    int record_bytes;       /* from token to token */
    int scale_record_bytes; /* 0: scales lie in the token's record, behind the codes;
                             * otherwise behind all records of the page, this far apart */
};

/* Rows by enum assay_mla_kv, closed by a NULL name. */
extern const struct assay_mla_token_layout assay_mla_token_layouts[];

/* Byte offsets from the page's first byte. */
struct assay_mla_token_place {
    int64_t codes, scales, rope; /* rope: -1 without rope_dims */
};
struct assay_mla_token_place assay_mla_place(const struct assay_mla_token_layout *layout,
                                             int64_t page_size, int64_t place_in_page);

/* A token in logical form: a code an element (e2m1 in the low four bits), a scale's bits
 * each, bf16 codes. */
struct assay_mla_token {
    uint8_t code[ASSAY_MLA_D_V];
    uint32_t scale[32];
    uint16_t rope[64];
};

/* Token at @place_in_page of @page (its bytes), packed and unpacked; pad bytes are left
 * as they are. */
void assay_mla_token_pack(const struct assay_mla_token_layout *layout, int64_t page_size,
                          int64_t place_in_page, const struct assay_mla_token *token,
                          uint8_t *page);
void assay_mla_token_unpack(const struct assay_mla_token_layout *layout,
                            int64_t page_size, int64_t place_in_page, const uint8_t *page,
                            struct assay_mla_token *token);

#endif
