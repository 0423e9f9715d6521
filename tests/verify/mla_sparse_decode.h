/* SPDX-License-Identifier: MIT */
/* Generated cases of mla_sparse_decode, and a second reader of packed caches, in doubles:
 * formats as FlashMLA 9241ae3 and its later interface describe them in bytes. */
#ifndef ASSAY_TESTS_VERIFY_MLA_SPARSE_DECODE_H
#define ASSAY_TESTS_VERIFY_MLA_SPARSE_DECODE_H

#include "tests/verify/judged_case.h"
#include "tests/verify/shaped_case.h"

#include <math.h>
#include <string.h>

enum { D_V = 512, MAX_TOKEN_BYTES = 656, MAX_KEYS = 512 };
enum reader_kv { READER_V32, READER_MODEL1, READER_V41, READER_FP4 };

struct reader {
    enum reader_kv kv;
    int64_t page_size;
    const struct assay_tensor *k_cache;
};

static inline double fraction_of(unsigned code, int mantissa_bits, int bias)
{
    const int exponent = (int)(code >> mantissa_bits);
    const int mantissa = (int)(code & ((1u << mantissa_bits) - 1));
    const int significand = exponent ? mantissa | 1 << mantissa_bits : mantissa;
    return ldexp(significand, (exponent ? exponent : 1) - bias - mantissa_bits);
}

static inline double e4m3_value(unsigned code)
{
    if ((code & 0x7F) == 0x7F) return (double)NAN;
    return (code & 0x80 ? -1 : 1) * fraction_of(code & 0x7F, 3, 7);
}

static inline double e2m1_value(unsigned code)
{
    return (code & 8 ? -1 : 1) * fraction_of(code & 7, 1, 1);
}

static inline double f32_value(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return (double)value;
}

static inline double bf16_value(unsigned code)
{
    return f32_value((uint32_t)code << 16);
}

/* The 512 elements of a token's V, code times scale without rounding. */
static inline void read_values(const struct reader *reader, int64_t slot, double *value)
{
    static const int record[] = { 656, 576, 528, 288 };
    static const int coded[] = { 512, 448, 512, 512 };
    static const int block[] = { 128, 64, 32, 16 };
    const int64_t place = slot % reader->page_size;
    const unsigned char *const page =
        (const unsigned char *)reader->k_cache->data +
        slot / reader->page_size * reader->k_cache->stride[0];
    const unsigned char *const token = page + place * record[reader->kv];
    const unsigned char *scale = token + coded[reader->kv];
    if (reader->kv == READER_FP4) scale = token + 256;
    if (reader->kv == READER_MODEL1) scale = page + reader->page_size * 576 + place * 8;
    for (int i = 0; i < coded[reader->kv]; i++) {
        const int at = i / block[reader->kv];
        uint32_t bits;
        double factor = ldexp(1, scale[at] - 127);
        memcpy(&bits, token + 512 + 4 * (at % 4), sizeof(bits));
        if (reader->kv == READER_V32) factor = f32_value(bits);
        if (reader->kv == READER_FP4)
            value[i] = e4m3_value(scale[at]) *
                       e2m1_value(i % 2 ? token[i / 2] >> 4 : token[i / 2] & 0xF);
        else
            value[i] = e4m3_value(token[i]) * factor;
    }
    for (int i = coded[reader->kv]; i < D_V; i++) {
        uint16_t code;
        memcpy(&code, token + i * 2 - coded[reader->kv], sizeof(code));
        value[i] = bf16_value(code);
    }
}

/* Bytes of a token that are its own, gathered; returns their number. */
static inline int gather_bytes(const struct reader *reader, int64_t slot,
                               unsigned char *bytes)
{
    static const int record[] = { 656, 576, 528, 288 };
    const int64_t place = slot % reader->page_size;
    const unsigned char *const page =
        (const unsigned char *)reader->k_cache->data +
        slot / reader->page_size * reader->k_cache->stride[0];
    memcpy(bytes, page + place * record[reader->kv], (size_t)record[reader->kv]);
    if (reader->kv != READER_MODEL1) return record[reader->kv];
    memcpy(bytes + 576, page + reader->page_size * 576 + place * 8, 7);
    return 583;
}

struct generated { /* a case with its inputs */
    struct assay_case the_case;
    struct assay_tensors tensors;
    struct assay_buffers buffers;
};

static inline void generate(struct generated *made, const char *text)
{
    made->the_case = parsed(text);
    generate_case(&made->the_case, &made->tensors, &made->buffers);
}

static inline const struct assay_tensor *tensor_of(const struct generated *made,
                                                   const char *name)
{
    const struct assay_tensor *const tensor = assay_tensors_find(&made->tensors, name);
    ck_assert_msg(tensor, "no tensor %s", name);
    return tensor;
}

static inline int64_t key_of(const struct generated *made, const char *key)
{
    return assay_case_value(&made->the_case, key);
}

static inline struct reader reader_of(const struct generated *made, bool is_extra)
{
    enum reader_kv kv = (enum reader_kv)key_of(made, "kv");
    if (is_extra && key_of(made, "extra_kv") >= 0)
        kv = (enum reader_kv)key_of(made, "extra_kv");
    const int64_t extra_size = key_of(made, "extra_page_size");
    return (struct reader){ kv,
                            is_extra && extra_size ? extra_size
                                                   : key_of(made, "page_size"),
                            tensor_of(made, is_extra ? "extra_k_cache" : "k_cache") };
}

/* V rows of the tokens one query token attends to; returns their number. */
static inline int attended_values(const struct generated *made, int64_t row,
                                  double (*value)[D_V])
{
    int count = 0;
    for (int extra = 0; extra < (key_of(made, "extra_topk") ? 2 : 1); extra++) {
        const struct assay_tensor *const indices =
            tensor_of(made, extra ? "extra_indices_in_kvcache" : "indices");
        const struct assay_tensor *const lengths = assay_tensors_find(
            &made->tensors, extra ? "extra_topk_length" : "topk_length");
        const struct reader reader = reader_of(made, extra);
        const int64_t topk = indices->shape[2], request = row / indices->shape[1];
        const int64_t length = lengths ? ((const int32_t *)lengths->data)[request] : topk;
        for (int64_t i = 0; i < length; i++) {
            const int32_t slot = ((const int32_t *)indices->data)[row * topk + i];
            if (slot >= 0) read_values(&reader, slot, value[count++]);
        }
    }
    return count;
}

#endif
