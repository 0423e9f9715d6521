/* SPDX-License-Identifier: MIT */
/* PCG32 and what is drawn from it. */
#include "verify/data/stream.h"

#include <assert.h>
#include <string.h>

static const uint64_t multiplier = 6364136223846793005U;

void assay_stream_seed(struct assay_stream *stream, uint64_t state, uint64_t sequence)
{
    stream->state = 0;
    stream->increment = sequence << 1 | 1;
    assay_stream_next(stream);
    stream->state += state;
    assay_stream_next(stream);
}

/* FNV-1a, 64 bits (Fowler, Noll, Vo). */
static uint64_t hash_name(const char *name)
{
    uint64_t hash = 0xCBF29CE484222325U;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001B3U;
    return hash;
}

/* A step and the finaliser of splitmix64 (Steele, Lea, Flood 2014; Vigna's constants). */
static uint64_t absorb(uint64_t key, uint64_t word)
{
    key = (key + 0x9E3779B97F4A7C15U) ^ word;
    key = (key ^ key >> 30) * 0xBF58476D1CE4E5B9U;
    key = (key ^ key >> 27) * 0x94D049BB133111EBU;
    return key ^ key >> 31;
}

void assay_stream_open(struct assay_stream *stream, uint64_t seed, const char *tensor,
                       const char *kind, int64_t row)
{
    const uint64_t words[] = { ASSAY_DATA_VERSION, seed, hash_name(tensor),
                               hash_name(kind), (uint64_t)row };
    uint64_t key = 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        key = absorb(key, words[i]);
    assay_stream_seed(stream, absorb(key, 1), absorb(key, 2));
}

static inline uint32_t step(struct assay_stream *stream)
{
    const uint64_t state = stream->state;
    stream->state = state * multiplier + stream->increment;
    const uint32_t shifted = (uint32_t)((state >> 18 ^ state) >> 27);
    const uint32_t rotation = (uint32_t)(state >> 59);
    return shifted >> rotation | shifted << (-rotation & 31);
}

uint32_t assay_stream_next(struct assay_stream *stream)
{
    return step(stream);
}

void assay_stream_jump(struct assay_stream *stream, uint64_t count)
{
    /* s -> factor * s + addend is 2^i steps; squaring it gives 2^(i+1) (Brown 1994). */
    uint64_t factor = multiplier, addend = stream->increment;
    for (; count; count >>= 1) {
        if (count & 1) stream->state = factor * stream->state + addend;
        addend *= factor + 1;
        factor *= factor;
    }
}

uint32_t assay_stream_below(struct assay_stream *stream, uint32_t bound)
{
    assert(bound > 0);
    /* 2^32 mod bound draws are left out, so that each remainder is equally frequent. */
    const uint32_t rejected = -bound % bound;
    for (;;) {
        const uint32_t draw = assay_stream_next(stream);
        if (draw >= rejected) return draw % bound;
    }
}

double assay_stream_unit(struct assay_stream *stream)
{
    return assay_stream_next(stream) * 0x1p-32;
}

double assay_stream_normal(struct assay_stream *stream)
{
    int64_t sum = -2 * (int64_t)UINT32_MAX;
    for (int i = 0; i < 4; i++)
        sum += step(stream);
    /* A uniform draw on [0, 1] has variance 1/12, four of them 1/3: times sqrt(3). */
    return (double)sum * (1.7320508075688772 * 0x1p-32);
}

double assay_power_of_two(int exponent)
{
    assert(exponent >= -1074 && exponent <= 1023);
    const uint64_t bits =
        exponent >= -1022 ? (uint64_t)(exponent + 1023) << 52 : 1ULL << (exponent + 1074);
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}
