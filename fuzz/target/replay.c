/* SPDX-License-Identifier: MIT */
/* Runs a target on kept inputs where there is no libFuzzer: replay FOLDER... */
#include "fuzz/target/input.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>

static uint8_t *read_file(int folder, const char *name, size_t *size)
{
    struct stat about;
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &about) != 0) return NULL;
    *size = (size_t)about.st_size;
    uint8_t *const data = malloc(*size ? *size : 1);
    const bool is_read = data && read(fd, data, *size) == (ssize_t)*size;
    close(fd);
    if (is_read) return data;
    free(data);
    return NULL;
}

static bool replay(int folder, const char *name)
{
    size_t size = 0;
    uint8_t *const data = read_file(folder, name, &size);
    if (!data) {
        fprintf(stderr, "%s cannot be read: %s\n", name, strerror(errno));
        return false;
    }
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return true;
}

/* Returns how many inputs there were; -1 when one could not be read. */
static int replay_folder(const char *path)
{
    int count = 0;
    DIR *const folder = opendir(path);
    if (!folder) return -1;
    for (const struct dirent *entry; count >= 0 && (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            count = replay(dirfd(folder), entry->d_name) ? count + 1 : -1;
    closedir(folder);
    return count;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const int count = replay_folder(argv[i]);
        if (count <= 0) {
            fprintf(stderr, "%s holds no inputs that can be read\n", argv[i]);
            return 1;
        }
        printf("%s: %d inputs\n", argv[i], count);
    }
    return argc > 1 ? 0 : 2;
}
