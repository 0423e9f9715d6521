/* SPDX-License-Identifier: MIT */
#include "verify/worker/arena.h"

#include "verify/data/buffers.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t rounded_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* Places all tensors of one direction from @end on, each with a guard behind it; the data
 * pointers hold offsets until there is memory. Returns the new end. */
static size_t place_all(struct assay_arena *arena, const struct assay_tensors *tensors,
                        bool is_output, size_t end, size_t start[ASSAY_MAX_TENSORS])
{
    end += ASSAY_BUFFER_GUARD_BYTES;
    for (int i = 0; i < tensors->count; i++) {
        if (tensors->item[i].is_output != is_output) continue;
        const int place = arena->tensors.count++;
        arena->place[i] = place;
        arena->tensors.item[place] = tensors->item[i];
        start[place] = rounded_up(end, ASSAY_BUFFER_ALIGNMENT);
        end = start[place] + (size_t)assay_tensor_bytes(&tensors->item[i]) +
              ASSAY_BUFFER_GUARD_BYTES;
    }
    return end;
}

/* A file of that size which can neither shrink nor grow, and whose pages are there. */
static bool open_sealed(struct assay_arena *arena)
{
    arena->fd = memfd_create("assay-case", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (arena->fd < 0 || fallocate(arena->fd, 0, 0, (off_t)arena->bytes) != 0 ||
        fcntl(arena->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return false;
    void *const memory =
        mmap(NULL, arena->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena->fd, 0);
    if (memory == MAP_FAILED) return false;
    arena->memory = memory;
    return true;
}

enum assay_status assay_arena_open(struct assay_arena *arena,
                                   const struct assay_tensors *tensors,
                                   struct assay_message *message)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t start[ASSAY_MAX_TENSORS];
    *arena = (struct assay_arena){ .fd = -1 };
    arena->input_bytes = rounded_up(place_all(arena, tensors, false, 0, start), page);
    arena->bytes =
        rounded_up(place_all(arena, tensors, true, arena->input_bytes, start), page);
    if (!open_sealed(arena))
        return assay_fail(message, ASSAY_OUT_OF_MEMORY,
                          "no shared memory for the %zu bytes of a case: %s",
                          arena->bytes, strerror(errno));
    memset(arena->memory, ASSAY_BUFFER_GUARD, arena->bytes);
    for (int i = 0; i < tensors->count; i++) {
        struct assay_tensor *const tensor = &arena->tensors.item[arena->place[i]];
        const size_t bytes = (size_t)assay_tensor_bytes(tensor);
        tensor->data = (char *)arena->memory + start[arena->place[i]];
        if (bytes > 0) memcpy(tensor->data, tensors->item[i].data, bytes);
    }
    return ASSAY_RAN;
}

size_t assay_arena_offset(const struct assay_arena *arena, int index)
{
    return (size_t)((char *)arena->tensors.item[arena->place[index]].data -
                    (char *)arena->memory);
}

bool assay_arena_is_intact(const struct assay_arena *arena)
{
    const struct assay_buffers buffers = { .block = arena->memory,
                                           .bytes = arena->bytes };
    return assay_buffers_are_intact(&buffers, &arena->tensors);
}

void assay_arena_fetch(const struct assay_arena *arena,
                       const struct assay_tensors *tensors)
{
    for (int i = 0; i < tensors->count; i++) {
        const struct assay_tensor *const to = &tensors->item[i];
        const size_t bytes = (size_t)assay_tensor_bytes(to);
        if (to->is_output && bytes > 0)
            memcpy(to->data, arena->tensors.item[arena->place[i]].data, bytes);
    }
}

void assay_arena_close(struct assay_arena *arena)
{
    if (arena->memory) munmap(arena->memory, arena->bytes);
    if (arena->fd >= 0) close(arena->fd);
    *arena = (struct assay_arena){ .fd = -1 };
}

void *assay_arena_map(int fd, size_t bytes, size_t input_bytes)
{
    void *const memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) return NULL;
    if (mprotect(memory, input_bytes, PROT_READ) == 0) return memory;
    munmap(memory, bytes);
    return NULL;
}
