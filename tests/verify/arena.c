/* SPDX-License-Identifier: MIT */
/* A case's memory as a worker has it, and what a plugin reads of a call. */
#include "verify/worker/arena.h"

#include "tests/verify/plugin_call.h"
#include "verify/plugin/assay_plugin.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char padded[] = "fp8_gemm_nt m=3 n=8 k=144 a_stride=160 d_stride=16 seed=2";

static void open_arena(struct plugin_call *call, struct assay_arena *arena)
{
    struct assay_message message = { "" };
    open_call(call, padded);
    ck_assert(assay_arena_open(arena, &call->tensors, &message) == ASSAY_RAN);
}

static unsigned char *data_of(const struct assay_arena *arena, int index)
{
    return (unsigned char *)arena->memory + assay_arena_offset(arena, index);
}

START_TEST(tensors_are_copied_aligned_and_inputs_have_pages_of_their_own)
{
    struct plugin_call call;
    struct assay_arena arena;
    open_arena(&call, &arena);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    ck_assert_uint_eq(arena.input_bytes % page, 0);
    for (int i = 0; i < call.tensors.count; i++) {
        const struct assay_tensor *const tensor = &call.tensors.item[i];
        const size_t offset = assay_arena_offset(&arena, i);
        const size_t bytes = (size_t)assay_tensor_bytes(tensor);
        ck_assert_uint_eq(offset % 64, 0);
        ck_assert(tensor->is_output ? offset > arena.input_bytes
                                    : offset + bytes < arena.input_bytes);
        ck_assert_mem_eq(data_of(&arena, i), tensor->data, bytes);
    }
    ck_assert(assay_arena_is_intact(&arena));
    assay_arena_close(&arena);
    close_call(&call);
}
END_TEST

static void check_guard(struct assay_arena *arena, unsigned char *at)
{
    const unsigned char before = *at;
    *at = (unsigned char)(before ^ 1);
    ck_assert(!assay_arena_is_intact(arena));
    *at = before;
    ck_assert(assay_arena_is_intact(arena));
}

START_TEST(a_byte_beside_any_tensor_is_a_guard)
{
    struct plugin_call call;
    struct assay_arena arena;
    open_arena(&call, &arena);
    for (int i = 0; i < call.tensors.count; i++) {
        unsigned char *const data = data_of(&arena, i);
        const int64_t bytes = assay_tensor_bytes(&call.tensors.item[i]);
        check_guard(&arena, data - 1);
        check_guard(&arena, data - 256);
        check_guard(&arena, data + bytes);
        check_guard(&arena, data + bytes + 255);
    }
    check_guard(&arena, (unsigned char *)arena.memory + arena.bytes - 1);
    assay_arena_close(&arena);
    close_call(&call);
}
END_TEST

START_TEST(outputs_alone_are_fetched_with_their_padding)
{
    struct plugin_call call;
    struct assay_arena arena;
    open_arena(&call, &arena);
    const int last = call.tensors.count - 1;
    const struct assay_tensor *const a = &call.tensors.item[0];
    const struct assay_tensor *const d = &call.tensors.item[last];
    const unsigned char first = *(unsigned char *)a->data;
    memset(data_of(&arena, 0), first ^ 1, 5);
    memset(data_of(&arena, last), 0x42, 96);
    assay_arena_fetch(&arena, &call.tensors);
    ck_assert_int_eq(*(unsigned char *)a->data, first);
    ck_assert_int_eq(assay_tensor_bytes(d), 96);
    for (int i = 0; i < 96; i++)
        ck_assert_int_eq(((unsigned char *)d->data)[i], 0x42);
    assay_arena_close(&arena);
    close_call(&call);
}
END_TEST

START_TEST(the_memory_can_neither_shrink_nor_grow)
{
    struct plugin_call call;
    struct assay_arena arena;
    open_arena(&call, &arena);
    ck_assert_int_eq(ftruncate(arena.fd, 0), -1);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_eq(ftruncate(arena.fd, 1 << 24), -1);
    ck_assert_int_eq(errno, EPERM);
    assay_arena_close(&arena);
    close_call(&call);
}
END_TEST

START_TEST(both_sides_see_one_memory)
{
    struct plugin_call call;
    struct assay_arena arena;
    open_arena(&call, &arena);
    const int last = call.tensors.count - 1;
    unsigned char *const mapped =
        assay_arena_map(arena.fd, arena.bytes, arena.input_bytes);
    ck_assert_ptr_nonnull(mapped);
    ck_assert_mem_eq(mapped, arena.memory, arena.bytes);
    mapped[assay_arena_offset(&arena, last)] = 0x17;
    ck_assert_int_eq(*data_of(&arena, last), 0x17);
    munmap(mapped, arena.bytes);
    ck_assert_ptr_null(assay_arena_map(-1, arena.bytes, arena.input_bytes));
    assay_arena_close(&arena);
    close_call(&call);
}
END_TEST

START_TEST(settings_are_found_by_their_whole_key)
{
    static const char line[] = "gemm m=12 mn=3 masked_m=0,1,64 seed=7";
    char value[8];
    ck_assert_int_eq(assay_plugin_setting(line, ' ', "m", value, sizeof(value)), 1);
    ck_assert_str_eq(value, "12");
    ck_assert_int_eq(assay_plugin_setting(line, ' ', "masked_m", value, sizeof(value)),
                     1);
    ck_assert_str_eq(value, "0,1,64");
    ck_assert_int_eq(assay_plugin_setting(line, ' ', "seed", value, sizeof(value)), 1);
    ck_assert_str_eq(value, "7");
    ck_assert_int_eq(assay_plugin_setting(line, ' ', "ed", value, sizeof(value)), 0);
    ck_assert_int_eq(assay_plugin_setting(line, ' ', "gemm", value, sizeof(value)), 0);
    ck_assert_str_eq(value, "");
    ck_assert_int_eq(assay_plugin_setting(line, ' ', "masked_m", value, 6), 0);
    ck_assert_int_eq(assay_plugin_setting(line, ' ', "masked_m", value, 7), 1);
    ck_assert_int_eq(assay_plugin_setting("a=,b=2", ',', "a", value, 4), 1);
    ck_assert_str_eq(value, "");
    ck_assert_int_eq(assay_plugin_setting("a=,b=2", ',', "b", value, 4), 1);
    ck_assert_str_eq(value, "2");
    ck_assert_int_eq(assay_plugin_setting("", ',', "b", value, 4), 0);
}
END_TEST

START_TEST(tensors_are_found_by_their_name)
{
    static const struct assay_plugin_tensor a = { .name = "a" }, sfa = { .name = "sfa" };
    const struct assay_plugin_tensor *const tensor[] = { &sfa, &a };
    const struct assay_call call = { .tensor_count = 2, .tensor = tensor };
    ck_assert_ptr_eq(assay_call_tensor(&call, "a"), &a);
    ck_assert_ptr_eq(assay_call_tensor(&call, "sfa"), &sfa);
    ck_assert_ptr_null(assay_call_tensor(&call, "sf"));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        tensors_are_copied_aligned_and_inputs_have_pages_of_their_own,
        a_byte_beside_any_tensor_is_a_guard,
        outputs_alone_are_fetched_with_their_padding,
        the_memory_can_neither_shrink_nor_grow,
        both_sides_see_one_memory,
        settings_are_found_by_their_whole_key,
        tensors_are_found_by_their_name,
        NULL,
    };
    return run_tests("arena", tests);
}
