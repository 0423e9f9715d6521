/* SPDX-License-Identifier: MIT */
/* Reader and writer of .safetensors and .safetensors.zst: 8 bytes of little-endian header
 * length, a JSON header, then the data. The reader is strict: no gap, no overlap, nothing
 * behind the last tensor, no unknown dtype, no duplicate key, sizes checked for overflow;
 * on any file it gives a sentence, never a crash. */
#ifndef ASSAY_VERIFY_DATA_SAFETENSORS_H
#define ASSAY_VERIFY_DATA_SAFETENSORS_H

#include "ref/tensor.h"
#include "verify/case/message.h"

struct assay_safetensors_entry {
    char *name;
    enum assay_format format; /* F8_E4M3, F8_E5M2, F8_E8M0, BF16, F16, F32, U8, I32 */
    int rank;
    int64_t shape[ASSAY_MAX_RANK];
    const void *data; /* inside the file's memory; unaligned */
    int64_t bytes;
};

struct assay_safetensors_metadata {
    char *key, *value;
};

struct assay_safetensors {
    int count; /* entries ascend by position in the file */
    struct assay_safetensors_entry *entry;
    int metadata_count;
    struct assay_safetensors_metadata *metadata;
    void *memory;
    size_t memory_bytes;
};

/* The dtype that stores @format: "F8_E4M3", "F32" for tf32 too, "U8" for e2m1 (one code a
 * byte); NULL for ASSAY_FORMAT_NONE. */
const char *assay_safetensors_dtype(enum assay_format format);

/* The end of @path, as much as a sentence has room for beside the reason. */
const char *assay_shown_path(const char *path);

/* Reads a whole file; the name's ending tells about zstd, whose content is limited to
 * 1 GiB. ASSAY_REFUSED when there is no such file or it is not right, ASSAY_FAILED when
 * reading it fails. A .pt or .npz file gets a sentence of its own. On failure @file holds
 * nothing and may be closed. */
enum assay_status assay_safetensors_read(const char *path, struct assay_safetensors *file,
                                         struct assay_message *message);

/* The same for content in memory, which is copied; @name appears in messages. */
enum assay_status assay_safetensors_parse(const void *content, size_t bytes,
                                          const char *name,
                                          struct assay_safetensors *file,
                                          struct assay_message *message);

/* The same for malloc'ed @memory, which belongs to @file from now on (and is freed on
 * failure). */
enum assay_status assay_safetensors_adopt(void *memory, size_t bytes, const char *name,
                                          struct assay_safetensors *file,
                                          struct assay_message *message);

void assay_safetensors_close(struct assay_safetensors *file);

const struct assay_safetensors_entry *
assay_safetensors_find(const struct assay_safetensors *file, const char *name);

/* The metadata value of @key; NULL if there is none. */
const char *assay_safetensors_metadata(const struct assay_safetensors *file,
                                       const char *key);

/* Writes to a temporary name beside @path, then renames: a file is there whole or not at
 * all. Header padded to 8 bytes, tensors by falling element size and then by name, zstd
 * level 19 when the name ends in .zst. Names and metadata that are not UTF-8, equal names
 * and keys are refused. */
enum assay_status
assay_safetensors_write(const char *path, const struct assay_safetensors_entry *entry,
                        int count, const struct assay_safetensors_metadata *metadata,
                        int metadata_count, struct assay_message *message);

#endif
