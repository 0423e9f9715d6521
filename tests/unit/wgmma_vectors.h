/* SPDX-License-Identifier: MIT */
/* The wgmma inputs and outputs recorded on an H200 (corpus/units/README.md), by groups of
 * four tensors. */
#ifndef ASSAY_TESTS_UNIT_WGMMA_VECTORS_H
#define ASSAY_TESTS_UNIT_WGMMA_VECTORS_H

#include "ref/unit/dot_add.h"
#include "tests/harness.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>

enum { ROWS = 64, COLUMNS = 8, STEP_BYTES = 32, OUTPUTS = 178176, TENSORS = 160 };

/* --- the file --------------------------------------------------------------------- */

struct vectors {
    unsigned char *content;
    json_t *header;
    const unsigned char *data;
    size_t data_bytes;
};

static inline void *read_file(const char *path, size_t *bytes)
{
    FILE *const file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s can't be opened", path);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    *bytes = (size_t)ftell(file);
    rewind(file);
    void *const content = malloc(*bytes);
    ck_assert_uint_eq(fread(content, 1, *bytes, file), *bytes);
    fclose(file);
    return content;
}

static inline struct vectors open_vectors(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/units/wgmma_vectors.safetensors.zst",
             corpus_folder());
    size_t packed_bytes;
    void *const packed = read_file(path, &packed_bytes);
    const size_t bytes = (size_t)ZSTD_getFrameContentSize(packed, packed_bytes);
    ck_assert_msg(bytes > 8 && bytes < 16 << 20, "%s: no zstd file of this size", path);

    struct vectors vectors = { .content = malloc(bytes) };
    ck_assert_uint_eq(ZSTD_decompress(vectors.content, bytes, packed, packed_bytes),
                      bytes);
    free(packed);
    uint64_t header_bytes;
    memcpy(&header_bytes, vectors.content, 8);
    ck_assert_uint_le(header_bytes, bytes - 8);
    vectors.header = json_loadb((const char *)vectors.content + 8, (size_t)header_bytes,
                                JSON_REJECT_DUPLICATES, NULL);
    ck_assert_ptr_nonnull(vectors.header);
    vectors.data = vectors.content + 8 + header_bytes;
    vectors.data_bytes = bytes - 8 - (size_t)header_bytes;
    return vectors;
}

static inline void close_vectors(struct vectors *vectors)
{
    json_decref(vectors->header);
    free(vectors->content);
}

static inline int64_t integer_at(const json_t *array, size_t index)
{
    return json_integer_value(json_array_get(array, index));
}

/* Data of the tensor @base.@part; *blocks is its first extent. */
static inline const unsigned char *find_tensor(const struct vectors *vectors,
                                               const char *base, char part,
                                               int64_t block_bytes, int64_t *blocks)
{
    char name[80];
    snprintf(name, sizeof name, "%s.%c", base, part);
    const json_t *const entry = json_object_get(vectors->header, name);
    ck_assert_msg(entry != NULL, "%s is missing", name);
    const json_t *const offsets = json_object_get(entry, "data_offsets");
    const int64_t begin = integer_at(offsets, 0), end = integer_at(offsets, 1);
    *blocks = integer_at(json_object_get(entry, "shape"), 0);
    ck_assert_msg(0 <= begin && end <= (int64_t)vectors->data_bytes && *blocks > 0 &&
                      end - begin == *blocks * block_bytes,
                  "%s has an unexpected size", name);
    return vectors->data + begin;
}

/* --- one group of tensors: blocks of 64 by 8 outputs ------------------------------- */

struct group {
    char base[64]; /* "e4m3.e5m2_mode2_steps1" */
    struct assay_dot_add profile;
    enum assay_format format_a, format_b;
    int steps;
    int64_t blocks;
    const unsigned char *a, *b, *c, *d;
};

static inline void open_group(struct group *group, const struct vectors *vectors,
                              const char *name)
{
    char format_a[8], format_b[8], profile[16] = "hopper-fp8";
    memcpy(group->base, name, strlen(name) - 2);
    group->base[strlen(name) - 2] = '\0';
    if (sscanf(name, "%7[a-z0-9].%7[a-z0-9]_mode%*d_steps%d", format_a, format_b,
               &group->steps) != 3) {
        ck_assert_int_eq(
            sscanf(name, "%7[a-z0-9]_mode%*d_steps%d", format_a, &group->steps), 2);
        memcpy(format_b, format_a, sizeof format_b);
        snprintf(profile, sizeof profile, "hopper-%s", format_a);
    }
    group->format_a = assay_format_find(format_a);
    group->format_b = assay_format_find(format_b);
    group->profile = *assay_dot_add_find(profile);

    int64_t blocks[4];
    group->a = find_tensor(vectors, group->base, 'a', group->steps * ROWS * STEP_BYTES,
                           &blocks[0]);
    group->b = find_tensor(vectors, group->base, 'b', group->steps * COLUMNS * STEP_BYTES,
                           &blocks[1]);
    group->c = find_tensor(vectors, group->base, 'c', ROWS * COLUMNS * 4, &blocks[2]);
    group->d = find_tensor(vectors, group->base, 'd', ROWS * COLUMNS * 4, &blocks[3]);
    for (int i = 1; i < 4; i++)
        ck_assert_int_eq(blocks[i], blocks[0]);
    group->blocks = blocks[0];
}

static inline uint32_t word_at(const unsigned char *words, int64_t index)
{
    uint32_t word;
    memcpy(&word, words + index * 4, sizeof word);
    return word;
}

static inline int is_result(const char *name)
{
    return strcmp(name + strlen(name) - 2, ".d") == 0;
}

#endif
