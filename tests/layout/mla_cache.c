/* SPDX-License-Identifier: MIT */
/* Token layouts: addresses against a writer with its own constants, and every byte of a
 * page accounted for. */
#include "ref/layout/mla_cache.h"

#include "tests/harness.h"

#include <string.h>

enum { MOST_SLOTS = 9, MOST_BYTES = 656 * MOST_SLOTS, GUARD = 0xA5 };

static uint32_t state;

static uint32_t draw(void)
{
    state = state * 1664525 + 1013904223;
    return state >> 8;
}

static struct assay_mla_token random_token(const struct assay_mla_token_layout *layout)
{
    struct assay_mla_token token;
    memset(&token, 0, sizeof(token));
    for (int i = 0; i < layout->coded_dims; i++)
        token.code[i] = (uint8_t)(layout->code == ASSAY_E2M1 ? draw() & 15 : draw());
    for (int i = 0; i < layout->scales; i++)
        token.scale[i] =
            layout->scale == ASSAY_F32 ? draw() << 8 | (draw() & 0xFF) : draw() & 0xFF;
    for (int i = 0; i < layout->rope_dims; i++)
        token.rope[i] = (uint16_t)draw();
    return token;
}

/* --- the second writer ------------------------------------------------------------ */

static void write_v32(const struct assay_mla_token *token, int slot, uint8_t *page)
{
    uint8_t *const at = page + 656 * slot;
    for (int i = 0; i < 512; i++)
        at[i] = token->code[i];
    for (int i = 0; i < 16; i++)
        at[512 + i] = (uint8_t)(token->scale[i / 4] >> 8 * (i % 4));
    for (int i = 0; i < 128; i++)
        at[528 + i] = (uint8_t)(token->rope[i / 2] >> 8 * (i % 2));
}

static void write_model1(const struct assay_mla_token *token, int slots, int slot,
                         uint8_t *page)
{
    for (int i = 0; i < 448; i++)
        page[576 * slot + i] = token->code[i];
    for (int i = 0; i < 128; i++)
        page[576 * slot + 448 + i] = (uint8_t)(token->rope[i / 2] >> 8 * (i % 2));
    for (int i = 0; i < 7; i++)
        page[576 * slots + 8 * slot + i] = (uint8_t)token->scale[i];
}

static void write_v41(const struct assay_mla_token *token, bool is_fp4, int slot,
                      uint8_t *page)
{
    uint8_t *const at = page + (is_fp4 ? 288 : 528) * slot;
    for (int i = 0; i < 512; i++) {
        if (!is_fp4) at[i] = token->code[i];
        if (is_fp4 && i % 2 == 0) at[i / 2] = token->code[i];
        if (is_fp4 && i % 2 == 1) at[i / 2] |= (uint8_t)(token->code[i] << 4);
    }
    for (int i = 0; i < (is_fp4 ? 32 : 16); i++)
        at[(is_fp4 ? 256 : 512) + i] = (uint8_t)token->scale[i];
}

static void write_token(enum assay_mla_kv kv, const struct assay_mla_token *token,
                        int slots, int slot, uint8_t *page)
{
    if (kv == ASSAY_MLA_V32) write_v32(token, slot, page);
    if (kv == ASSAY_MLA_MODEL1) write_model1(token, slots, slot, page);
    if (kv == ASSAY_MLA_V41_FP8) write_v41(token, false, slot, page);
    if (kv == ASSAY_MLA_V41_FP4) write_v41(token, true, slot, page);
}

START_TEST(packed_tokens_are_what_a_second_writer_writes)
{
    for (const struct assay_mla_token_layout *layout = assay_mla_token_layouts;
         layout->name; layout++)
        for (int slots = 1; slots <= MOST_SLOTS; slots += 4)
            for (int slot = 0; slot < slots; slot++) {
                static uint8_t page[MOST_BYTES], right[MOST_BYTES];
                const struct assay_mla_token token = random_token(layout);
                struct assay_mla_token again;
                memset(page, GUARD, sizeof(page));
                memset(right, GUARD, sizeof(right));
                memset(&again, 0, sizeof(again));
                assay_mla_token_pack(layout, slots, slot, &token, page);
                write_token(layout->kv, &token, slots, slot, right);
                ck_assert_msg(memcmp(page, right, sizeof(page)) == 0, "%s, slot %d of %d",
                              layout->name, slot, slots);
                assay_mla_token_unpack(layout, slots, slot, right, &again);
                ck_assert_mem_eq(&again, &token, sizeof(token));
            }
}
END_TEST

/* Bytes of the page that packing every slot changes. */
START_TEST(slots_share_no_byte_and_leave_only_the_pad_of_model1)
{
    for (const struct assay_mla_token_layout *layout = assay_mla_token_layouts;
         layout->name; layout++) {
        uint8_t writers[MOST_BYTES] = { 0 };
        for (int slot = 0; slot < 5; slot++) {
            uint8_t page[2][MOST_BYTES];
            const struct assay_mla_token token = random_token(layout);
            memset(page[0], 0x00, MOST_BYTES);
            memset(page[1], 0xFF, MOST_BYTES);
            for (int i = 0; i < 2; i++)
                assay_mla_token_pack(layout, 5, slot, &token, page[i]);
            for (int i = 0; i < MOST_BYTES; i++)
                writers[i] = (uint8_t)(writers[i] + (page[0][i] == page[1][i]));
        }
        for (int i = 0; i < MOST_BYTES; i++) {
            const bool is_pad =
                layout->kv == ASSAY_MLA_MODEL1 && i >= 5 * 576 && (i - 5 * 576) % 8 == 7;
            const int right = i < 5 * layout->token_bytes && !is_pad;
            ck_assert_msg(writers[i] == right, "%s: byte %d", layout->name, i);
        }
    }
}
END_TEST

START_TEST(rows_of_the_table_add_up)
{
    static const int bytes[] = { 656, 584, 528, 288 };
    for (int i = 0; i < 4; i++) {
        const struct assay_mla_token_layout *const layout = &assay_mla_token_layouts[i];
        ck_assert_int_eq((int)layout->kv, i);
        ck_assert_int_eq(layout->token_bytes, bytes[i]);
        ck_assert_int_eq(layout->record_bytes + layout->scale_record_bytes, bytes[i]);
        ck_assert_int_eq(layout->scales * layout->scale_dims, layout->coded_dims);
        ck_assert_int_eq(layout->coded_dims + layout->rope_dims, layout->d_qk);
        ck_assert_int_eq(layout->d_qk, assay_mla_d_qk(layout->kv));
    }
    ck_assert_ptr_null(assay_mla_token_layouts[4].name);
}
END_TEST

START_TEST(places_without_rope_say_so)
{
    const struct assay_mla_token_place v32 =
        assay_mla_place(&assay_mla_token_layouts[ASSAY_MLA_V32], 64, 63);
    const struct assay_mla_token_place model1 =
        assay_mla_place(&assay_mla_token_layouts[ASSAY_MLA_MODEL1], 64, 63);
    const struct assay_mla_token_place fp4 =
        assay_mla_place(&assay_mla_token_layouts[ASSAY_MLA_V41_FP4], 64, 63);
    ck_assert_int_eq(v32.rope, 656 * 63 + 528);
    ck_assert_int_eq(model1.rope, 576 * 63 + 448);
    ck_assert_int_eq(model1.scales, 576 * 64 + 8 * 63);
    ck_assert_int_eq(fp4.rope, -1);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        packed_tokens_are_what_a_second_writer_writes,
        slots_share_no_byte_and_leave_only_the_pad_of_model1,
        rows_of_the_table_add_up,
        places_without_rope_say_so,
        NULL,
    };
    return run_tests("mla_cache", tests);
}
