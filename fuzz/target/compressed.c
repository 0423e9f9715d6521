/* SPDX-License-Identifier: MIT */
/* Fuzzing target: a safetensors file under zstd, whose name has to say so. */
#include "fuzz/target/input.h"
#include "verify/data/safetensors.h"

static char folder[] = "/tmp/assay-fuzz-XXXXXX";
static char path[sizeof(folder) + 32];

static void remove_folder(void)
{
    unlink(path);
    rmdir(folder);
}

/* A name with that ending for the file in memory. */
static const char *named(const char *target)
{
    if (path[0]) return path;
    const char *const made = mkdtemp(folder);
    assert(made);
    snprintf(path, sizeof(path), "%s/input.safetensors.zst", folder);
    atexit(remove_folder);
    const int result = symlink(target, path);
    assert(result == 0);
    return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct assay_safetensors file;
    struct assay_message message = { "" };
    const enum assay_status status =
        assay_safetensors_read(named(input_file(data, size)), &file, &message);
    check_answer(status, &message);
    for (int i = 0; status == ASSAY_RAN && i < file.count; i++)
        touch(file.entry[i].data, (size_t)file.entry[i].bytes);
    assay_safetensors_close(&file);
    return 0;
}
