/* SPDX-License-Identifier: MIT */
/* Keys in an array as a tile's source, random bf16 codes, and what a tile leaves: for
 * tests of attention that gather a row's keys by themselves. */
#ifndef ASSAY_TESTS_KERNEL_KEY_LIST_H
#define ASSAY_TESTS_KERNEL_KEY_LIST_H

#include "ref/kernel/mla_attention.h"
#include "tests/harness.h"

#include <math.h>
#include <string.h>

enum { MAX_KEYS = 640, KEY_ROWS = ASSAY_MLA_ROWS, D_V = ASSAY_MLA_D_V };

struct key_list {
    int count;
    uint16_t key[MAX_KEYS][ASSAY_MLA_MAX_D_QK];
    bool attended[KEY_ROWS][MAX_KEYS];
};

static inline void load_from_list(const void *source, int64_t block,
                                  struct assay_mla_block *into)
{
    const struct key_list *const list = source;
    memset(into, 0, sizeof(*into));
    for (int i = 0; i < ASSAY_MLA_BLOCK; i++) {
        const int64_t key = block * ASSAY_MLA_BLOCK + i;
        if (key >= list->count) continue;
        memcpy(into->key[i], list->key[key], sizeof(into->key[i]));
        for (int row = 0; row < KEY_ROWS; row++)
            into->attended[row] |= (uint64_t)list->attended[row][key] << i;
    }
}

static inline int blocks_of_list(const struct key_list *list)
{
    return (list->count + ASSAY_MLA_BLOCK - 1) / ASSAY_MLA_BLOCK;
}

/* --- random ----------------------------------------------------------------------- */

static uint64_t random_state = 1;

static inline uint32_t draw(void)
{
    random_state =
        random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 32);
}

/* In [-limit, limit). */
static inline float draw_uniform(float limit)
{
    return limit * ((float)(draw() >> 8) * 0x1p-23f - 1.0f);
}

static inline uint16_t bf16_code(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return (uint16_t)(bits >> 16);
}

static inline float bf16_value(uint16_t code)
{
    const uint32_t bits = (uint32_t)code << 16;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline void draw_codes(uint16_t *code, int64_t count, float limit)
{
    for (int64_t i = 0; i < count; i++)
        code[i] = bf16_code(draw_uniform(limit));
}

/* --- results ---------------------------------------------------------------------- */

struct results {
    uint16_t out[KEY_ROWS][D_V];
    float lse[KEY_ROWS], max_logits[KEY_ROWS];
    float oaccum[KEY_ROWS][D_V], lseaccum[KEY_ROWS]; /* as one of several splits */
};

/* Blocks [begin, end) of the query's keys. */
static inline void attend(const struct assay_mla_query *query, int64_t begin, int64_t end,
                          struct results *results)
{
    struct assay_mla_tile *const tile = assay_mla_tile_open(query);
    uint16_t *out[KEY_ROWS];
    float *lse[KEY_ROWS], *max_logits[KEY_ROWS];
    for (int row = 0; row < KEY_ROWS; row++) {
        out[row] = results->out[row];
        lse[row] = &results->lse[row];
        max_logits[row] = &results->max_logits[row];
    }
    memset(results, 0, sizeof(*results));
    ck_assert_ptr_nonnull(tile);
    ck_assert(assay_mla_tile_attend(tile, begin, end));
    assay_mla_tile_finish(tile, out, lse, max_logits);
    ck_assert(assay_mla_tile_attend(tile, begin, end));
    assay_mla_tile_finish_split(tile, results->oaccum, results->lseaccum);
    assay_mla_tile_close(tile);
}

static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline bool same_bits(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

#endif
