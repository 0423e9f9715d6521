/* SPDX-License-Identifier: MIT */
/* Recordings made for the purpose: bound to their cases, and wrong in every way. */
#include "verify/data/recording.h"

#include "tests/harness.h"
#include "tests/verify/scratch.h"
#include "tests/verify/shaped_case.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

enum { MAX_ENTRIES = 16, BYTES = 128 };

static const char small_case[] = "fp8_gemm_nt m=2 n=8 k=16 data=recorded seed=0";

/* Content of a recording of small_case, to be changed by each test. */
struct draft {
    struct scratch scratch;
    struct assay_safetensors_entry entry[MAX_ENTRIES];
    int count;
    char names[MAX_ENTRIES][40];
    unsigned char data[MAX_ENTRIES][BYTES];
    const char *cases;
};

static void add(struct draft *draft, const char *name, enum assay_format format,
                int64_t rows, int64_t columns)
{
    const int i = draft->count++;
    snprintf(draft->names[i], sizeof draft->names[i], "%s", name);
    memset(draft->data[i], i + 1, BYTES);
    const int64_t bytes = rows * columns * (int64_t)assay_format_bytes(format);
    ck_assert_int_le(bytes, BYTES);
    draft->entry[i] =
        (struct assay_safetensors_entry){ draft->names[i],   format,         2,
                                          { rows, columns }, draft->data[i], bytes };
}

static struct draft *draft_open(void)
{
    struct draft *const draft = calloc(1, sizeof *draft);
    scratch_open(&draft->scratch);
    draft->cases = small_case;
    add(draft, "a", ASSAY_E4M3, 2, 16);
    add(draft, "b", ASSAY_E4M3, 8, 16);
    add(draft, "sfa", ASSAY_F32, 2, 1);
    add(draft, "sfb", ASSAY_F32, 1, 1);
    add(draft, "d", ASSAY_BF16, 2, 8);
    return draft;
}

static void draft_close(struct draft *draft)
{
    scratch_close(&draft->scratch);
    free(draft);
}

static enum assay_status draft_read(struct draft *draft,
                                    struct assay_recording *recording,
                                    struct assay_message *message)
{
    char key[] = "cases";
    char *const value = strdup(draft->cases ? draft->cases : "");
    const struct assay_safetensors_metadata metadata = { key, value };
    const char *const path = scratch_name(&draft->scratch, "r.safetensors");
    const enum assay_status written = assay_safetensors_write(
        path, draft->entry, draft->count, &metadata, draft->cases ? 1 : 0, message);
    ck_assert_msg(written == ASSAY_RAN, "%s", message->text);
    free(value);
    return assay_recording_open(recording, path, message);
}

static void check_sentence(enum assay_status status, const struct assay_message *message,
                           const char *word)
{
    ck_assert_msg(status == ASSAY_REFUSED && strstr(message->text, word) != NULL &&
                      strstr(message->text, "r.safetensors: ") != NULL,
                  "status %d, no '%s' in: %s", (int)status, word, message->text);
}

START_TEST(a_tensor_of_the_case_comes_before_one_of_all)
{
    struct draft *const draft = draft_open();
    struct assay_recording recording;
    struct assay_message message = { "" };
    char cases[256];
    snprintf(cases, sizeof cases, "%s\n%s\n", small_case, small_case);
    draft->cases = cases;
    add(draft, "1/d", ASSAY_BF16, 2, 8);
    ck_assert_msg(draft_read(draft, &recording, &message) == ASSAY_RAN, "%s",
                  message.text);
    ck_assert_int_eq(recording.count, 2);
    for (int i = 0; i < 2; i++) {
        struct assay_tensors tensors;
        shape_case(&recording.cases[i], &tensors);
        ck_assert(assay_recording_bind(&recording, i, &tensors, &message) == ASSAY_RAN);
        const unsigned char *const d = assay_tensors_find(&tensors, "d")->data;
        const unsigned char *const b = assay_tensors_find(&tensors, "b")->data;
        ck_assert_int_eq(d[0], i == 0 ? 5 : 6);
        ck_assert_int_eq(b[0], 2);
    }
    assay_recording_close(&recording);
    draft_close(draft);
}
END_TEST

START_TEST(row_padding_is_stored_in_the_last_dimension)
{
    struct draft *const draft = draft_open();
    struct assay_recording recording;
    struct assay_message message = { "" };
    struct assay_tensors tensors;
    draft->cases = "fp8_gemm_nt m=2 n=8 k=16 d_stride=16 data=recorded seed=0";
    draft->count--;
    add(draft, "d", ASSAY_BF16, 2, 16);
    ck_assert(draft_read(draft, &recording, &message) == ASSAY_RAN);
    shape_case(&recording.cases[0], &tensors);
    ck_assert_msg(assay_recording_bind(&recording, 0, &tensors, &message) == ASSAY_RAN,
                  "%s", message.text);
    const struct assay_tensor *const d = assay_tensors_find(&tensors, "d");
    ck_assert(d->shape[1] == 8 && d->stride[0] == 16);
    const unsigned char *const bytes = d->data;
    for (int i = 0; i < 2 * 16 * 2; i++)
        ck_assert_int_eq(bytes[i], 5);
    assay_recording_close(&recording);

    draft->count--;
    add(draft, "d", ASSAY_BF16, 2, 8);
    ck_assert(draft_read(draft, &recording, &message) == ASSAY_RAN);
    const enum assay_status status =
        assay_recording_bind(&recording, 0, &tensors, &message);
    check_sentence(status, &message, "'d' is BF16 [2, 8], but case 0 needs BF16 [2, 16]");
    assay_recording_close(&recording);
    draft_close(draft);
}
END_TEST

START_TEST(stored_shape_keeps_padding_and_zero_sizes)
{
    static const struct {
        int rank;
        int64_t shape[5], stride[5], stored[5];
    } rows[] = {
        { 0, { 0 }, { 0 }, { 0 } },
        { 1, { 7 }, { 1 }, { 7 } },
        { 2, { 3, 5 }, { 8, 1 }, { 3, 8 } },
        { 3, { 2, 3, 5 }, { 24, 8, 1 }, { 2, 3, 8 } },
        { 3, { 2, 3, 5 }, { 32, 8, 1 }, { 2, 4, 8 } },
        { 3, { 2, 0, 3 }, { 0, 3, 1 }, { 2, 0, 3 } },
        { 3, { 2, 3, 0 }, { 0, 0, 1 }, { 2, 3, 0 } },
        { 2, { 0, 3 }, { 3, 1 }, { 0, 3 } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct assay_tensor tensor = { .rank = rows[i].rank };
        int64_t stored[ASSAY_MAX_RANK] = { 0 };
        memcpy(tensor.shape, rows[i].shape, sizeof tensor.shape);
        memcpy(tensor.stride, rows[i].stride, sizeof tensor.stride);
        assay_recording_stored_shape(&tensor, stored);
        ck_assert_mem_eq(stored, rows[i].stored, sizeof stored);
    }
}
END_TEST

START_TEST(a_tensor_that_does_not_fit_the_case_is_refused)
{
    static const struct {
        int entry;
        enum assay_format format;
        int64_t rows, columns;
        const char *word;
    } rows[] = {
        { 0, ASSAY_E5M2, 2, 16, "'a' is F8_E5M2 [2, 16], but case 0 needs F8_E4M3" },
        { 0, ASSAY_U8, 2, 16, "'a' is U8 [2, 16]" },
        { 1, ASSAY_E4M3, 16, 8,
          "'b' is F8_E4M3 [16, 8], but case 0 needs F8_E4M3 [8, 16]" },
        { 2, ASSAY_I32, 2, 1, "'sfa' is I32 [2, 1], but case 0 needs F32 [2, 1]" },
        { 4, ASSAY_F32, 2, 8, "needs BF16 [2, 8]" },
        { 4, ASSAY_F16, 2, 8, "needs BF16 [2, 8]" },
        { 4, ASSAY_BF16, 2, 9, "'d' is BF16 [2, 9]" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct draft *const draft = draft_open();
        struct assay_recording recording;
        struct assay_message message = { "" };
        struct assay_tensors tensors;
        const int count = draft->count;
        draft->count = rows[i].entry;
        char name[40];
        memcpy(name, draft->names[draft->count], sizeof name);
        add(draft, name, rows[i].format, rows[i].rows, rows[i].columns);
        draft->count = count;
        ck_assert(draft_read(draft, &recording, &message) == ASSAY_RAN);
        shape_case(&recording.cases[0], &tensors);
        const enum assay_status status =
            assay_recording_bind(&recording, 0, &tensors, &message);
        check_sentence(status, &message, rows[i].word);
        assay_recording_close(&recording);
        draft_close(draft);
    }
}
END_TEST

START_TEST(rank_and_absence_are_refused)
{
    struct draft *const draft = draft_open();
    struct assay_recording recording;
    struct assay_message message = { "" };
    struct assay_tensors tensors;
    draft->entry[3].rank = 1;
    ck_assert(draft_read(draft, &recording, &message) == ASSAY_RAN);
    shape_case(&recording.cases[0], &tensors);
    enum assay_status status = assay_recording_bind(&recording, 0, &tensors, &message);
    check_sentence(status, &message, "'sfb' is F32 [1], but case 0 needs F32 [1, 1]");
    assay_recording_close(&recording);

    draft->entry[3].rank = 2;
    draft->count--;
    ck_assert(draft_read(draft, &recording, &message) == ASSAY_RAN);
    status = assay_recording_bind(&recording, 0, &tensors, &message);
    check_sentence(status, &message, "case 0 has no tensor d");
    assay_recording_close(&recording);
    draft_close(draft);
}
END_TEST

START_TEST(inputs_alone_are_enough_for_a_candidate)
{
    struct draft *const draft = draft_open();
    struct assay_recording recording;
    struct assay_message message = { "" };
    struct assay_tensors tensors;
    draft->count--;
    ck_assert(draft_read(draft, &recording, &message) == ASSAY_RAN);
    shape_case(&recording.cases[0], &tensors);
    ck_assert_int_eq(assay_recording_bind_inputs(&recording, 0, &tensors, &message),
                     ASSAY_RAN);
    for (int i = 0; i < tensors.count; i++)
        ck_assert((tensors.item[i].data == NULL) == tensors.item[i].is_output);
    assay_recording_close(&recording);

    draft->count--;
    ck_assert(draft_read(draft, &recording, &message) == ASSAY_RAN);
    const enum assay_status status =
        assay_recording_bind_inputs(&recording, 0, &tensors, &message);
    check_sentence(status, &message, "case 0 has no tensor sfb");
    ck_assert(!strstr(message.text, "--candidate"));
    assay_recording_close(&recording);
    draft_close(draft);
}
END_TEST

START_TEST(a_tensor_of_no_case_is_refused)
{
    static const char *const names[] = {
        "1/a",
        "00/a",
        "01/a",
        "-0/a",
        "-1/a",
        "+0/a",
        " 0/a",
        "0 /a",
        "0x0/a",
        "/a",
        "0/",
        "0/a/b",
        "99999999999999999999/a",
        "",
        "a/0",
        "//",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct draft *const draft = draft_open();
        struct assay_recording recording;
        struct assay_message message = { "" };
        add(draft, names[i], ASSAY_U8, 1, 1);
        char word[64];
        snprintf(word, sizeof word, "'%s' belongs to no case", names[i]);
        check_sentence(draft_read(draft, &recording, &message), &message, word);
        ck_assert(recording.cases == NULL && recording.file.memory == NULL);
        draft_close(draft);
    }
}
END_TEST

static void check_cases_refused(const char *cases, const char *word)
{
    struct draft *const draft = draft_open();
    struct assay_recording recording;
    struct assay_message message = { "" };
    draft->cases = cases;
    check_sentence(draft_read(draft, &recording, &message), &message, word);
    ck_assert(recording.cases == NULL && recording.file.memory == NULL);
    draft_close(draft);
}

START_TEST(wrong_case_lines_are_refused)
{
    check_cases_refused(NULL, "metadata \"cases\"");
    check_cases_refused("", "metadata \"cases\"");
    check_cases_refused("no_such_operation m=1", "case 0: ");
    check_cases_refused("fp8_gemm_nt m=2 n=8 k=16 data=recorded seed=0\n"
                        "fp8_gemm_nt m=2 n=8 k=16 data=recorded seed=0 nonsense=1",
                        "case 1: ");
    check_cases_refused("\nfp8_gemm_nt m=2 n=8 k=16 data=recorded seed=0", "case 0: ");

    static char line[8192];
    memset(line, ' ', 4096);
    memcpy(line, small_case, sizeof small_case - 1);
    check_cases_refused(line, "line of 4096 bytes");
}
END_TEST

START_TEST(ten_thousand_cases_are_read_and_one_more_is_not)
{
    enum { LINE = sizeof small_case };
    char *const cases = malloc(10001 * LINE + 1);
    for (int i = 0; i < 10001; i++)
        snprintf(cases + i * LINE, LINE + 1, "%s\n", small_case);
    check_cases_refused(cases, "has 10001 cases");
    cases[10000 * LINE] = '\0';

    struct draft *const draft = draft_open();
    struct assay_recording recording;
    struct assay_message message = { "" };
    draft->cases = cases;
    ck_assert_msg(draft_read(draft, &recording, &message) == ASSAY_RAN, "%s",
                  message.text);
    ck_assert_int_eq(recording.count, 10000);
    ck_assert_int_eq(assay_case_value(&recording.cases[9999], "n"), 8);
    assay_recording_close(&recording);
    draft_close(draft);
    free(cases);
}
END_TEST

START_TEST(unaligned_tensors_are_copied_to_aligned_memory)
{
    static const char header[] =
        "{\"__metadata__\":{\"cases\":\"fp8_gemm_nt m=1 n=8 k=16 data=recorded "
        "seed=0\"},"
        "\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[1,16],\"data_offsets\":[0,16]},"
        "\"odd\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[16,17]},"
        "\"sfa\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[17,21]},"
        "\"sfb\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[21,25]},"
        "\"d\":{\"dtype\":\"BF16\",\"shape\":[1,8],\"data_offsets\":[25,41]},"
        "\"b\":{\"dtype\":\"F8_E4M3\",\"shape\":[8,16],\"data_offsets\":[41,169]}}";
    static unsigned char content[8 + sizeof header - 1 + 169];
    const uint64_t length = htole64(sizeof header - 1);
    memcpy(content, &length, 8);
    memcpy(content + 8, header, sizeof header - 1);
    unsigned char *const data = content + 8 + sizeof header - 1;
    for (int i = 0; i < 169; i++)
        data[i] = (unsigned char)i;
    struct scratch scratch;
    scratch_open(&scratch);
    scratch_put(&scratch, "x.safetensors", content, sizeof content);
    struct assay_recording recording;
    struct assay_message message = { "" };
    ck_assert_msg(assay_recording_open(&recording, scratch.path, &message) == ASSAY_RAN,
                  "%s", message.text);
    struct assay_tensors tensors;
    shape_case(&recording.cases[0], &tensors);
    ck_assert(assay_recording_bind(&recording, 0, &tensors, &message) == ASSAY_RAN);
    for (int i = 0; i < tensors.count; i++)
        ck_assert_uint_eq((uintptr_t)tensors.item[i].data %
                              assay_format_bytes(tensors.item[i].format),
                          0);
    ck_assert_mem_eq(assay_tensors_find(&tensors, "a")->data, data, 16);
    ck_assert_mem_eq(assay_tensors_find(&tensors, "sfa")->data, data + 17, 4);
    ck_assert_mem_eq(assay_tensors_find(&tensors, "sfb")->data, data + 21, 4);
    ck_assert_mem_eq(assay_tensors_find(&tensors, "d")->data, data + 25, 16);
    ck_assert_mem_eq(assay_tensors_find(&tensors, "b")->data, data + 41, 128);
    assay_recording_close(&recording);
    scratch_close(&scratch);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_tensor_of_the_case_comes_before_one_of_all,
        row_padding_is_stored_in_the_last_dimension,
        stored_shape_keeps_padding_and_zero_sizes,
        a_tensor_that_does_not_fit_the_case_is_refused,
        rank_and_absence_are_refused,
        inputs_alone_are_enough_for_a_candidate,
        a_tensor_of_no_case_is_refused,
        wrong_case_lines_are_refused,
        ten_thousand_cases_are_read_and_one_more_is_not,
        unaligned_tensors_are_copied_to_aligned_memory,
        NULL,
    };
    return run_tests("recording", tests);
}
