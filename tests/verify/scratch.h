/* SPDX-License-Identifier: MIT */
/* A folder of a test's own, and whole files in it. */
#ifndef ASSAY_TESTS_VERIFY_SCRATCH_H
#define ASSAY_TESTS_VERIFY_SCRATCH_H

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct scratch {
    char folder[64];
    char path[512]; /* of the file named last */
};

static inline void scratch_open(struct scratch *scratch)
{
    strcpy(scratch->folder, "/tmp/assay-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scratch->folder));
}

static inline const char *scratch_name(struct scratch *scratch, const char *file)
{
    snprintf(scratch->path, sizeof scratch->path, "%s/%s", scratch->folder, file);
    return scratch->path;
}

static inline const char *scratch_put(struct scratch *scratch, const char *file,
                                      const void *content, size_t bytes)
{
    FILE *const stream = fopen(scratch_name(scratch, file), "wb");
    ck_assert_ptr_nonnull(stream);
    ck_assert_uint_eq(fwrite(content, 1, bytes, stream), bytes);
    ck_assert_int_eq(fclose(stream), 0);
    return scratch->path;
}

/* The content of a file, which the caller frees. */
static inline unsigned char *scratch_get(const char *path, size_t *bytes)
{
    FILE *const stream = fopen(path, "rb");
    ck_assert_msg(stream != NULL, "cannot open %s", path);
    struct stat information;
    ck_assert_int_eq(fstat(fileno(stream), &information), 0);
    *bytes = (size_t)information.st_size;
    unsigned char *const content = malloc(*bytes + 1);
    ck_assert_uint_eq(fread(content, 1, *bytes, stream), *bytes);
    fclose(stream);
    return content;
}

/* Files in the folder, "." and ".." not counted. */
static inline int scratch_count(const struct scratch *scratch)
{
    DIR *const folder = opendir(scratch->folder);
    ck_assert_ptr_nonnull(folder);
    int count = 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count - 2;
}

/* Removes the folder and the files in it. */
static inline void scratch_close(struct scratch *scratch)
{
    DIR *const folder = opendir(scratch->folder);
    ck_assert_ptr_nonnull(folder);
    for (const struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.') continue;
        if (remove(scratch_name(scratch, entry->d_name)) != 0)
            ck_abort_msg("cannot remove %s", scratch->path);
    }
    closedir(folder);
    ck_assert_int_eq(rmdir(scratch->folder), 0);
}

#endif
