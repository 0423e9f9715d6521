/* SPDX-License-Identifier: MIT */
/* The content of a safetensors file once it is in memory. */
#include "verify/data/safetensors.h"

#include <stdlib.h>
#include <string.h>

static const char *const dtype_names[ASSAY_FORMAT_COUNT] = {
    [ASSAY_E4M3] = "F8_E4M3",  [ASSAY_E5M2] = "F8_E5M2", [ASSAY_E2M1] = "U8",
    [ASSAY_UE8M0] = "F8_E8M0", [ASSAY_BF16] = "BF16",    [ASSAY_F16] = "F16",
    [ASSAY_TF32] = "F32",      [ASSAY_F32] = "F32",      [ASSAY_U8] = "U8",
    [ASSAY_I32] = "I32",
};

const char *assay_safetensors_dtype(enum assay_format format)
{
    return dtype_names[format];
}

const char *assay_shown_path(const char *path)
{
    const size_t length = strlen(path), shown = 160;
    return length > shown ? path + length - shown : path;
}

void assay_safetensors_close(struct assay_safetensors *file)
{
    for (int i = 0; i < file->count; i++)
        free(file->entry[i].name);
    for (int i = 0; i < file->metadata_count; i++) {
        free(file->metadata[i].key);
        free(file->metadata[i].value);
    }
    free(file->entry);
    free(file->metadata);
    free(file->memory);
    *file = (struct assay_safetensors){ 0 };
}

const struct assay_safetensors_entry *
assay_safetensors_find(const struct assay_safetensors *file, const char *name)
{
    for (int i = 0; i < file->count; i++)
        if (strcmp(file->entry[i].name, name) == 0) return &file->entry[i];
    return NULL;
}

const char *assay_safetensors_metadata(const struct assay_safetensors *file,
                                       const char *key)
{
    for (int i = 0; i < file->metadata_count; i++)
        if (strcmp(file->metadata[i].key, key) == 0) return file->metadata[i].value;
    return NULL;
}
