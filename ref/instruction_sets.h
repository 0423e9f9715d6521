/* SPDX-License-Identifier: MIT */
/* What depends on the processor, and nothing but speed may: what it can do, and loops
 * that the compiler translates once for each generation of processors, of which the
 * loader picks one. No operation in them is fused or reordered. */
#ifndef ASSAY_REF_INSTRUCTION_SETS_H
#define ASSAY_REF_INSTRUCTION_SETS_H

#include <stdbool.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  #define ASSAY_EACH_INSTRUCTION_SET                                                     \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
  #define ASSAY_EACH_INSTRUCTION_SET
#endif

/* AVX-512 F, kept over task switches by the operating system. */
static inline bool assay_has_avx512(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx512f") != 0;
#else
    return false;
#endif
}

#endif
