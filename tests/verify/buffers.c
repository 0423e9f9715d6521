/* SPDX-License-Identifier: MIT */
/* Guards, poison and limits of a case's memory, where elements lie in it, and the
 * fingerprint of its inputs. */
#include "verify/data/buffers.h"

#include "tests/harness.h"

#include <string.h>
#include <unistd.h>
#include <xxhash.h>

static struct assay_tensor tensor_of(const char *name, enum assay_format format,
                                     bool is_output, int64_t rows, int64_t columns,
                                     int64_t stride)
{
    return (struct assay_tensor){ .name = name,
                                  .format = format,
                                  .is_output = is_output,
                                  .rank = 2,
                                  .shape = { rows, columns },
                                  .stride = { stride, 1 } };
}

/* Two inputs, one with row padding, an empty one, and an output with row padding. */
static void shape_four(struct assay_tensors *tensors)
{
    tensors->count = 4;
    tensors->item[0] = tensor_of("a", ASSAY_E4M3, false, 3, 5, 7);
    tensors->item[1] = tensor_of("none", ASSAY_F32, false, 0, 5, 5);
    tensors->item[2] = tensor_of("sfa", ASSAY_F32, false, 3, 1, 1);
    tensors->item[3] = tensor_of("d", ASSAY_BF16, true, 3, 4, 6);
}

static void open_four(struct assay_buffers *buffers, struct assay_tensors *tensors)
{
    struct assay_message message = { "" };
    shape_four(tensors);
    ck_assert(assay_buffers_open(buffers, tensors, &message) == ASSAY_RAN);
}

static void check_filled(const void *data, int value, size_t bytes)
{
    const unsigned char *const from = data;
    for (size_t i = 0; i < bytes; i++)
        ck_assert_int_eq(from[i], value);
}

START_TEST(memory_is_aligned_poisoned_and_padded_with_nan)
{
    struct assay_buffers buffers;
    struct assay_tensors tensors;
    open_four(&buffers, &tensors);
    for (int i = 0; i < 4; i++) {
        ck_assert_ptr_nonnull(tensors.item[i].data);
        ck_assert_uint_eq((uintptr_t)tensors.item[i].data % 64, 0);
    }
    check_filled(tensors.item[0].data, 0xFF, 21);
    check_filled(tensors.item[2].data, 0xFF, 12);
    check_filled(tensors.item[3].data, 0xDB, 36);

    memset(tensors.item[0].data, 1, 21);
    memset(tensors.item[3].data, 2, 36);
    assay_buffers_poison(&tensors);
    check_filled(tensors.item[0].data, 1, 21);
    check_filled(tensors.item[3].data, 0xDB, 36);
    ck_assert(assay_buffers_are_intact(&buffers, &tensors));
    assay_buffers_close(&buffers);
    ck_assert_ptr_null(buffers.block);
}
END_TEST

static bool is_in_a_tensor(const struct assay_tensors *tensors, const unsigned char *byte)
{
    static const size_t bytes[] = { 21, 0, 12, 36 };
    for (int i = 0; i < 4; i++) {
        const unsigned char *const data = tensors->item[i].data;
        if (byte >= data && byte < data + bytes[i]) return true;
    }
    return false;
}

START_TEST(any_byte_written_outside_the_tensors_is_noticed)
{
    struct assay_buffers buffers;
    struct assay_tensors tensors;
    open_four(&buffers, &tensors);
    unsigned char *const block = buffers.block;
    size_t outside = 0;
    for (size_t i = 0; i < buffers.bytes; i++) {
        const bool is_inside = is_in_a_tensor(&tensors, block + i);
        block[i] ^= 1;
        ck_assert(assay_buffers_are_intact(&buffers, &tensors) == is_inside);
        block[i] ^= 1;
        outside += !is_inside;
    }
    ck_assert_uint_eq(outside, buffers.bytes - 21 - 12 - 36);
    ck_assert(assay_buffers_are_intact(&buffers, &tensors));
    assay_buffers_close(&buffers);
}
END_TEST

START_TEST(every_tensor_has_256_guard_bytes_on_both_sides)
{
    static const size_t bytes[] = { 21, 0, 12, 36 };
    struct assay_buffers buffers;
    struct assay_tensors tensors;
    open_four(&buffers, &tensors);
    for (int i = 0; i < 4; i++) {
        unsigned char *const data = tensors.item[i].data;
        unsigned char *const farthest[] = { data - 256, data - 1, data + bytes[i],
                                            data + bytes[i] + 255 };
        for (int j = 0; j < 4; j++) {
            ck_assert(farthest[j] >= (unsigned char *)buffers.block);
            ck_assert(farthest[j] < (unsigned char *)buffers.block + buffers.bytes);
            *farthest[j] = 0;
            ck_assert(!assay_buffers_are_intact(&buffers, &tensors));
            *farthest[j] = ASSAY_BUFFER_GUARD;
        }
    }
    assay_buffers_close(&buffers);
}
END_TEST

START_TEST(tensors_that_have_memory_keep_it)
{
    static unsigned char own[21];
    struct assay_buffers buffers;
    struct assay_tensors tensors;
    struct assay_message message;
    shape_four(&tensors);
    tensors.item[0].data = own;
    ck_assert(assay_buffers_open(&buffers, &tensors, &message) == ASSAY_RAN);
    ck_assert_ptr_eq(tensors.item[0].data, own);
    check_filled(own, 0, sizeof own);
    own[20] = 1;
    ck_assert(assay_buffers_are_intact(&buffers, &tensors));
    ((unsigned char *)tensors.item[3].data)[36] = 0;
    ck_assert(!assay_buffers_are_intact(&buffers, &tensors));
    assay_buffers_close(&buffers);
}
END_TEST

static void check_too_large(int64_t rows, int64_t columns, int64_t stride,
                            enum assay_status status, const char *word)
{
    struct assay_buffers buffers;
    struct assay_tensors tensors = { .count = 2 };
    struct assay_message message = { "" };
    tensors.item[0] = tensor_of("a", ASSAY_E4M3, false, 3, 5, 7);
    tensors.item[1] = tensor_of("huge", ASSAY_F32, true, rows, columns, stride);
    ck_assert(assay_buffers_open(&buffers, &tensors, &message) == status);
    ck_assert_msg(strstr(message.text, word) != NULL, "%s", message.text);
    ck_assert_ptr_null(tensors.item[0].data);
    assay_buffers_close(&buffers);
}

START_TEST(too_much_memory_is_refused_before_it_is_taken)
{
    check_too_large((int64_t)1 << 19, (int64_t)1 << 19, (int64_t)1 << 19, ASSAY_REFUSED,
                    "limit of 1099511627776");
    check_too_large((int64_t)1 << 31, (int64_t)1 << 31, (int64_t)1 << 31, ASSAY_REFUSED,
                    "huge");
    check_too_large((int64_t)1 << 62, (int64_t)1 << 62, (int64_t)1 << 62, ASSAY_REFUSED,
                    "huge");
    check_too_large(2, 1, (int64_t)1 << 61, ASSAY_REFUSED, "huge");
    check_too_large(1, 1, INT64_MAX / 4, ASSAY_REFUSED, "huge");
    const int64_t physical =
        (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
    const bool fits_limit = physical < (int64_t)1 << 40;
    check_too_large(1, physical / 4, physical / 4,
                    fits_limit ? ASSAY_OUT_OF_MEMORY : ASSAY_REFUSED,
                    fits_limit ? "this machine has" : "limit");
}
END_TEST

START_TEST(hash_is_xxh3_of_the_documented_bytes)
{
    static const unsigned char expected[] = {
        'a', 0,   'e', '4', 'm', '3', 0,  2,  0,  0,  0,  0,  0,  0,  0,   3,
        0,   0,   0,   0,   0,   0,   0,  5,  0,  0,  0,  0,  0,  0,  0,   10,
        11,  12,  13,  14,  20,  21,  22, 23, 24, 30, 31, 32, 33, 34, 'n', 'o',
        'n', 'e', 0,   'f', '3', '2', 0,  2,  0,  0,  0,  0,  0,  0,  0,   0,
        0,   0,   0,   0,   0,   0,   0,  5,  0,  0,  0,  0,  0,  0,  0,   's',
        'f', 'a', 0,   'f', '3', '2', 0,  2,  0,  0,  0,  0,  0,  0,  0,   3,
        0,   0,   0,   0,   0,   0,   0,  1,  0,  0,  0,  0,  0,  0,  0,   0,
        0,   128, 63,  0,   0,   0,   64, 0,  0,  64, 64,
    };
    static const float scales[] = { 1, 2, 3 };
    struct assay_buffers buffers;
    struct assay_tensors tensors;
    open_four(&buffers, &tensors);
    for (int64_t i = 0; i < 15; i++)
        assay_tensor_set_bits(&tensors.item[0], i, (uint32_t)(10 * (i / 5 + 1) + i % 5));
    memcpy(tensors.item[2].data, scales, sizeof scales);
    const uint64_t hash = assay_inputs_hash(&tensors);
    ck_assert_uint_eq(hash, XXH3_64bits(expected, sizeof expected));

    memset((unsigned char *)tensors.item[0].data + 5, 0, 2);
    memset(tensors.item[3].data, 0, 36);
    ck_assert_uint_eq(assay_inputs_hash(&tensors), hash);
    assay_tensor_set_bits(&tensors.item[0], 14, 35);
    ck_assert_uint_ne(assay_inputs_hash(&tensors), hash);
    assay_buffers_close(&buffers);
}
END_TEST

START_TEST(hash_reads_scalars_and_strided_columns_in_logical_order)
{
    static const unsigned char expected[] = { 'x', 0, 'u', '8', 0, 1,   0,   0, 0, 0,
                                              0,   0, 0,   2,   0, 0,   0,   0, 0, 0,
                                              0,   7, 9,   'y', 0, 'u', '8', 0, 0, 0,
                                              0,   0, 0,   0,   0, 0,   5 };
    static unsigned char columns[] = { 7, 8, 9, 8 }, scalar[] = { 5 };
    const struct assay_tensors tensors = {
        .count = 2,
        .item = { { .name = "x",
                    .format = ASSAY_U8,
                    .rank = 1,
                    .shape = { 2 },
                    .stride = { 2 },
                    .data = columns },
                  { .name = "y", .format = ASSAY_U8, .data = scalar } }
    };
    ck_assert_uint_eq(assay_inputs_hash(&tensors),
                      XXH3_64bits(expected, sizeof expected));
}
END_TEST

/* Columns before rows before pages, with room between; little-endian as everywhere. */
START_TEST(bits_of_a_strided_tensor_lie_where_the_indices_say)
{
    enum { PAGES = 2, ROWS = 3, COLUMNS = 5, PLACES = 64, GUARD = 0xA5 };
    static const enum assay_format formats[] = { ASSAY_E4M3, ASSAY_BF16, ASSAY_F32 };
    static const size_t sizes[] = { 1, 2, 4 };
    for (int f = 0; f < 3; f++) {
        unsigned char memory[4 * PLACES], expected[4 * PLACES];
        memset(memory, GUARD, sizeof(memory));
        memset(expected, GUARD, sizeof(expected));
        const struct assay_tensor tensor = { .format = formats[f],
                                             .rank = 3,
                                             .shape = { PAGES, ROWS, COLUMNS },
                                             .stride = { 31, 1, 5 },
                                             .data = memory };
        for (int i = 0; i < PAGES * ROWS * COLUMNS; i++) {
            const int page = i / 15, row = i / 5 % 3, column = i % 5;
            const size_t place = (size_t)(31 * page + row + 5 * column);
            const unsigned char bytes[] = { (unsigned char)(200 + i), 0xB2, 0xC3, 0xD4 };
            const uint32_t bits = 0xD4C3B200u | bytes[0];
            assay_tensor_set_bits(&tensor, i, bits);
            memcpy(expected + place * sizes[f], bytes, sizes[f]);
            ck_assert_int_eq(memcmp(memory, expected, sizeof(memory)), 0);
            ck_assert_int_eq(assay_tensor_offset(&tensor, i), (int64_t)place);
            ck_assert_uint_eq(assay_tensor_bits(&tensor, i),
                              bits & (uint32_t)(UINT64_MAX >> (64 - 8 * sizes[f])));
        }
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        memory_is_aligned_poisoned_and_padded_with_nan,
        any_byte_written_outside_the_tensors_is_noticed,
        every_tensor_has_256_guard_bytes_on_both_sides,
        tensors_that_have_memory_keep_it,
        too_much_memory_is_refused_before_it_is_taken,
        hash_is_xxh3_of_the_documented_bytes,
        hash_reads_scalars_and_strided_columns_in_logical_order,
        bits_of_a_strided_tensor_lie_where_the_indices_say,
        NULL,
    };
    return run_tests("buffers", tests);
}
