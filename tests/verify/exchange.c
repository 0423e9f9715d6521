/* SPDX-License-Identifier: MIT */
/* The folder of a case: what a program finds there, and what it may leave. */
#include "verify/data/exchange.h"

#include "tests/verify/plugin_call.h"
#include "verify/data/safetensors.h"

#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char padded_case[] = "fp8_gemm_nt m=4 n=8 k=128 a_stride=144 d_stride=16 "
                                  "seed=1";
static const char decode_case[] = "mla_dense_decode b=2 h_q=16 s_k=130,64 sms=3 seed=1";
enum { MAX_PATH = 4200, FIELDS = 8 };

struct path {
    char text[MAX_PATH];
};

static struct path path_in(const struct assay_exchange *exchange, const char *name)
{
    struct path path;
    snprintf(path.text, sizeof(path.text), "%s/%s", exchange->folder, name);
    return path;
}

struct given { /* a case in its folder */
    struct plugin_call call;
    struct assay_exchange exchange;
};

static struct given *given(const char *line, int launches)
{
    static struct given given;
    struct assay_message message = { "" };
    open_call(&given.call, line);
    ck_assert_msg(assay_exchange_open(&given.exchange, &given.call.the_case,
                                      &given.call.tensors, launches,
                                      &message) == ASSAY_RAN,
                  "%s", message.text);
    return &given;
}

static void put_away(struct given *given)
{
    assay_exchange_close(&given->exchange);
    close_call(&given->call);
}

static const struct assay_tensor *tensor_of(const struct given *given, const char *name)
{
    return assay_tensors_find(&given->call.tensors, name);
}

static struct assay_safetensors_entry dense(const char *name, enum assay_format format,
                                            int rank, const int64_t *shape,
                                            const void *data)
{
    struct assay_safetensors_entry entry = {
        .name = (char *)(uintptr_t)name, .format = format, .rank = rank, .data = data
    };
    entry.bytes = (int64_t)assay_format_bytes(format);
    for (int i = 0; i < rank; i++) {
        entry.shape[i] = shape[i];
        entry.bytes *= shape[i];
    }
    return entry;
}
#define SHAPE(...)                                                                       \
  (const int64_t[])                                                                      \
  {                                                                                      \
    __VA_ARGS__                                                                          \
  }

static void leave(const struct given *given, const struct assay_safetensors_entry *entry,
                  int count)
{
    struct assay_message message;
    const struct path path = path_in(&given->exchange, "outputs.safetensors");
    ck_assert(assay_safetensors_write(path.text, entry, count, NULL, 0, &message) ==
              ASSAY_RAN);
}

static void check_fetch(struct given *given, enum assay_status status, bool has_plan,
                        const char *sentence)
{
    struct assay_message message = { "" };
    bool came = false;
    const enum assay_status got =
        assay_exchange_fetch(&given->exchange, &given->call.the_case,
                             &given->call.problem, &given->call.tensors, &came, &message);
    ck_assert_msg(got == status, "%s: %s", assay_status_name(got), message.text);
    ck_assert_msg(strstr(message.text, sentence), "%s", message.text);
    if (status == ASSAY_RAN) ck_assert_int_eq(came, has_plan);
}

static json_t *json_of(const struct assay_safetensors *file, const char *key)
{
    const char *const text = assay_safetensors_metadata(file, key);
    ck_assert_ptr_nonnull(text);
    json_t *const value = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(value);
    return value;
}

static void check_json(const json_t *object, const char *key, const char *expected)
{
    char *const text = json_dumps(json_object_get(object, key),
                                  JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
    ck_assert_ptr_nonnull(text);
    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(inputs_are_stored_with_their_row_padding_and_all_there_is_to_know)
{
    struct given *const given_case = given(padded_case, 7);
    struct assay_safetensors file;
    struct assay_message message;
    const struct path path = path_in(&given_case->exchange, "inputs.safetensors");
    ck_assert(assay_safetensors_read(path.text, &file, &message) == ASSAY_RAN);
    ck_assert_int_eq(file.count, 4);
    const struct assay_safetensors_entry *const a = assay_safetensors_find(&file, "a");
    ck_assert_int_eq(a->bytes, 4 * 144);
    ck_assert_int_eq(memcmp(a->data, tensor_of(given_case, "a")->data, 4 * 144), 0);
    ck_assert_str_eq(assay_safetensors_metadata(&file, "case"), padded_case);
    ck_assert_str_eq(assay_safetensors_metadata(&file, "operation"), "fp8_gemm_nt");
    ck_assert_str_eq(assay_safetensors_metadata(&file, "launches"), "7");
    json_t *const inputs = json_of(&file, "inputs"), *const outputs =
                                                         json_of(&file, "outputs");
    check_json(inputs, "a",
               "{\"dtype\":\"F8_E4M3\",\"format\":\"e4m3\",\"shape\":[4,128],"
               "\"stride\":[144,1]}");
    check_json(outputs, "d",
               "{\"dtype\":\"BF16\",\"format\":\"bf16\",\"shape\":[4,8],"
               "\"stride\":[16,1]}");
    ck_assert_uint_eq(json_object_size(inputs), 4);
    ck_assert_uint_eq(json_object_size(outputs), 1);
    json_decref(inputs);
    json_decref(outputs);
    assay_safetensors_close(&file);
    put_away(given_case);
}
END_TEST

START_TEST(parameters_are_named_with_their_defaults)
{
    struct given *const given_case =
        given("mla_dense_decode b=2 h_q=16 s_k=130,64 softmax_scale=0.0416666679", 0);
    struct assay_safetensors file;
    struct assay_message message;
    const struct path path = path_in(&given_case->exchange, "inputs.safetensors");
    ck_assert(assay_safetensors_read(path.text, &file, &message) == ASSAY_RAN);
    ck_assert_str_eq(assay_safetensors_metadata(&file, "launches"), "1");
    json_t *const parameters = json_of(&file, "parameters");
    check_json(parameters, "b", "2");
    check_json(parameters, "h_k", "1");
    check_json(parameters, "s_k", "[130,64]");
    check_json(parameters, "plan", "\"scheduler\"");
    check_json(parameters, "format", "\"bf16\"");
    ck_assert(json_real_value(json_object_get(parameters, "softmax_scale")) ==
              0.0416666679);
    ck_assert(json_is_real(json_object_get(parameters, "softmax_scale")));
    int keys = 0;
    while (given_case->call.the_case.operation->parameters[keys].name)
        keys++;
    ck_assert_uint_eq(json_object_size(parameters), (size_t)keys);
    json_decref(parameters);
    assay_safetensors_close(&file);
    put_away(given_case);
}
END_TEST

START_TEST(the_folder_is_ours_alone_and_goes_with_all_that_is_in_it)
{
    struct given *const given_case = given(padded_case, 1);
    struct stat about;
    ck_assert_int_eq(stat(given_case->exchange.folder, &about), 0);
    ck_assert_uint_eq(about.st_mode & 0777, 0700);
    ck_assert_int_eq(given_case->exchange.folder[0], '/');
    ck_assert_int_eq(mkdir(path_in(&given_case->exchange, "more").text, 0755), 0);
    ck_assert_int_eq(symlink("/", path_in(&given_case->exchange, "more/root").text), 0);
    ck_assert_int_eq(mkfifo(path_in(&given_case->exchange, "pipe").text, 0600), 0);
    const struct assay_exchange before = given_case->exchange;
    put_away(given_case);
    ck_assert_int_ne(access(before.folder, F_OK), 0);
    ck_assert_int_eq(access("/tmp", F_OK), 0);
    assay_exchange_close(&given_case->exchange);
}
END_TEST

START_TEST(contiguous_outputs_leave_row_padding_alone_and_stored_ones_bring_theirs)
{
    struct given *const given_case = given(padded_case, 1);
    uint16_t contiguous[4 * 8], stored[4 * 16];
    for (int i = 0; i < 4 * 16; i++)
        stored[i] = (uint16_t)(100 + i);
    memcpy(contiguous, stored, sizeof(contiguous));
    struct assay_safetensors_entry d = dense("d", ASSAY_BF16, 2, SHAPE(4, 8), contiguous);
    const uint16_t *const got = tensor_of(given_case, "d")->data;
    leave(given_case, &d, 1);
    check_fetch(given_case, ASSAY_RAN, false, "");
    for (int i = 0; i < 4 * 16; i++)
        ck_assert_int_eq(got[i], i % 16 < 8 ? 100 + i / 16 * 8 + i % 16 : 0xDBDB);
    d = dense("d", ASSAY_BF16, 2, SHAPE(4, 16), stored);
    leave(given_case, &d, 1);
    check_fetch(given_case, ASSAY_RAN, false, "");
    for (int i = 0; i < 4 * 16; i++)
        ck_assert_int_eq(got[i], 100 + i);
    put_away(given_case);
}
END_TEST

START_TEST(outputs_of_another_form_are_refused_and_change_nothing)
{
    struct given *const given_case = given(padded_case, 1);
    static const float data[64] = { 0 };
    const struct assay_safetensors_entry entry[] = {
        dense("d", ASSAY_BF16, 2, SHAPE(4, 8), data),
        dense("e", ASSAY_BF16, 2, SHAPE(4, 8), data),
        dense("a", ASSAY_E4M3, 2, SHAPE(4, 8), data),
        dense("d", ASSAY_F32, 2, SHAPE(4, 8), data),
        dense("d", ASSAY_BF16, 2, SHAPE(8, 4), data),
        dense("d", ASSAY_BF16, 3, SHAPE(1, 4, 8), data),
        dense("d", ASSAY_BF16, 0, SHAPE(0), data),
    };
    leave(given_case, &entry[1], 1);
    check_fetch(given_case, ASSAY_FAILED, false, "has no tensor 'd'");
    leave(given_case, &entry[0], 2);
    check_fetch(given_case, ASSAY_FAILED, false, "a tensor 'e', which is no output");
    const struct assay_safetensors_entry with_input[] = { entry[0], entry[2] };
    leave(given_case, with_input, 2);
    check_fetch(given_case, ASSAY_FAILED, false, "a tensor 'a', which is no output");
    leave(given_case, &entry[3], 1);
    check_fetch(given_case, ASSAY_FAILED, false,
                "'d' is F32 [4, 8], but this case needs BF16 [4, 8]");
    for (int i = 4; i < 7; i++) {
        leave(given_case, &entry[i], 1);
        check_fetch(given_case, ASSAY_FAILED, false, "but this case needs BF16 [4, 8]");
    }
    const uint8_t *const bytes = tensor_of(given_case, "d")->data;
    for (int i = 0; i < 4 * 16 * 2; i++)
        ck_assert_uint_eq(bytes[i], 0xDB);
    put_away(given_case);
}
END_TEST

START_TEST(a_file_that_is_none_is_refused)
{
    struct given *const given_case = given(padded_case, 1);
    const struct path path = path_in(&given_case->exchange, "outputs.safetensors");
    ck_assert(!assay_exchange_is_answered(&given_case->exchange));
    check_fetch(given_case, ASSAY_FAILED, false, "cannot be read: No such file");
    ck_assert_int_eq(mkfifo(path.text, 0600), 0);
    check_fetch(given_case, ASSAY_FAILED, false, "is not a regular file");
    unlink(path.text);
    ck_assert_int_eq(symlink("inputs.safetensors", path.text), 0);
    check_fetch(given_case, ASSAY_FAILED, false, "cannot be read: ");
    unlink(path.text);
    ck_assert_int_eq(mkdir(path.text, 0700), 0);
    check_fetch(given_case, ASSAY_FAILED, false, "is not a regular file");
    rmdir(path.text);
    const int fd = open(path.text, O_WRONLY | O_CREAT | O_EXCL, 0600);
    check_fetch(given_case, ASSAY_FAILED, false, "the file is empty");
    ck_assert_int_eq(write(fd, "{\"d\": 1}{}", 10), 10);
    check_fetch(given_case, ASSAY_FAILED, false, "not a safetensors file");
    ck_assert_int_eq(ftruncate(fd, (off_t)1 << 40), 0);
    check_fetch(given_case, ASSAY_FAILED, false,
                "has 1099511627776 bytes, but the outputs of this case take at most");
    ck_assert(assay_exchange_is_answered(&given_case->exchange));
    close(fd);
    put_away(given_case);
}
END_TEST

/* Files of a decode: the outputs, poison for all they are, and a plan. */
struct decode {
    struct assay_safetensors_entry entry[4];
    int32_t metadata[8 * FIELDS], num_splits[3];
};

static struct decode *decode_of(const struct given *given)
{
    static struct decode decode;
    const struct assay_tensor *const metadata =
        tensor_of(given, "tile_scheduler_metadata");
    const struct assay_tensor *const num_splits = tensor_of(given, "num_splits");
    ck_assert_int_eq(metadata->shape[0], 3);
    memcpy(decode.metadata, metadata->data, 3 * FIELDS * sizeof(int32_t));
    memcpy(decode.num_splits, num_splits->data, sizeof(decode.num_splits));
    decode.entry[0] =
        dense("out", ASSAY_BF16, 4, SHAPE(2, 1, 16, 512), tensor_of(given, "out")->data);
    decode.entry[1] =
        dense("lse", ASSAY_F32, 3, SHAPE(2, 16, 1), tensor_of(given, "lse")->data);
    decode.entry[2] =
        dense("tile_scheduler_metadata", ASSAY_I32, 2, SHAPE(3, FIELDS), decode.metadata);
    decode.entry[3] = dense("num_splits", ASSAY_I32, 1, SHAPE(3), decode.num_splits);
    return &decode;
}

START_TEST(a_plan_that_was_used_takes_the_place_of_the_inputs)
{
    static const char split[] =
        "mla_dense_decode b=2 h_q=16 s_k=130,64 sms=3 plan=blocks seed=1";
    struct plugin_call other;
    struct given *const given_case = given(decode_case, 1);
    struct decode *const decode = decode_of(given_case);
    open_call(&other, split);
    const int32_t *const planned =
        assay_tensors_find(&other.tensors, "tile_scheduler_metadata")->data;
    const int32_t *const splits = assay_tensors_find(&other.tensors, "num_splits")->data;
    const int32_t *const own = tensor_of(given_case, "tile_scheduler_metadata")->data;
    ck_assert_int_ne(memcmp(planned, own, 3 * FIELDS * sizeof(int32_t)), 0);
    leave(given_case, decode->entry, 2);
    check_fetch(given_case, ASSAY_RAN, false, "");
    memcpy(decode->metadata, planned, 3 * FIELDS * sizeof(int32_t));
    memcpy(decode->num_splits, splits, sizeof(decode->num_splits));
    leave(given_case, decode->entry, 4);
    check_fetch(given_case, ASSAY_RAN, true, "");
    ck_assert_int_eq(memcmp(planned, own, 3 * FIELDS * sizeof(int32_t)), 0);
    ck_assert_int_eq(memcmp(splits, tensor_of(given_case, "num_splits")->data,
                            sizeof(decode->num_splits)),
                     0);
    close_call(&other);
    put_away(given_case);
}
END_TEST

START_TEST(a_plan_with_holes_is_refused_and_changes_nothing)
{
    struct given *const given_case = given(decode_case, 1);
    struct decode *const decode = decode_of(given_case);
    int32_t before[3 * FIELDS];
    memcpy(before, decode->metadata, sizeof(before));
    decode->metadata[0] = 1 << 20;
    leave(given_case, decode->entry, 4);
    check_fetch(given_case, ASSAY_FAILED, false, "holds a plan that cannot have been");
    ck_assert_int_eq(memcmp(before,
                            tensor_of(given_case, "tile_scheduler_metadata")->data,
                            sizeof(before)),
                     0);
    memcpy(decode->metadata, before, sizeof(before));
    decode->num_splits[1] += 1;
    leave(given_case, decode->entry, 4);
    check_fetch(given_case, ASSAY_FAILED, false, "holds a plan that cannot have been");
    put_away(given_case);
}
END_TEST

START_TEST(a_plan_of_another_machine_is_told_with_the_machine)
{
    struct given *const given_case = given(decode_case, 1);
    struct decode *const decode = decode_of(given_case);
    decode->entry[2] = dense("tile_scheduler_metadata", ASSAY_I32, 2, SHAPE(8, FIELDS),
                             decode->metadata);
    leave(given_case, decode->entry, 4);
    check_fetch(given_case, ASSAY_FAILED, false,
                "is I32 [8, 8], but this case needs I32 [3, 8]; with sms=8 it would fit");
    decode->entry[2] =
        dense("tile_scheduler_metadata", ASSAY_I32, 2, SHAPE(4, 4), decode->metadata);
    leave(given_case, decode->entry, 4);
    check_fetch(given_case, ASSAY_FAILED, false, "but this case needs I32 [3, 8]");
    put_away(given_case);
}
END_TEST

START_TEST(a_place_that_is_none_is_told)
{
    struct plugin_call call;
    struct assay_exchange exchange;
    struct assay_message message;
    char before[MAX_PATH];
    const char *const was = getenv("TMPDIR");
    snprintf(before, sizeof(before), "%s", was ? was : "");
    open_call(&call, padded_case);
    setenv("TMPDIR", "/nowhere/at/all", 1);
    ck_assert(assay_exchange_open(&exchange, &call.the_case, &call.tensors, 1,
                                  &message) == ASSAY_FAILED);
    ck_assert_msg(strstr(message.text, "made in /nowhere/at/all: No such file"), "%s",
                  message.text);
    assay_exchange_close(&exchange);
    setenv("TMPDIR", before, 1);
    close_call(&call);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        inputs_are_stored_with_their_row_padding_and_all_there_is_to_know,
        parameters_are_named_with_their_defaults,
        the_folder_is_ours_alone_and_goes_with_all_that_is_in_it,
        contiguous_outputs_leave_row_padding_alone_and_stored_ones_bring_theirs,
        outputs_of_another_form_are_refused_and_change_nothing,
        a_file_that_is_none_is_refused,
        a_plan_that_was_used_takes_the_place_of_the_inputs,
        a_plan_with_holes_is_refused_and_changes_nothing,
        a_plan_of_another_machine_is_told_with_the_machine,
        a_place_that_is_none_is_told,
        NULL,
    };
    return run_tests("exchange", tests);
}
