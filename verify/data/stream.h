/* SPDX-License-Identifier: MIT */
/* Random streams: PCG32 (O'Neill 2014, XSH-RR 64/32), one a logical row, so that an
 * element depends on data version, seed, tensor, kind and logical coordinates only. The
 * same values on every machine: integers, and doubles made of them by one rounding. */
#ifndef ASSAY_VERIFY_DATA_STREAM_H
#define ASSAY_VERIFY_DATA_STREAM_H

#include <stdint.h>

/* Part of every element; raised when generated values change. */
enum { ASSAY_DATA_VERSION = 1 };

struct assay_stream {
    uint64_t state, increment;
};

/* Reference seeding: (42, 54) gives a15c02b7 7b47f409 ba1d3330 83d2f293 ... */
void assay_stream_seed(struct assay_stream *stream, uint64_t state, uint64_t sequence);

/* The stream of logical row @row of tensor @tensor under data kind @kind. A 64-bit key
 * absorbs data version, seed, FNV-1a of tensor and of kind, and row, one word after the
 * other, each through the finaliser of splitmix64; state and sequence are the key with 1
 * and with 2 absorbed. Each step is a bijection: rows of one tensor never share a
 * stream. */
void assay_stream_open(struct assay_stream *stream, uint64_t seed, const char *tensor,
                       const char *kind, int64_t row);

uint32_t assay_stream_next(struct assay_stream *stream);

/* Same as @count calls of assay_stream_next, in O(log count). */
void assay_stream_jump(struct assay_stream *stream, uint64_t count);

/* Uniform in [0, bound) without bias; bound > 0. Takes a varying number of draws: for
 * drawing cases, not for elements. */
uint32_t assay_stream_below(struct assay_stream *stream, uint32_t bound);

/* One draw, exact in double: uniform in [0, 1) with 32 bits. */
double assay_stream_unit(struct assay_stream *stream);

/* Four draws: their sum, centred and scaled to unit variance: |value| < 3.4642. */
double assay_stream_normal(struct assay_stream *stream);

/* 2^exponent for -1074 <= exponent <= 1023, exact, without libm. */
double assay_power_of_two(int exponent);

#endif
