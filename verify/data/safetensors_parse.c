/* SPDX-License-Identifier: MIT */
/* Strict parser of safetensors content. Rules: safetensors/src/tensor.rs at 000a16f. */
#include "verify/data/safetensors.h"

#include <endian.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, HEADER_LIMIT = 100000000, DTYPE_LIST_SIZE = 96 };

struct parser {
    const char *name;
    const unsigned char *content; /* of the whole file */
    size_t bytes;
    const unsigned char *data; /* behind the header */
    int64_t data_bytes;
    struct assay_message *message;
};

static enum assay_status no_memory(const struct parser *p)
{
    return assay_fail(p->message, ASSAY_OUT_OF_MEMORY,
                      "%s: no memory for its header of %zu bytes", p->name,
                      (size_t)(p->data - p->content));
}

static enum assay_status refuse_length(const struct parser *p, uint64_t length)
{
    if (memcmp(p->content, "PK\3\4", 4) == 0 || memcmp(p->content, "PK\5\6", 4) == 0)
        return assay_fail(p->message, ASSAY_REFUSED,
                          "%s: this is a zip archive (.pt or .npz): convert .npz with "
                          "tools/import_npz.py, write .pt again with "
                          "safetensors.torch.save_file",
                          p->name);
    if (memcmp(p->content, "\x93NUMPY", 6) == 0)
        return assay_fail(p->message, ASSAY_REFUSED,
                          "%s: this is a NumPy .npy file: write it again with "
                          "safetensors.numpy.save_file",
                          p->name);
    if (memcmp(p->content, "\x28\xb5\x2f\xfd", 4) == 0)
        return assay_fail(p->message, ASSAY_REFUSED,
                          "%s: this is zstd-compressed: its name must end in .zst",
                          p->name);
    if (length > HEADER_LIMIT)
        return assay_fail(p->message, ASSAY_REFUSED,
                          "%s: header length %" PRIu64 " is above the limit of %d bytes: "
                          "not a safetensors file",
                          p->name, length, HEADER_LIMIT);
    return assay_fail(p->message, ASSAY_REFUSED,
                      "%s: header length %" PRIu64 " is more than the %zu bytes that "
                      "follow it: the file is truncated",
                      p->name, length, p->bytes - LENGTH_BYTES);
}

static enum assay_status load_header(struct parser *p, json_t **root)
{
    if (p->bytes < LENGTH_BYTES)
        return assay_fail(p->message, ASSAY_REFUSED,
                          p->bytes == 0
                              ? "%s: the file is empty (%zu bytes): a safetensors file "
                                "begins with 8 bytes of header length"
                              : "%s: the file is truncated to %zu bytes: a safetensors "
                                "file begins with 8 bytes of header length",
                          p->name, p->bytes);
    uint64_t length;
    memcpy(&length, p->content, sizeof length);
    length = le64toh(length);
    if (length > HEADER_LIMIT || length > p->bytes - LENGTH_BYTES)
        return refuse_length(p, length);
    const char *const text = (const char *)p->content + LENGTH_BYTES;
    p->data = p->content + LENGTH_BYTES + length;
    p->data_bytes = (int64_t)(p->bytes - LENGTH_BYTES - length);
    if (length == 0 || text[0] != '{')
        return assay_fail(p->message, ASSAY_REFUSED,
                          "%s: the header must be a JSON object, beginning with '{'",
                          p->name);
    json_error_t error;
    *root = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &error);
    if (*root) return ASSAY_RAN;
    if (json_error_code(&error) == json_error_out_of_memory) return no_memory(p);
    return assay_fail(p->message, ASSAY_REFUSED,
                      "%s: the header must be JSON in UTF-8, but at byte %d: %s", p->name,
                      error.position, error.text);
}

static enum assay_status parse_metadata(const struct parser *p, json_t *object,
                                        struct assay_safetensors *file)
{
    if (!json_is_object(object))
        return assay_fail(p->message, ASSAY_REFUSED,
                          "%s: __metadata__ must be an object of strings", p->name);
    file->metadata = calloc(json_object_size(object) + 1, sizeof *file->metadata);
    if (!file->metadata) return no_memory(p);
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (!json_is_string(value))
            return assay_fail(p->message, ASSAY_REFUSED,
                              "%s: __metadata__ must hold strings only, but the value of "
                              "'%.80s' is none",
                              p->name, key);
        struct assay_safetensors_metadata *const row =
            &file->metadata[file->metadata_count++];
        row->key = strdup(key);
        row->value = strdup(json_string_value(value));
        if (!row->key || !row->value) return no_memory(p);
    }
    return ASSAY_RAN;
}

static enum assay_status check_keys(const struct parser *p, const char *name,
                                    json_t *object)
{
    static const char *const known[] = { "dtype", "shape", "data_offsets" };
    if (!json_is_object(object))
        return assay_fail(p->message, ASSAY_REFUSED,
                          "%s: tensor '%.80s' must be an object with dtype, shape and "
                          "data_offsets",
                          p->name, name);
    for (size_t i = 0; i < 3; i++)
        if (!json_object_get(object, known[i]))
            return assay_fail(p->message, ASSAY_REFUSED,
                              "%s: tensor '%.80s' has no %s: it must have dtype, shape "
                              "and data_offsets",
                              p->name, name, known[i]);
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        bool is_known = false;
        for (size_t i = 0; i < 3; i++)
            is_known = is_known || strcmp(key, known[i]) == 0;
        if (!is_known)
            return assay_fail(p->message, ASSAY_REFUSED,
                              "%s: tensor '%.80s' has an extra key '%.40s': it must have "
                              "dtype, shape and data_offsets only",
                              p->name, name, key);
    }
    return ASSAY_RAN;
}

/* From the last format down: U8 and F32 are found before e2m1 and tf32, which they also
 * store. */
static enum assay_format find_dtype(const char *dtype)
{
    for (int i = ASSAY_FORMAT_COUNT - 1; i > ASSAY_FORMAT_NONE; i--)
        if (strcmp(assay_safetensors_dtype((enum assay_format)i), dtype) == 0)
            return (enum assay_format)i;
    return ASSAY_FORMAT_NONE;
}

static void list_dtypes(char *list)
{
    list[0] = '\0';
    for (int i = ASSAY_FORMAT_NONE + 1; i < ASSAY_FORMAT_COUNT; i++) {
        const char *const dtype = assay_safetensors_dtype((enum assay_format)i);
        if ((int)find_dtype(dtype) != i) continue;
        if (list[0]) strncat(list, ", ", DTYPE_LIST_SIZE - strlen(list) - 1);
        strncat(list, dtype, DTYPE_LIST_SIZE - strlen(list) - 1);
    }
}

static enum assay_status parse_dtype(const struct parser *p, json_t *value,
                                     struct assay_safetensors_entry *entry)
{
    const char *const dtype = json_string_value(value);
    entry->format = dtype ? find_dtype(dtype) : ASSAY_FORMAT_NONE;
    if (entry->format != ASSAY_FORMAT_NONE) return ASSAY_RAN;
    char known[DTYPE_LIST_SIZE];
    list_dtypes(known);
    return assay_fail(p->message, ASSAY_REFUSED,
                      "%s: tensor '%.80s' has the unknown dtype '%.40s': known are %s",
                      p->name, entry->name, dtype ? dtype : "(not a string)", known);
}

static bool get_size(json_t *array, size_t index, int64_t *size)
{
    json_t *const value = json_array_get(array, index);
    *size = json_integer_value(value);
    return json_is_integer(value) && *size >= 0;
}

static enum assay_status parse_shape(const struct parser *p, json_t *shape,
                                     struct assay_safetensors_entry *entry)
{
    if (!json_is_array(shape))
        return assay_fail(p->message, ASSAY_REFUSED,
                          "%s: the shape of tensor '%.80s' must be an array of sizes",
                          p->name, entry->name);
    if (json_array_size(shape) > ASSAY_MAX_RANK)
        return assay_fail(p->message, ASSAY_REFUSED,
                          "%s: tensor '%.80s' has rank %zu: at most %d is possible",
                          p->name, entry->name, json_array_size(shape), ASSAY_MAX_RANK);
    entry->rank = (int)json_array_size(shape);
    for (int i = 0; i < entry->rank; i++)
        if (!get_size(shape, (size_t)i, &entry->shape[i]))
            return assay_fail(p->message, ASSAY_REFUSED,
                              "%s: shape[%d] of tensor '%.80s' must be a whole number, 0 "
                              "or more",
                              p->name, i, entry->name);
    return ASSAY_RAN;
}

/* Bytes that dtype and shape ask for; -1 on overflow. */
static int64_t claimed_bytes(const struct assay_safetensors_entry *entry)
{
    int64_t bytes = (int64_t)assay_format_bytes(entry->format);
    for (int i = 0; i < entry->rank; i++)
        if (__builtin_mul_overflow(bytes, entry->shape[i], &bytes)) return -1;
    return bytes;
}

static enum assay_status parse_offsets(const struct parser *p, json_t *offsets,
                                       struct assay_safetensors_entry *entry)
{
    int64_t begin, end;
    if (json_array_size(offsets) != 2 || !get_size(offsets, 0, &begin) ||
        !get_size(offsets, 1, &end))
        return assay_fail(p->message, ASSAY_REFUSED,
                          "%s: data_offsets of tensor '%.80s' must be two whole numbers, "
                          "0 or more",
                          p->name, entry->name);
    if (begin > end)
        return assay_fail(p->message, ASSAY_REFUSED,
                          "%s: tensor '%.80s' begins at %" PRId64 " and ends before, at "
                          "%" PRId64,
                          p->name, entry->name, begin, end);
    if (end > p->data_bytes)
        return assay_fail(p->message, ASSAY_REFUSED,
                          "%s: tensor '%.80s' ends at %" PRId64 ", but there are only "
                          "%" PRId64 " bytes of data: the file is truncated",
                          p->name, entry->name, end, p->data_bytes);
    const int64_t claimed = claimed_bytes(entry);
    if (claimed < 0)
        return assay_fail(p->message, ASSAY_REFUSED,
                          "%s: the shape of tensor '%.80s' overflows 64 bits", p->name,
                          entry->name);
    if (claimed != end - begin)
        return assay_fail(p->message, ASSAY_REFUSED,
                          "%s: data_offsets of tensor '%.80s' span %" PRId64 " bytes, "
                          "but its dtype and shape take %" PRId64,
                          p->name, entry->name, end - begin, claimed);
    entry->data = p->data + begin;
    entry->bytes = claimed;
    return ASSAY_RAN;
}

static enum assay_status parse_entry(const struct parser *p, const char *name,
                                     json_t *object,
                                     struct assay_safetensors_entry *entry)
{
    enum assay_status status = check_keys(p, name, object);
    if (status != ASSAY_RAN) return status;
    entry->name = strdup(name);
    if (!entry->name) return no_memory(p);
    status = parse_dtype(p, json_object_get(object, "dtype"), entry);
    if (status == ASSAY_RAN)
        status = parse_shape(p, json_object_get(object, "shape"), entry);
    if (status == ASSAY_RAN)
        status = parse_offsets(p, json_object_get(object, "data_offsets"), entry);
    return status;
}

static int compare_position(const void *left, const void *right)
{
    const struct assay_safetensors_entry *const a = left, *const b = right;
    const uintptr_t start_a = (uintptr_t)a->data, start_b = (uintptr_t)b->data;
    if (start_a != start_b) return start_a < start_b ? -1 : 1;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1;
    return strcmp(a->name, b->name);
}

static enum assay_status check_coverage(const struct parser *p,
                                        const struct assay_safetensors *file)
{
    int64_t end = 0;
    for (int i = 0; i < file->count; i++) {
        const struct assay_safetensors_entry *const entry = &file->entry[i];
        const int64_t begin = (const unsigned char *)entry->data - p->data;
        if (begin > end)
            return assay_fail(p->message, ASSAY_REFUSED,
                              "%s: tensor '%.80s' begins at %" PRId64 ", leaving a gap "
                              "behind byte %" PRId64 ": tensors must be contiguous",
                              p->name, entry->name, begin, end);
        if (begin < end)
            return assay_fail(p->message, ASSAY_REFUSED,
                              "%s: tensor '%.80s' begins at %" PRId64 ", an overlap with "
                              "tensor '%.80s', which ends at %" PRId64,
                              p->name, entry->name, begin, file->entry[i - 1].name, end);
        end = begin + entry->bytes;
    }
    if (end != p->data_bytes)
        return assay_fail(p->message, ASSAY_REFUSED,
                          "%s: %" PRId64 " trailing bytes behind the last tensor: the "
                          "file must end with it",
                          p->name, p->data_bytes - end);
    return ASSAY_RAN;
}

static enum assay_status parse_root(const struct parser *p, json_t *root,
                                    struct assay_safetensors *file)
{
    file->entry = calloc(json_object_size(root) + 1, sizeof *file->entry);
    if (!file->entry) return no_memory(p);
    const char *name;
    json_t *value;
    json_object_foreach(root, name, value)
    {
        const enum assay_status status =
            strcmp(name, "__metadata__") == 0
                ? parse_metadata(p, value, file)
                : parse_entry(p, name, value, &file->entry[file->count++]);
        if (status != ASSAY_RAN) return status;
    }
    qsort(file->entry, (size_t)file->count, sizeof *file->entry, compare_position);
    return check_coverage(p, file);
}

enum assay_status assay_safetensors_adopt(void *memory, size_t bytes, const char *name,
                                          struct assay_safetensors *file,
                                          struct assay_message *message)
{
    *file = (struct assay_safetensors){ .memory = memory, .memory_bytes = bytes };
    struct parser parser = { .name = assay_shown_path(name),
                             .content = memory,
                             .bytes = bytes,
                             .data = memory,
                             .message = message };
    json_t *root = NULL;
    enum assay_status status = load_header(&parser, &root);
    if (status == ASSAY_RAN) status = parse_root(&parser, root, file);
    json_decref(root);
    if (status != ASSAY_RAN) assay_safetensors_close(file);
    return status;
}

enum assay_status assay_safetensors_parse(const void *content, size_t bytes,
                                          const char *name,
                                          struct assay_safetensors *file,
                                          struct assay_message *message)
{
    *file = (struct assay_safetensors){ 0 };
    void *const memory = malloc(bytes ? bytes : 1);
    if (!memory)
        return assay_fail(message, ASSAY_OUT_OF_MEMORY, "%s: no memory for %zu bytes",
                          assay_shown_path(name), bytes);
    if (bytes) memcpy(memory, content, bytes);
    return assay_safetensors_adopt(memory, bytes, name, file, message);
}
