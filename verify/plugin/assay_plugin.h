/* SPDX-License-Identifier: MIT */
/* What a kernel has to offer to be tested by assay: a shared library that exports
 * assay_plugin_v1. This header needs nothing but the C library, and C++ takes it too.
 *
 *     assay verify CASE --candidate plugin:FILE.so[,option=value...]
 *
 * The library is loaded into a process of its own, which may crash, hang or run out of
 * memory without harm. Calls come from one thread, one case after the other:
 *
 *     claim, prepare, launch..., fetch, release
 *
 * Structs begin with their size, so that they can grow: a member beyond the size that
 * the other side gives is not there. */
#ifndef ASSAY_PLUGIN_H
#define ASSAY_PLUGIN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when an older plugin can no longer be called. */
#define ASSAY_PLUGIN_ABI 1u

#define ASSAY_PLUGIN_EXPORT __attribute__((visibility("default")))

/* How an element is stored. */
enum assay_plugin_format {
    ASSAY_PLUGIN_E4M3 = 1, /* e4m3fn: no infinity, NaN is 0x7F and 0xFF */
    ASSAY_PLUGIN_E5M2 = 2,
    ASSAY_PLUGIN_E2M1 = 3,  /* one code a byte, in the low four bits */
    ASSAY_PLUGIN_UE8M0 = 4, /* exponent only: 2^(code - 127), 255 is NaN */
    ASSAY_PLUGIN_BF16 = 5,
    ASSAY_PLUGIN_F16 = 6,
    ASSAY_PLUGIN_TF32 = 7, /* as f32; the low 13 bits do not count */
    ASSAY_PLUGIN_F32 = 8,
    ASSAY_PLUGIN_U8 = 9,
    ASSAY_PLUGIN_I32 = 10
};

enum { ASSAY_PLUGIN_MAX_RANK = 5 };

struct assay_plugin_tensor {
    uint32_t bytes;
    int32_t format; /* enum assay_plugin_format */
    int32_t is_output;
    int32_t rank;
    const char *name; /* upstream's: "sfa", "block_table" */
    int64_t shape[ASSAY_PLUGIN_MAX_RANK];
    int64_t stride[ASSAY_PLUGIN_MAX_RANK]; /* in elements; rows may be padded */
    /* Host memory, aligned to 64 bytes, valid from prepare to release; NULL in claim.
     * Inputs are read-only: writing to one is a crash. Outputs hold poison. The bytes
     * around every tensor are watched; the padding of input rows is NaN. */
    void *data;
};

struct assay_call {
    uint32_t bytes;
    int32_t tensor_count;
    const char *operation; /* "fp8_gemm_nt" */
    const char *case_line; /* "fp8_gemm_nt m=128 n=192 k=1024 seed=7", defaults omitted */
    const char *options;   /* what followed FILE.so, without the first comma; or "" */
    const struct assay_plugin_tensor *const *tensor; /* in the operation's order */
    /* Where one sentence goes before anything but OK is returned; valid to release. */
    char *why;
    uint64_t why_bytes;
};

/* What every function returns. */
enum assay_plugin_result {
    ASSAY_PLUGIN_OK = 0,
    ASSAY_PLUGIN_UNSUPPORTED = 1, /* this kernel does not do that case: no failure */
    ASSAY_PLUGIN_OUT_OF_MEMORY = 2,
    ASSAY_PLUGIN_DEVICE_LOST = 3,
    ASSAY_PLUGIN_FAILED = 4 /* anything else; the process is then replaced */
};

/* What the kernel promises about a case. All zero: nothing but the mathematics, so that
 * only the proven bound applies. */
struct assay_claim {
    uint32_t bytes;
    int32_t is_deterministic;   /* the same bits in every run */
    int32_t is_batch_invariant; /* a row's bits do not depend on the other rows */
    int32_t reserved;
    const char *numerics; /* a name of `assay list numerics`, with knobs if need be:
                             equal to that model bit for bit. NULL: no such promise */
};

/* Flags. */
enum {
    /* Takes its memory by malloc alone, so that a limit on address space can stop it.
     * Not for CUDA, which reserves terabytes. */
    ASSAY_PLUGIN_PLAIN_MEMORY = 1
};

struct assay_plugin {
    uint32_t abi;   /* ASSAY_PLUGIN_ABI */
    uint32_t bytes; /* sizeof(struct assay_plugin) */
    uint32_t flags;
    uint32_t reserved;
    const char *name, *version; /* for reports; version may be NULL */

    /* Whether the kernel does that case, and what it promises. Tensors have shapes, but
     * no data yet. NULL: it does everything and promises nothing. */
    int (*claim)(const struct assay_call *call, struct assay_claim *claim);
    /* Allocates, uploads, plans: what a caller does once. @call and its tensors stay as
     * they are until release. */
    int (*prepare)(const struct assay_call *call, void **run);
    /* Computes the outputs @repeats times from the same inputs: they are the same ones
     * whatever @repeats is. What is timed, and may be called again. @seconds, unless
     * NULL, gets the time all repeats took together; left alone, there is none. */
    int (*launch)(void *run, int repeats, double *seconds);
    /* Waits and writes the outputs to the tensors' memory. */
    int (*fetch)(void *run);
    /* Frees the run; called after a successful prepare, whatever happened since. */
    void (*release)(void *run);
};

/* The one symbol a plugin exports; what it points to is never freed. */
ASSAY_PLUGIN_EXPORT const struct assay_plugin *assay_plugin_v1(void);

/* The tensor of that name; NULL if there is none. */
static inline const struct assay_plugin_tensor *
assay_call_tensor(const struct assay_call *call, const char *name)
{
    for (int32_t i = 0; i < call->tensor_count; i++)
        if (strcmp(call->tensor[i]->name, name) == 0) return call->tensor[i];
    return NULL;
}

/* Copies the value of @key from "key=value" words with @separator between them: ' ' for
 * case_line, ',' for options. Returns 1, or 0 when there is no such key or its value does
 * not fit; @value is then empty. */
static inline int assay_plugin_setting(const char *words, char separator, const char *key,
                                       char *value, size_t value_bytes)
{
    const size_t key_length = strlen(key);
    value[0] = '\0';
    while (*words) {
        const char *const next = strchr(words, separator);
        const size_t length = next ? (size_t)(next - words) : strlen(words);
        if (length > key_length && strncmp(words, key, key_length) == 0 &&
            words[key_length] == '=') {
            const size_t value_length = length - key_length - 1;
            if (value_length >= value_bytes) return 0;
            memcpy(value, words + key_length + 1, value_length);
            value[value_length] = '\0';
            return 1;
        }
        words += length + (next != NULL);
    }
    return 0;
}

#ifdef __cplusplus
}
#endif

#endif
