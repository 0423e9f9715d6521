/* SPDX-License-Identifier: MIT */
/* Writes safetensors files, whole or not at all. */
#include "verify/data/safetensors.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

enum { HEADER_ALIGNMENT = 8, COMPRESSION_LEVEL = 19, CHUNK_BYTES = 1 << 17 };

/* Where content goes: a file, through a compressor if there is one. */
struct sink {
    int descriptor;
    ZSTD_CCtx *compressor;
    unsigned char *chunk; /* of CHUNK_BYTES, for the compressor */
};

static bool write_bytes(int descriptor, const unsigned char *data, size_t bytes)
{
    while (bytes) {
        const ssize_t written = write(descriptor, data, bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return false;
        data += written;
        bytes -= (size_t)written;
    }
    return true;
}

static bool compress_bytes(const struct sink *sink, const void *data, size_t bytes,
                           ZSTD_EndDirective directive)
{
    ZSTD_inBuffer input = { data, bytes, 0 };
    size_t left;
    do {
        ZSTD_outBuffer output = { sink->chunk, CHUNK_BYTES, 0 };
        left = ZSTD_compressStream2(sink->compressor, &output, &input, directive);
        if (ZSTD_isError(left)) {
            errno = ENOMEM; /* nothing else can go wrong with these parameters */
            return false;
        }
        if (!write_bytes(sink->descriptor, sink->chunk, output.pos)) return false;
    } while (input.pos < input.size || (directive == ZSTD_e_end && left));
    return true;
}

static bool sink_put(const struct sink *sink, const void *data, size_t bytes)
{
    if (sink->compressor) return compress_bytes(sink, data, bytes, ZSTD_e_continue);
    return write_bytes(sink->descriptor, data, bytes);
}

static bool sink_open_compressor(struct sink *sink, size_t content_bytes)
{
    sink->compressor = ZSTD_createCCtx();
    sink->chunk = malloc(CHUNK_BYTES);
    if (!sink->compressor || !sink->chunk) return false;
    ZSTD_CCtx_setParameter(sink->compressor, ZSTD_c_compressionLevel, COMPRESSION_LEVEL);
    ZSTD_CCtx_setParameter(sink->compressor, ZSTD_c_checksumFlag, 1);
    ZSTD_CCtx_setPledgedSrcSize(sink->compressor, content_bytes);
    return true;
}

static void sink_close_compressor(struct sink *sink)
{
    ZSTD_freeCCtx(sink->compressor);
    free(sink->chunk);
}

static int compare_entries(const void *left, const void *right)
{
    const struct assay_safetensors_entry *const a =
        *(const struct assay_safetensors_entry *const *)left;
    const struct assay_safetensors_entry *const b =
        *(const struct assay_safetensors_entry *const *)right;
    const size_t size_a = assay_format_bytes(a->format);
    const size_t size_b = assay_format_bytes(b->format);
    if (size_a != size_b) return size_a > size_b ? -1 : 1;
    return strcmp(a->name, b->name);
}

static json_t *describe(const struct assay_safetensors_entry *entry, int64_t begin)
{
    json_t *const shape = json_array();
    for (int i = 0; i < entry->rank; i++)
        json_array_append_new(shape, json_integer(entry->shape[i]));
    return json_pack(
        "{s:s, s:o, s:[I, I]}", "dtype", assay_safetensors_dtype(entry->format), "shape",
        shape, "data_offsets", (json_int_t)begin, (json_int_t)(begin + entry->bytes));
}

/* Adds and gives up @value; false if the name is there already or is not UTF-8. */
static bool add(json_t *object, const char *name, json_t *value)
{
    const bool is_new = !json_object_get(object, name);
    if (is_new) return json_object_set_new(object, name, value) == 0;
    json_decref(value);
    return false;
}

static enum assay_status fill_header(const char *path, json_t *root,
                                     const struct assay_safetensors_entry *const *sorted,
                                     int count,
                                     const struct assay_safetensors_metadata *metadata,
                                     int metadata_count, struct assay_message *message)
{
    json_t *const strings = json_object();
    json_object_set_new(root, "__metadata__", strings);
    for (int i = 0; i < metadata_count; i++)
        if (!add(strings, metadata[i].key, json_string(metadata[i].value)))
            return assay_fail(message, ASSAY_REFUSED,
                              "%s: metadata '%.80s' cannot be written: keys must "
                              "differ, keys and values must be UTF-8",
                              assay_shown_path(path), metadata[i].key);
    int64_t begin = 0;
    for (int i = 0; i < count; i++) {
        if (!add(root, sorted[i]->name, describe(sorted[i], begin)))
            return assay_fail(message, ASSAY_REFUSED,
                              "%s: tensor '%.80s' cannot be written: names must "
                              "differ and must be UTF-8",
                              assay_shown_path(path), sorted[i]->name);
        begin += sorted[i]->bytes;
    }
    if (metadata_count == 0) json_object_del(root, "__metadata__");
    return ASSAY_RAN;
}

/* The text of @root padded with spaces; NULL without memory. */
static char *header_text(const json_t *root, size_t *length)
{
    char *const text = json_dumps(root, JSON_COMPACT);
    if (!text) return NULL;
    const size_t used = strlen(text);
    *length = (used + HEADER_ALIGNMENT - 1) / HEADER_ALIGNMENT * HEADER_ALIGNMENT;
    char *const padded = realloc(text, *length + 1);
    if (!padded) {
        free(text);
        return NULL;
    }
    memset(padded + used, ' ', *length - used);
    padded[*length] = '\0';
    return padded;
}

static bool put_content(struct sink *sink, const char *header, size_t header_bytes,
                        const struct assay_safetensors_entry *const *sorted, int count)
{
    const uint64_t length = htole64(header_bytes);
    bool is_good =
        sink_put(sink, &length, sizeof length) && sink_put(sink, header, header_bytes);
    for (int i = 0; i < count && is_good; i++)
        is_good = sink_put(sink, sorted[i]->data, (size_t)sorted[i]->bytes);
    if (is_good && sink->compressor) is_good = compress_bytes(sink, NULL, 0, ZSTD_e_end);
    return is_good && fsync(sink->descriptor) == 0;
}

static bool write_file(const char *path, const char *temporary, const char *header,
                       size_t header_bytes,
                       const struct assay_safetensors_entry *const *sorted, int count)
{
    size_t bytes = sizeof(uint64_t) + header_bytes;
    for (int i = 0; i < count; i++)
        bytes += (size_t)sorted[i]->bytes;
    const size_t path_length = strlen(path);
    const bool is_compressed =
        path_length >= 4 && strcmp(path + path_length - 4, ".zst") == 0;

    struct sink sink = { 0 };
    sink.descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (sink.descriptor < 0) return false;
    bool is_good = !is_compressed || sink_open_compressor(&sink, bytes);
    is_good = is_good && put_content(&sink, header, header_bytes, sorted, count);
    int reason = errno;
    sink_close_compressor(&sink);
    if (close(sink.descriptor) != 0 && is_good) {
        is_good = false;
        reason = errno;
    }
    if (is_good && rename(temporary, path) == 0) return true;
    if (is_good) reason = errno;
    unlink(temporary);
    errno = reason;
    return false;
}

static enum assay_status write_named(const char *path, const char *header,
                                     size_t header_bytes,
                                     const struct assay_safetensors_entry *const *sorted,
                                     int count, struct assay_message *message)
{
    char *temporary;
    if (asprintf(&temporary, "%s.%ld.tmp", path, (long)getpid()) < 0)
        return assay_fail(message, ASSAY_OUT_OF_MEMORY, "%s: no memory to write it",
                          assay_shown_path(path));
    unlink(temporary); /* left by a killed process that had the same number */
    const bool is_good = write_file(path, temporary, header, header_bytes, sorted, count);
    const int reason = errno;
    free(temporary);
    if (is_good) return ASSAY_RAN;
    return assay_fail(message, reason == ENOMEM ? ASSAY_OUT_OF_MEMORY : ASSAY_FAILED,
                      "%s: cannot be written: %s", assay_shown_path(path),
                      strerror(reason));
}

enum assay_status
assay_safetensors_write(const char *path, const struct assay_safetensors_entry *entry,
                        int count, const struct assay_safetensors_metadata *metadata,
                        int metadata_count, struct assay_message *message)
{
    const struct assay_safetensors_entry **const sorted =
        calloc((size_t)count + 1, sizeof(const struct assay_safetensors_entry *));
    json_t *const root = json_object();
    char *header = NULL;
    size_t header_bytes = 0;
    enum assay_status status = ASSAY_OUT_OF_MEMORY;
    if (sorted && root) {
        for (int i = 0; i < count; i++)
            sorted[i] = &entry[i];
        qsort(sorted, (size_t)count, sizeof(const struct assay_safetensors_entry *),
              compare_entries);
        status =
            fill_header(path, root, sorted, count, metadata, metadata_count, message);
        if (status == ASSAY_RAN && !(header = header_text(root, &header_bytes)))
            status = ASSAY_OUT_OF_MEMORY;
    }
    if (status == ASSAY_OUT_OF_MEMORY)
        assay_fail(message, status, "%s: no memory for its header",
                   assay_shown_path(path));
    if (status == ASSAY_RAN)
        status = write_named(path, header, header_bytes, sorted, count, message);
    free(header);
    json_decref(root);
    free(sorted);
    return status;
}
