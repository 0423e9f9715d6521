/* SPDX-License-Identifier: MIT */
/* A small safetensors file with known content, and checks of what came of it. */
#ifndef ASSAY_TESTS_VERIFY_SMALL_FILE_H
#define ASSAY_TESTS_VERIFY_SMALL_FILE_H

#include "verify/data/safetensors.h"

#include <check.h>
#include <string.h>

static const unsigned char pattern[] = { 0x00, 0x01, 0x7f, 0x80, 0xff, 0xfe, 0x55, 0xaa,
                                         0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0,
                                         0x0f, 0x1e, 0x2d, 0x3c, 0x4b, 0x5a, 0x69, 0x70 };

static inline struct assay_safetensors_entry
entry_of(char *name, enum assay_format format, int rank, const int64_t *shape)
{
    struct assay_safetensors_entry entry = { name, format, rank, { 0 }, pattern, 0 };
    entry.bytes = (int64_t)assay_format_bytes(format);
    for (int i = 0; i < rank; i++) {
        entry.shape[i] = shape[i];
        entry.bytes *= shape[i];
    }
    return entry;
}

/* A small file of two tensors and one line of metadata. */
static inline void write_small(const char *path)
{
    char f32[] = "f32", bf16[] = "1/bf16", key[] = "cases", value[] = "line\nline";
    const struct assay_safetensors_entry entry[] = {
        entry_of(bf16, ASSAY_BF16, 2, (const int64_t[]){ 1, 3 }),
        entry_of(f32, ASSAY_F32, 1, (const int64_t[]){ 2 }),
    };
    const struct assay_safetensors_metadata metadata = { key, value };
    struct assay_message message = { "" };
    ck_assert_msg(assay_safetensors_write(path, entry, 2, &metadata, 1, &message) ==
                      ASSAY_RAN,
                  "%s", message.text);
}

static inline void check_small(const struct assay_safetensors *file)
{
    ck_assert_int_eq(file->count, 2);
    const struct assay_safetensors_entry *const f32 = assay_safetensors_find(file, "f32");
    const struct assay_safetensors_entry *const bf16 =
        assay_safetensors_find(file, "1/bf16");
    ck_assert(f32 && bf16 && !assay_safetensors_find(file, "bf16"));
    ck_assert(f32->format == ASSAY_F32 && f32->rank == 1 && f32->shape[0] == 2);
    ck_assert(bf16->format == ASSAY_BF16 && bf16->rank == 2 && bf16->shape[1] == 3);
    ck_assert_mem_eq(f32->data, pattern, 8);
    ck_assert_mem_eq(bf16->data, pattern, 6);
    ck_assert_str_eq(assay_safetensors_metadata(file, "cases"), "line\nline");
    ck_assert_ptr_null(assay_safetensors_metadata(file, "case"));
}

static inline enum assay_status read_status(const char *path,
                                            struct assay_message *message)
{
    struct assay_safetensors file;
    message->text[0] = '\0';
    const enum assay_status status = assay_safetensors_read(path, &file, message);
    assay_safetensors_close(&file);
    return status;
}

static inline void check_message(enum assay_status status, enum assay_status expected,
                                 const struct assay_message *message, const char *word)
{
    ck_assert_msg(status == expected && strstr(message->text, word) != NULL,
                  "status %d, no '%s' in: %s", (int)status, word, message->text);
}

#endif
