/* SPDX-License-Identifier: MIT */
/* The dot-add of a tile in integers, for any processor. */
#include "ref/unit/dot_tile_kernels.h"

enum {
    SIDE = ASSAY_DOT_TILE_SIDE,
    STEP_BYTES = ASSAY_DOT_TILE_STEP_BYTES,
    /* The exponent of a zero code; two of them stay below every term's. */
    NO_EXPONENT = -1024,
    F32_MANTISSA_BITS = 23,
    F32_BIAS = 127,
};

/* value = magnitude * 2^(exponent - mantissa bits), negated if sign is -1, not 0 */
struct packed_side {
    int16_t exponent[SIDE][STEP_BYTES], sign[SIDE][STEP_BYTES];
    uint32_t magnitude[SIDE][STEP_BYTES];
};

struct packed {
    struct packed_side a, b;
};
_Static_assert(sizeof(struct packed) <= ASSAY_DOT_TILE_PACKED_BYTES, "room for a step");

static uint32_t code_at(const struct assay_dot_tile_side *side, int row, int k)
{
    const unsigned char *const codes = side->codes + row * side->row_bytes;
    return side->format->bits == 8 ? codes[k]
                                   : codes[2 * k] | (uint32_t)codes[2 * k + 1] << 8;
}

/* Magnitudes are shifted left by @up. */
static void pack_side(struct assay_dot_tile_side *side, int terms, int up,
                      struct packed_side *to)
{
    const struct assay_dot_tile_format *const format = side->format;
    for (int i = 0; i < side->rows * terms; i++) {
        const int row = i / terms, k = i % terms;
        const uint32_t code = code_at(side, row, k);
        const uint32_t magnitude = code & ~(UINT32_C(1) << (format->bits - 1));
        const uint32_t field = magnitude >> format->mantissa_bits;
        const uint32_t implicit = UINT32_C(1) << format->mantissa_bits;
        const uint32_t mantissa = magnitude & (implicit - 1);
        const int exponent = (field ? (int)field : 1) - format->bias;
        to->magnitude[row][k] = (field ? mantissa | implicit : mantissa) << up;
        to->sign[row][k] = code == magnitude ? 0 : -1;
        to->exponent[row][k] = (int16_t)(magnitude ? exponent : NO_EXPONENT);
        if (magnitude >= format->first_special) side->specials |= UINT64_C(1) << row;
    }
}

/* The sum's bits from the leading one down to result_bits below it, and to 2^-149. */
static uint32_t to_f32(int64_t sum, int last_bit, int result_bits)
{
    if (sum == 0) return 0;
    const uint32_t sign = sum < 0 ? UINT32_C(1) << 31 : 0;
    const uint64_t magnitude = (uint64_t)(sum < 0 ? -sum : sum);
    const int leading = 63 - __builtin_clzll(magnitude);
    const int field = leading + last_bit + F32_BIAS;
    if (field > 254) return sign | UINT32_C(0x7F800000);

    const int dropped = leading > result_bits ? leading - result_bits : 0;
    const uint64_t kept = magnitude >> dropped << dropped;
    const int left = F32_MANTISSA_BITS - leading - (field < 1 ? 1 - field : 0);
    if (left <= -64) return 0;
    const uint64_t placed = left < 0 ? kept >> -left : kept << left;
    if (placed == 0) return 0;
    /* The implicit one adds itself to the field. */
    return sign | (uint32_t)(placed + ((uint64_t)(field < 1 ? 0 : field - 1)
                                       << F32_MANTISSA_BITS));
}

struct accumulator { /* significand * 2^(exponent - 23) */
    uint32_t significand;
    int exponent;
};

static struct accumulator unpack(uint32_t bits)
{
    const int field = (int)(bits >> F32_MANTISSA_BITS & 0xFF);
    const uint32_t mantissa = bits & 0x7FFFFF;
    return (struct accumulator){
        field ? mantissa | UINT32_C(1) << F32_MANTISSA_BITS : mantissa,
        (field ? field : 1) - F32_BIAS,
    };
}

/* @bits in units of 2^(largest - align_bits). */
static int64_t aligned_accumulator(uint32_t bits, int largest, int align_bits)
{
    const struct accumulator c = unpack(bits);
    const int down = F32_MANTISSA_BITS + largest - c.exponent;
    if (c.significand == 0 || down > 63) return 0;
    const int64_t magnitude = (int64_t)((uint64_t)c.significand << align_bits >> down);
    return bits >> 31 ? -magnitude : magnitude;
}

/* @terms is a constant where this is called: the first loops become vector code. */
static inline __attribute__((always_inline)) uint32_t
add_terms(const struct assay_dot_tile_work *work, const struct packed_side *a, int row,
          const struct packed_side *b, int column, int terms)
{
    const uint32_t bits = work->accumulator[row * SIDE + column];
    const struct accumulator c = unpack(bits);
    int16_t shift[STEP_BYTES], sign[STEP_BYTES];
    int16_t largest = c.significand ? (int16_t)c.exponent : NO_EXPONENT;
    for (int k = 0; k < terms; k++) {
        const int16_t sum = (int16_t)(a->exponent[row][k] + b->exponent[column][k]);
        largest = sum > largest ? sum : largest;
        shift[k] = sum;
    }
    for (int k = 0; k < terms; k++) {
        const int16_t below = (int16_t)(largest - shift[k]);
        shift[k] = below < 31 ? below : 31;
        sign[k] = a->sign[row][k] ^ b->sign[column][k];
    }
    int64_t sum = aligned_accumulator(bits, largest, work->align_bits);
    for (int k = 0; k < terms; k++) {
        const uint32_t magnitude = a->magnitude[row][k] * b->magnitude[column][k];
        sum += ((int32_t)(magnitude >> shift[k]) ^ sign[k]) - sign[k];
    }
    return to_f32(sum, largest - work->align_bits, work->result_bits);
}

static inline __attribute__((always_inline)) void
add_step(struct assay_dot_tile_work *work, int terms)
{
    struct packed *const packed = (struct packed *)(void *)work->packed;
    const int up =
        work->align_bits - work->a.format->mantissa_bits - work->b.format->mantissa_bits;
    pack_side(&work->a, terms, up, &packed->a);
    pack_side(&work->b, terms, 0, &packed->b);
    for (int row = 0; row < work->a.rows; row++)
        for (int column = 0; column < work->b.rows; column++) {
            uint32_t *const sum = &work->accumulator[row * SIDE + column];
            /* Infinities stay. */
            if ((*sum & 0x7F800000) != 0x7F800000)
                *sum = add_terms(work, &packed->a, row, &packed->b, column, terms);
        }
}

static void add_fp8_step(struct assay_dot_tile_work *work)
{
    add_step(work, 32);
}

static void add_wide_step(struct assay_dot_tile_work *work)
{
    add_step(work, 16);
}

static uint64_t rows_beyond(const struct assay_dot_tile_work *work, uint32_t low,
                            uint32_t span)
{
    uint64_t rows = 0;
    for (int row = 0; row < work->a.rows; row++)
        for (int column = 0; column < work->b.rows; column++) {
            const uint32_t magnitude = work->accumulator[row * SIDE + column] << 1;
            if (magnitude && magnitude - low > span) rows |= UINT64_C(1) << row;
        }
    return rows;
}

static bool always(void)
{
    return true;
}

const struct assay_dot_tile_kernels assay_dot_tile_portable = {
    .instruction_set = "portable",
    .is_supported = always,
    .rows_beyond = rows_beyond,
    .add_fp8_step = add_fp8_step,
    .add_wide_step = add_wide_step,
};
