/* SPDX-License-Identifier: MIT */
/* Safetensors files written and read again. */
#include "verify/data/safetensors.h"

#include "tests/harness.h"
#include "tests/verify/scratch.h"
#include "tests/verify/small_file.h"

#include <signal.h>
#include <sys/resource.h>

enum { NOBODY = 65534 };

START_TEST(written_bytes_are_those_of_the_published_layout)
{
    struct scratch scratch;
    scratch_open(&scratch);
    write_small(scratch_name(&scratch, "small.safetensors"));
    static const char header[] =
        "{\"__metadata__\":{\"cases\":\"line\\nline\"},"
        "\"f32\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
        "\"1/bf16\":{\"dtype\":\"BF16\",\"shape\":[1,3],\"data_offsets\":[8,14]}}    ";
    ck_assert_uint_eq(strlen(header) % 8, 0);
    size_t bytes;
    unsigned char *const content = scratch_get(scratch.path, &bytes);
    ck_assert_uint_eq(bytes, 8 + strlen(header) + 14);
    const unsigned char length[8] = { (unsigned char)strlen(header) };
    ck_assert_mem_eq(content, length, 8);
    ck_assert_mem_eq(content + 8, header, strlen(header));
    ck_assert_mem_eq(content + 8 + strlen(header), pattern, 8);
    ck_assert_mem_eq(content + 16 + strlen(header), pattern, 6);
    free(content);
    scratch_close(&scratch);
}
END_TEST

static void round_trip(const char *path)
{
    static const enum assay_format formats[] = { ASSAY_E4M3, ASSAY_E5M2, ASSAY_UE8M0,
                                                 ASSAY_BF16, ASSAY_F16,  ASSAY_F32,
                                                 ASSAY_U8,   ASSAY_I32 };
    static const int64_t shapes[][5] = { { 0 }, { 0 }, { 3, 0, 2 }, { 1, 2, 1, 3, 1 } };
    static const int ranks[] = { 0, 1, 3, 5 };
    enum { COUNT = 32 };
    struct assay_safetensors_entry entry[COUNT];
    static char names[COUNT][32];
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "%d/%s_\xc3\xa9", i,
                 assay_format_name(formats[i / 4]));
        entry[i] = entry_of(names[i], formats[i / 4], ranks[i % 4], shapes[i % 4]);
        entry[i].data = pattern + i / 4 % 3;
        if (entry[i].bytes > 20) entry[i].data = pattern;
    }
    struct assay_message message = { "" };
    struct assay_safetensors file;
    ck_assert(assay_safetensors_write(path, entry, COUNT, NULL, 0, &message) ==
              ASSAY_RAN);
    ck_assert_msg(assay_safetensors_read(path, &file, &message) == ASSAY_RAN, "%s",
                  message.text);
    ck_assert_int_eq(file.count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        const struct assay_safetensors_entry *const read =
            assay_safetensors_find(&file, names[i]);
        ck_assert_ptr_nonnull(read);
        ck_assert(read->format == entry[i].format && read->rank == entry[i].rank);
        ck_assert_mem_eq(read->shape, entry[i].shape, sizeof read->shape);
        ck_assert_int_eq(read->bytes, entry[i].bytes);
        if (read->bytes) ck_assert_mem_eq(read->data, entry[i].data, (size_t)read->bytes);
        ck_assert_uint_eq((uintptr_t)read->data % assay_format_bytes(read->format), 0);
        if (i > 0)
            ck_assert((uintptr_t)file.entry[i].data >= (uintptr_t)file.entry[i - 1].data);
    }
    assay_safetensors_close(&file);
}

START_TEST(every_dtype_comes_back_as_scalar_empty_and_of_rank_5)
{
    struct scratch scratch;
    scratch_open(&scratch);
    round_trip(scratch_name(&scratch, "all.safetensors"));
    round_trip(scratch_name(&scratch, "all.safetensors.zst"));
    scratch_close(&scratch);
}
END_TEST

START_TEST(tf32_and_e2m1_are_stored_as_the_dtype_that_holds_their_codes)
{
    ck_assert_str_eq(assay_safetensors_dtype(ASSAY_TF32), "F32");
    ck_assert_str_eq(assay_safetensors_dtype(ASSAY_E2M1), "U8");
    ck_assert_ptr_null(assay_safetensors_dtype(ASSAY_FORMAT_NONE));
    struct scratch scratch;
    scratch_open(&scratch);
    char tf32[] = "a", e2m1[] = "b";
    const struct assay_safetensors_entry entry[] = {
        entry_of(tf32, ASSAY_TF32, 0, NULL), entry_of(e2m1, ASSAY_E2M1, 0, NULL)
    };
    struct assay_safetensors file;
    struct assay_message message;
    const char *const path = scratch_name(&scratch, "x.safetensors");
    ck_assert(assay_safetensors_write(path, entry, 2, NULL, 0, &message) == ASSAY_RAN);
    ck_assert(assay_safetensors_read(path, &file, &message) == ASSAY_RAN);
    ck_assert(assay_safetensors_find(&file, "a")->format == ASSAY_F32);
    ck_assert(assay_safetensors_find(&file, "b")->format == ASSAY_U8);
    assay_safetensors_close(&file);
    scratch_close(&scratch);
}
END_TEST

START_TEST(order_of_entries_does_not_change_the_file)
{
    struct scratch scratch;
    scratch_open(&scratch);
    char a[] = "a", b[] = "b", c[] = "c";
    struct assay_safetensors_entry entry[] = { entry_of(a, ASSAY_U8, 0, NULL),
                                               entry_of(b, ASSAY_U8, 0, NULL),
                                               entry_of(c, ASSAY_F32, 0, NULL) };
    struct assay_message message;
    size_t bytes, other_bytes;
    const char *const path = scratch_name(&scratch, "x.safetensors.zst");
    ck_assert(assay_safetensors_write(path, entry, 3, NULL, 0, &message) == ASSAY_RAN);
    unsigned char *const content = scratch_get(path, &bytes);
    const struct assay_safetensors_entry swapped[] = { entry[1], entry[2], entry[0] };
    ck_assert(assay_safetensors_write(path, swapped, 3, NULL, 0, &message) == ASSAY_RAN);
    unsigned char *const other = scratch_get(path, &other_bytes);
    ck_assert_uint_eq(bytes, other_bytes);
    ck_assert_mem_eq(content, other, bytes);
    free(content);
    free(other);
    scratch_close(&scratch);
}
END_TEST

START_TEST(files_that_cannot_be_read_give_a_sentence)
{
    struct scratch scratch;
    struct assay_message message;
    scratch_open(&scratch);
    enum assay_status status = read_status(scratch.folder, &message);
    check_message(status, ASSAY_REFUSED, &message, "is a directory");
    status = read_status(scratch_name(&scratch, "missing.safetensors"), &message);
    check_message(status, ASSAY_REFUSED, &message, "missing.safetensors: ");
    ck_assert_int_eq(mkfifo(scratch_name(&scratch, "pipe.safetensors"), 0600), 0);
    status = read_status(scratch.path, &message);
    check_message(status, ASSAY_REFUSED, &message, "not a regular file");

    scratch_put(&scratch, "secret.safetensors", "", 0);
    ck_assert_int_eq(chmod(scratch.path, 0) | chmod(scratch.folder, 0755), 0);
    const uid_t user = geteuid();
    if (user == 0) ck_assert_int_eq(seteuid(NOBODY), 0);
    status = read_status(scratch.path, &message);
    check_message(status, ASSAY_REFUSED, &message, "Permission denied");
    if (user == 0) ck_assert_int_eq(seteuid(user), 0);
    scratch_close(&scratch);
}
END_TEST

static enum assay_status write_bytes(const char *path, int64_t bytes,
                                     struct assay_message *message)
{
    char name[] = "x";
    unsigned char *const data = malloc((size_t)bytes);
    for (int64_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)(i * i >> 3 ^ i >> 5);
    const struct assay_safetensors_entry entry = { name,      ASSAY_U8, 1,
                                                   { bytes }, data,     bytes };
    const enum assay_status status =
        assay_safetensors_write(path, &entry, 1, NULL, 0, message);
    free(data);
    return status;
}

START_TEST(folders_that_cannot_be_written_give_a_sentence)
{
    struct scratch scratch;
    struct assay_message message;
    scratch_open(&scratch);
    enum assay_status status =
        write_bytes(scratch_name(&scratch, "missing/x.safetensors"), 8, &message);
    check_message(status, ASSAY_FAILED, &message, "missing/x.safetensors: ");
    ck_assert_int_eq(mkdir(scratch_name(&scratch, "folder.safetensors"), 0700), 0);
    status = write_bytes(scratch.path, 8, &message);
    check_message(status, ASSAY_FAILED, &message, "cannot be written: ");
    ck_assert_int_eq(scratch_count(&scratch), 1);

    ck_assert_int_eq(chmod(scratch.folder, 0555), 0);
    const uid_t user = geteuid();
    if (user == 0) ck_assert_int_eq(seteuid(NOBODY), 0);
    status = write_bytes(scratch_name(&scratch, "x.safetensors"), 8, &message);
    check_message(status, ASSAY_FAILED, &message, "Permission denied");
    if (user == 0) ck_assert_int_eq(seteuid(user), 0);
    ck_assert_int_eq(chmod(scratch.folder, 0700), 0);
    scratch_close(&scratch);
}
END_TEST

START_TEST(a_write_that_fails_half_way_leaves_the_old_file_alone)
{
    struct scratch scratch;
    struct assay_message message;
    struct rlimit old_limit;
    scratch_open(&scratch);
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
    for (int compressed = 0; compressed < 2; compressed++) {
        write_small(scratch_name(&scratch, compressed ? "x.safetensors.zst" : "x"));
        const struct rlimit limit = { 4096, old_limit.rlim_max };
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
        const enum assay_status status = write_bytes(scratch.path, 1 << 20, &message);
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
        check_message(status, ASSAY_FAILED, &message, "File too large");
        struct assay_safetensors file;
        ck_assert(assay_safetensors_read(scratch.path, &file, &message) == ASSAY_RAN);
        check_small(&file);
        assay_safetensors_close(&file);
        ck_assert_int_eq(scratch_count(&scratch), compressed + 1);
    }
    scratch_close(&scratch);
}
END_TEST

START_TEST(names_that_a_file_cannot_hold_are_refused)
{
    struct scratch scratch;
    struct assay_message message;
    scratch_open(&scratch);
    char same[] = "same", bad[] = "\xff", reserved[] = "__metadata__";
    const struct assay_safetensors_entry twice[] = { entry_of(same, ASSAY_U8, 0, NULL),
                                                     entry_of(same, ASSAY_F32, 0, NULL) };
    const struct assay_safetensors_entry wrong = entry_of(bad, ASSAY_U8, 0, NULL);
    const struct assay_safetensors_entry taken = entry_of(reserved, ASSAY_U8, 0, NULL);
    const struct assay_safetensors_metadata metadata[] = { { same, bad } };
    const char *const path = scratch_name(&scratch, "x.safetensors");
    enum assay_status status = assay_safetensors_write(path, twice, 2, NULL, 0, &message);
    check_message(status, ASSAY_REFUSED, &message, "tensor 'same'");
    status = assay_safetensors_write(path, &wrong, 1, NULL, 0, &message);
    check_message(status, ASSAY_REFUSED, &message, "UTF-8");
    status = assay_safetensors_write(path, &taken, 1, NULL, 0, &message);
    check_message(status, ASSAY_REFUSED, &message, "'__metadata__'");
    status = assay_safetensors_write(path, NULL, 0, metadata, 1, &message);
    check_message(status, ASSAY_REFUSED, &message, "metadata 'same'");
    ck_assert_int_eq(scratch_count(&scratch), 0);
    scratch_close(&scratch);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        written_bytes_are_those_of_the_published_layout,
        every_dtype_comes_back_as_scalar_empty_and_of_rank_5,
        tf32_and_e2m1_are_stored_as_the_dtype_that_holds_their_codes,
        order_of_entries_does_not_change_the_file,
        files_that_cannot_be_read_give_a_sentence,
        folders_that_cannot_be_written_give_a_sentence,
        a_write_that_fails_half_way_leaves_the_old_file_alone,
        names_that_a_file_cannot_hold_are_refused,
        NULL,
    };
    return run_tests("safetensors", tests);
}
