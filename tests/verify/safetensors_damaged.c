/* SPDX-License-Identifier: MIT */
/* Safetensors files cut, changed at every byte, or badly compressed. */
#include "tests/harness.h"
#include "tests/verify/scratch.h"
#include "tests/verify/small_file.h"
#include "verify/data/safetensors.h"

#include <zstd.h>

START_TEST(every_truncation_is_refused)
{
    struct scratch scratch;
    scratch_open(&scratch);
    struct assay_message message;
    for (int compressed = 0; compressed < 2; compressed++) {
        const char *const name = compressed ? "x.safetensors.zst" : "x.safetensors";
        write_small(scratch_name(&scratch, name));
        size_t bytes;
        unsigned char *const content = scratch_get(scratch.path, &bytes);
        ck_assert(read_status(scratch.path, &message) == ASSAY_RAN);
        for (size_t i = 0; i < bytes; i++) {
            scratch_put(&scratch, name, content, i);
            const enum assay_status status = read_status(scratch.path, &message);
            check_message(status, ASSAY_REFUSED, &message, name);
        }
        free(content);
    }
    scratch_close(&scratch);
}
END_TEST

/* What a parsed file must keep, whatever its bytes were. */
static void check_sound(const struct assay_safetensors *file, size_t bytes)
{
    const uintptr_t start = (uintptr_t)file->memory, end = start + bytes;
    uintptr_t position = file->count ? (uintptr_t)file->entry[0].data : end;
    ck_assert(position >= start + 8 && position <= end);
    for (int i = 0; i < file->count; i++) {
        const struct assay_safetensors_entry *const entry = &file->entry[i];
        int64_t product = (int64_t)assay_format_bytes(entry->format);
        for (int axis = 0; axis < entry->rank; axis++)
            product *= entry->shape[axis];
        ck_assert(product > 0 || entry->bytes == 0);
        ck_assert_int_eq(product, entry->bytes);
        ck_assert(position == (uintptr_t)entry->data);
        position += (uintptr_t)entry->bytes;
    }
    ck_assert(position == end);
}

START_TEST(no_changed_byte_of_the_header_gives_an_unsound_file)
{
    struct scratch scratch;
    scratch_open(&scratch);
    write_small(scratch_name(&scratch, "x.safetensors"));
    size_t bytes;
    int accepted = 0, refused = 0;
    unsigned char *const content = scratch_get(scratch.path, &bytes);
    scratch_close(&scratch);
    for (size_t i = 0; i < bytes - 14; i++)
        for (int change = 1; change < 256; change++) {
            content[i] ^= (unsigned char)change;
            struct assay_safetensors file;
            struct assay_message message = { "" };
            const enum assay_status status =
                assay_safetensors_parse(content, bytes, "x", &file, &message);
            if (status == ASSAY_RAN)
                check_sound(&file, bytes);
            else
                check_message(status, ASSAY_REFUSED, &message, "x: ");
            accepted += status == ASSAY_RAN;
            refused += status == ASSAY_REFUSED;
            assay_safetensors_close(&file);
            content[i] ^= (unsigned char)change;
        }
    /* Other letters in names and metadata are legal; most changes are not. */
    ck_assert_int_gt(accepted, 0);
    ck_assert_int_gt(refused, accepted);
    free(content);
}
END_TEST

START_TEST(no_changed_byte_of_a_compressed_file_goes_unnoticed)
{
    struct scratch scratch;
    scratch_open(&scratch);
    write_small(scratch_name(&scratch, "x.safetensors.zst"));
    size_t bytes;
    unsigned char *const content = scratch_get(scratch.path, &bytes);
    for (size_t i = 0; i < bytes; i++)
        for (int bit = 0; bit < 8; bit++) {
            content[i] ^= (unsigned char)(1 << bit);
            scratch_put(&scratch, "x.safetensors.zst", content, bytes);
            content[i] ^= (unsigned char)(1 << bit);
            struct assay_safetensors file;
            struct assay_message message = { "" };
            const enum assay_status status =
                assay_safetensors_read(scratch.path, &file, &message);
            if (status == ASSAY_RAN)
                check_small(&file); /* a bit that does not matter to zstd */
            else
                check_message(status, ASSAY_REFUSED, &message, "x.safetensors.zst: ");
            assay_safetensors_close(&file);
        }
    free(content);
    scratch_close(&scratch);
}
END_TEST

/* A frame of @blocks runs of 128 KiB zeros, four bytes each, that says nothing about its
 * size. RFC 8878 section 3.1.1. */
static size_t build_bomb(unsigned char *bomb, int blocks)
{
    static const unsigned char frame[] = { 0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38 };
    memcpy(bomb, frame, sizeof frame);
    size_t bytes = sizeof frame;
    for (int i = 0; i < blocks; i++) {
        const unsigned block = 1u << 20 | 1u << 1 | (i == blocks - 1);
        bomb[bytes++] = (unsigned char)block;
        bomb[bytes++] = (unsigned char)(block >> 8);
        bomb[bytes++] = (unsigned char)(block >> 16);
        bomb[bytes++] = 0;
    }
    return bytes;
}

START_TEST(zstd_that_is_garbage_or_too_big_is_refused)
{
    static const unsigned char claims_2_gib[] = { 0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0,
                                                  0,    0x80, 0,    0,    0,    0 };
    static unsigned char bomb[40000];
    const char *const name = "b.safetensors.zst";
    struct scratch scratch;
    struct assay_message message;
    scratch_open(&scratch);

    enum assay_status status =
        read_status(scratch_put(&scratch, name, "not zstd at all", 15), &message);
    check_message(status, ASSAY_REFUSED, &message, "zstd");
    scratch_put(&scratch, name, claims_2_gib, sizeof claims_2_gib);
    status = read_status(scratch.path, &message);
    check_message(status, ASSAY_REFUSED, &message, "above the limit of 1073741824");
    scratch_put(&scratch, name, bomb, build_bomb(bomb, 8193));
    status = read_status(scratch.path, &message);
    check_message(status, ASSAY_REFUSED, &message, "above the limit of 1073741824");
    scratch_put(&scratch, name, bomb, build_bomb(bomb, 8));
    status = read_status(scratch.path, &message);
    check_message(status, ASSAY_REFUSED, &message, "'{'");
    scratch_close(&scratch);
}
END_TEST

START_TEST(content_split_into_two_zstd_frames_is_read)
{
    struct scratch scratch;
    scratch_open(&scratch);
    write_small(scratch_name(&scratch, "x.safetensors"));
    size_t bytes;
    unsigned char *const content = scratch_get(scratch.path, &bytes);
    unsigned char frames[4096];
    size_t used = ZSTD_compress(frames, sizeof frames, content, 100, 1);
    used +=
        ZSTD_compress(frames + used, sizeof frames - used, content + 100, bytes - 100, 1);
    scratch_put(&scratch, "x.safetensors.zst", frames, used);
    struct assay_safetensors file;
    struct assay_message message = { "" };
    ck_assert_msg(assay_safetensors_read(scratch.path, &file, &message) == ASSAY_RAN,
                  "%s", message.text);
    check_small(&file);
    assay_safetensors_close(&file);
    free(content);
    scratch_close(&scratch);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_truncation_is_refused,
        no_changed_byte_of_the_header_gives_an_unsound_file,
        no_changed_byte_of_a_compressed_file_goes_unnoticed,
        zstd_that_is_garbage_or_too_big_is_refused,
        content_split_into_two_zstd_frames_is_read,
        NULL,
    };
    return run_tests("safetensors_damaged", tests);
}
