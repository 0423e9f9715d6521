/* SPDX-License-Identifier: MIT */
/* Template, included by dot_tile_avx512.c and dot_tile_avx2.c after their vocabulary of
 * vector operations: one step of FP8 dot-adds in f32, and the search for accumulators out
 * of range. Why it is exact: dot_tile.h and the comments here. */

enum {
    SIDE = ASSAY_DOT_TILE_SIDE,
    STEP_BYTES = ASSAY_DOT_TILE_STEP_BYTES,
    STEP_WORDS = STEP_BYTES / 4,
    F32_MANTISSA_BITS = 23,
    F32_BIAS = 127,
    FP8_TERMS = 32,
    FP8_WIDTH = LANES * FP8_VECTORS, /* columns of a block */
    /* From a code's sign bit, 128, to the width. */
    FP8_SIGN_SHIFT = FP8_WIDTH == 64 ? 1 : 3,
};

/* A word is four codes of one row. Exponents: those of the two sides together biased as
 * f32's, zero codes 0. Of b three rows a k: all magnitudes, those of negative codes and
 * those of positive ones, else zeros; a_signs says how much farther than the second row
 * lies the one whose codes make the product negative. */
struct packed_fp8 {
    uint32_t a_exponents[STEP_WORDS][SIDE], b_exponents[STEP_WORDS][SIDE];
    uint32_t a_signs[STEP_WORDS][SIDE]; /* a byte a code, in floats */
    float a[FP8_TERMS][SIDE];
    float b[SIDE / FP8_WIDTH][FP8_TERMS][3 * FP8_WIDTH];
};
_Static_assert(0x80 >> FP8_SIGN_SHIFT == FP8_WIDTH, "a sign is a distance");
_Static_assert(sizeof(struct packed_fp8) <= ASSAY_DOT_TILE_PACKED_BYTES,
               "room for a step");

static TARGET uint64_t rows_beyond(const struct assay_dot_tile_work *work, uint32_t low,
                                   uint32_t span)
{
    uint64_t rows = 0;
    for (int row = 0; row < work->a.rows; row++) {
        ints beyond = all_ints(0);
        for (int column = 0; column < work->b.rows; column += LANES) {
            const ints magnitude =
                shift_left(load_ints(work->accumulator + row * SIDE + column), 1);
            const ints above =
                ints_above(subtract_ints(magnitude, all_ints(low)), all_ints(span));
            beyond = or_ints(beyond, ints_where(magnitude, above));
        }
        if (set_of_nonzero(beyond)) rows |= UINT64_C(1) << row;
    }
    return rows;
}

/* Of codes whose fields, without the sign, stand where f32 has them. A field of 0 becomes
 * 2^-bias * (1 + mantissa), whose double less 2^(1 - bias) is its value. */
OPERATION floats magnitude_of(ints fields, const struct assay_dot_tile_format *format)
{
    const uint32_t one = UINT32_C(1) << F32_MANTISSA_BITS;
    const uint32_t exponent = (uint32_t)(F32_BIAS - format->bias) * one;
    return doubled_where_below(as_floats(add_ints(fields, all_ints(exponent))), fields,
                               all_ints(one), as_floats(all_ints(exponent + one)));
}

OPERATION ints fp8_exponents(ints codes, const struct assay_dot_tile_format *format,
                             int bias)
{
    const uint32_t bytes = 0x01010101;
    const ints magnitude = and_ints(codes, all_ints(0x7F * bytes));
    const ints count = all_ints((uint32_t)format->mantissa_bits);
    const ints field = and_ints(shift_right_by(magnitude, count),
                                all_ints((0x7Fu >> format->mantissa_bits) * bytes));
    const ints exponent = add_bytes(larger_bytes(field, all_ints(bytes)),
                                    all_ints((uint32_t)(bias - format->bias) * bytes));
    return bytes_where(magnitude, exponent);
}

OPERATION ints fp8_specials(ints codes, const struct assay_dot_tile_format *format)
{
    const uint32_t bytes = 0x01010101;
    return bytes_above(and_ints(codes, all_ints(0x7F * bytes)),
                       all_ints((format->first_special - 1) * bytes));
}

/* Byte @index of each word as magnitude_of wants it; *sign has its sign bit on top. */
OPERATION ints fp8_fields(ints codes, int index, int mantissa_bits, ints *sign)
{
    *sign = shift_left_by(codes, all_ints(24 - 8 * (uint32_t)index));
    return and_ints(shift_right_by(*sign, all_ints(1 + (uint32_t)mantissa_bits)),
                    all_ints(0x7Fu << (F32_MANTISSA_BITS - mantissa_bits)));
}

static TARGET void pack_fp8_a(struct assay_dot_tile_work *work, struct packed_fp8 *packed)
{
    const struct assay_dot_tile_format format = *work->a.format;
    for (int row = 0; row < work->a.rows; row += LANES) {
        ints words[STEP_WORDS], specials = all_ints(0);
        load_words(work->a.codes + row * work->a.row_bytes, work->a.row_bytes, words);
        UNROLLED
        for (int word = 0; word < STEP_WORDS; word++) {
            const ints codes = words[word];
            specials = or_ints(specials, fp8_specials(codes, &format));
            store_ints(&packed->a_exponents[word][row],
                       fp8_exponents(codes, &format, F32_BIAS / 2 + 1));
            store_ints(&packed->a_signs[word][row],
                       shift_right_by(and_ints(codes, all_ints(0x80808080)),
                                      all_ints(FP8_SIGN_SHIFT)));
            for (int i = 0; i < 4; i++) {
                ints sign;
                const ints fields = fp8_fields(codes, i, format.mantissa_bits, &sign);
                store_floats(&packed->a[word * 4 + i][row],
                             magnitude_of(fields, &format));
            }
        }
        work->a.specials |= (uint64_t)set_of_nonzero(specials) << row;
    }
}

static TARGET void pack_fp8_b(struct assay_dot_tile_work *work, struct packed_fp8 *packed)
{
    const struct assay_dot_tile_format format = *work->b.format;
    const int columns = (work->b.rows + FP8_WIDTH - 1) / FP8_WIDTH * FP8_WIDTH;
    for (int column = 0; column < columns; column += LANES) {
        ints words[STEP_WORDS], specials = all_ints(0);
        load_words(work->b.codes + column * work->b.row_bytes, work->b.row_bytes, words);
        UNROLLED
        for (int word = 0; word < STEP_WORDS; word++) {
            const ints codes = words[word];
            specials = or_ints(specials, fp8_specials(codes, &format));
            store_ints(&packed->b_exponents[word][column],
                       fp8_exponents(codes, &format, F32_BIAS / 2));
            for (int i = 0; i < 4; i++) {
                ints sign;
                const ints fields = fp8_fields(codes, i, format.mantissa_bits, &sign);
                const floats magnitude = magnitude_of(fields, &format);
                float *const to = packed->b[column / FP8_WIDTH][word * 4 + i];
                const int at = column % FP8_WIDTH;
                store_floats(to + at, magnitude);
                store_floats(to + FP8_WIDTH + at, floats_where_negative(sign, magnitude));
                store_floats(to + 2 * FP8_WIDTH + at,
                             floats_where_positive(sign, magnitude));
            }
        }
        work->b.specials |= (uint64_t)set_of_nonzero(specials) << column;
    }
}

/* The start of a lane's sums, 2^(E + 10), whose last bit is worth 2^(E - 13). E is the
 * largest of the word's four exponents and the accumulator's. */
OPERATION floats fp8_start(ints exponents, ints accumulator_magnitude)
{
    const ints pairs = larger_bytes(exponents, shift_left(exponents, 16));
    const ints products = larger_bytes(pairs, shift_left(pairs, 8));
    const ints largest = larger_ints(shift_right(products, 1), accumulator_magnitude);
    const ints field = and_ints(largest, all_ints(0x7F800000));
    return as_floats(add_ints(field, all_ints(10u << F32_MANTISSA_BITS)));
}

struct fp8_sums {
    ints largest[BLOCK_ROWS][FP8_VECTORS];
    floats start[BLOCK_ROWS][FP8_VECTORS];
    floats all[BLOCK_ROWS][FP8_VECTORS];      /* start + magnitudes */
    floats negative[BLOCK_ROWS][FP8_VECTORS]; /* start + magnitudes of negative terms */
};

OPERATION void fp8_find_largest(struct fp8_sums *sums, const struct packed_fp8 *packed,
                                int row, int column)
{
    UNROLLED
    for (int r = 0; r < BLOCK_ROWS; r++)
        UNROLLED
    for (int v = 0; v < FP8_VECTORS; v++)
        sums->largest[r][v] = all_ints(0);
    for (int word = 0; word < STEP_WORDS; word++)
        UNROLLED
    for (int r = 0; r < BLOCK_ROWS; r++) {
        const ints a = all_ints(packed->a_exponents[word][row + r]);
        UNROLLED
        for (int v = 0; v < FP8_VECTORS; v++) {
            const ints b = load_ints(&packed->b_exponents[word][column + v * LANES]);
            sums->largest[r][v] = larger_bytes(sums->largest[r][v], add_bytes(a, b));
        }
    }
}

OPERATION void fp8_add_accumulator(struct fp8_sums *sums, const uint32_t *accumulator)
{
    UNROLLED
    for (int r = 0; r < BLOCK_ROWS; r++)
        UNROLLED
    for (int v = 0; v < FP8_VECTORS; v++) {
        const ints bits = load_ints(accumulator + r * SIDE + v * LANES);
        const ints magnitude = and_ints(bits, all_ints(0x7FFFFFFF));
        const floats start = fp8_start(sums->largest[r][v], magnitude);
        sums->start[r][v] = start;
        sums->all[r][v] = add_floats(start, as_floats(magnitude));
        sums->negative[r][v] =
            subtract_floats(start, smaller_floats(as_floats(bits), all_floats(0.0f)));
    }
}

OPERATION void fp8_add_products(struct fp8_sums *sums, const struct packed_fp8 *packed,
                                int row, int column)
{
    for (int k = 0; k < FP8_TERMS; k++) {
        const float *const b = packed->b[column / FP8_WIDTH][k];
        UNROLLED
        for (int r = 0; r < BLOCK_ROWS; r++) {
            const floats a = all_floats(packed->a[k][row + r]);
            const unsigned char *const signs =
                (const unsigned char *)&packed->a_signs[k / 4][row + r];
            const float *const negative = b + FP8_WIDTH + signs[k % 4];
            UNROLLED
            for (int v = 0; v < FP8_VECTORS; v++) {
                sums->all[r][v] =
                    fused_floats(a, load_floats(b + v * LANES), sums->all[r][v]);
                sums->negative[r][v] = fused_floats(a, load_floats(negative + v * LANES),
                                                    sums->negative[r][v]);
            }
        }
    }
}

/* Exact: in units of the last bit the sums are below 2^23 + 2^20. */
OPERATION void fp8_store(const struct fp8_sums *sums, uint32_t *accumulator)
{
    UNROLLED
    for (int r = 0; r < BLOCK_ROWS; r++)
        UNROLLED
    for (int v = 0; v < FP8_VECTORS; v++) {
        const floats less_start =
            fused_floats(all_floats(-2.0f), sums->negative[r][v], sums->all[r][v]);
        const floats sum = add_floats(less_start, sums->start[r][v]);
        store_ints(accumulator + r * SIDE + v * LANES,
                   and_ints(as_ints(sum), all_ints(0xFFFFFC00)));
    }
}

static TARGET void fp8_block(struct assay_dot_tile_work *work,
                             const struct packed_fp8 *packed, int row, int column)
{
    uint32_t *const accumulator = work->accumulator + row * SIDE + column;
    struct fp8_sums sums;
    fp8_find_largest(&sums, packed, row, column);
    fp8_add_accumulator(&sums, accumulator);
    fp8_add_products(&sums, packed, row, column);
    fp8_store(&sums, accumulator);
}

/* Not to be merged with a caller that changes the rounding mode. */
static __attribute__((noinline)) TARGET void fp8_step(struct assay_dot_tile_work *work)
{
    struct packed_fp8 *const packed = (struct packed_fp8 *)(void *)work->packed;
    pack_fp8_a(work, packed);
    pack_fp8_b(work, packed);
    for (int column = 0; column < work->b.rows; column += FP8_WIDTH)
        for (int row = 0; row < work->a.rows; row += BLOCK_ROWS)
            fp8_block(work, packed, row, column);
}
