/* SPDX-License-Identifier: MIT */
/* Fuzzing target: the content of a safetensors file. */
#include "verify/data/safetensors.h"

#include "fuzz/target/input.h"

/* Tensors lie behind one another up to the end of the file, each of the size that its
 * shape says. */
static void check_tensors(const struct assay_safetensors *file, size_t size)
{
    const char *end = NULL;
    for (int i = 0; i < file->count; i++) {
        const struct assay_safetensors_entry *const entry = &file->entry[i];
        int64_t bytes = (int64_t)assay_format_bytes(entry->format);
        assert(entry->rank >= 0 && entry->rank <= ASSAY_MAX_RANK);
        for (int d = 0; d < entry->rank; d++)
            bytes *= entry->shape[d];
        assert(bytes == entry->bytes && bytes >= 0 && (size_t)bytes <= size);
        assert(!end || (const char *)entry->data == end);
        end = (const char *)entry->data + bytes;
        assert(assay_safetensors_find(file, entry->name) == entry);
        touch(entry->data, (size_t)bytes);
    }
    assert(!end || end == (const char *)file->memory + file->memory_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct assay_safetensors file;
    struct assay_message message = { "" };
    const enum assay_status status =
        assay_safetensors_parse(data, size, "input", &file, &message);
    check_answer(status, &message);
    if (status == ASSAY_RAN) {
        assert(file.memory_bytes == size);
        check_tensors(&file, size);
        for (int i = 0; i < file.metadata_count; i++)
            assert(assay_safetensors_metadata(&file, file.metadata[i].key) ==
                   file.metadata[i].value);
    }
    assay_safetensors_close(&file);
    return 0;
}
