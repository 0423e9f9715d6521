/* SPDX-License-Identifier: MIT */
/* Template, included after dot_tile_fp8_tmpl.c: one step of bf16 or f16 dot-adds in f64,
 * whose range holds every product and every finite f32. */

enum {
    WIDE_TERMS = 16,
    WIDE_WIDTH = DOUBLES * WIDE_VECTORS, /* columns of a block */
    WIDE_SIGN_SHIFT = WIDE_WIDTH == 32 ? 10 : 12,
    /* Of one code's exponent: zero codes can have 0 and stay below all products. */
    WIDE_CODE_BIAS = 8192,
    WIDE_BIAS = 2 * WIDE_CODE_BIAS,
    F64_BIAS = 1023,
};

/* As packed_fp8; a word is two codes of one row. */
struct packed_wide {
    uint32_t a_exponents[STEP_WORDS][SIDE], b_exponents[STEP_WORDS][SIDE];
    uint32_t a_signs[STEP_WORDS][SIDE]; /* two bytes a code, in doubles */
    double a[WIDE_TERMS][SIDE];
    double b[SIDE / WIDE_WIDTH][WIDE_TERMS][3 * WIDE_WIDTH];
};
_Static_assert(0x8000 >> WIDE_SIGN_SHIFT == WIDE_WIDTH, "a sign is a distance");
_Static_assert(sizeof(struct packed_wide) <= ASSAY_DOT_TILE_PACKED_BYTES,
               "room for a step");

OPERATION ints wide_exponents(ints codes, const struct assay_dot_tile_format *format)
{
    const uint32_t pairs = 0x00010001;
    const ints magnitude = and_ints(codes, all_ints(0x7FFF * pairs));
    const ints count = all_ints((uint32_t)format->mantissa_bits);
    const ints field = and_ints(shift_right_by(magnitude, count),
                                all_ints((0x7FFFu >> format->mantissa_bits) * pairs));
    const uint32_t bias = (uint32_t)(WIDE_CODE_BIAS - format->bias);
    return words_where(magnitude, add_words(larger_words(field, all_ints(pairs)),
                                            all_ints(bias * pairs)));
}

OPERATION ints wide_specials(ints codes, const struct assay_dot_tile_format *format)
{
    const uint32_t pairs = 0x00010001;
    return words_above(and_ints(codes, all_ints(0x7FFF * pairs)),
                       all_ints((format->first_special - 1) * pairs));
}

/* The magnitude of one code of each word; *sign has its sign bit at the top. */
OPERATION floats wide_magnitude(ints codes, int index,
                                const struct assay_dot_tile_format *format, ints *sign)
{
    *sign = shift_left_by(codes, all_ints(16 - 16 * (uint32_t)index));
    const uint32_t mantissa_bits = (uint32_t)format->mantissa_bits;
    const ints fields =
        and_ints(shift_right_by(*sign, all_ints(mantissa_bits - 7)),
                 all_ints(0x7FFFu << (F32_MANTISSA_BITS - mantissa_bits)));
    return format->bias == F32_BIAS ? as_floats(fields) : magnitude_of(fields, format);
}

OPERATION void store_as_doubles(double *to, floats x)
{
    store_doubles(to, low_doubles(x));
    store_doubles(to + DOUBLES, high_doubles(x));
}

static TARGET void pack_wide_a(struct assay_dot_tile_work *work,
                               struct packed_wide *packed)
{
    const struct assay_dot_tile_format format = *work->a.format;
    for (int row = 0; row < work->a.rows; row += LANES) {
        ints words[STEP_WORDS], specials = all_ints(0);
        load_words(work->a.codes + row * work->a.row_bytes, work->a.row_bytes, words);
        UNROLLED
        for (int word = 0; word < STEP_WORDS; word++) {
            const ints codes = words[word];
            specials = or_ints(specials, wide_specials(codes, &format));
            store_ints(&packed->a_exponents[word][row], wide_exponents(codes, &format));
            store_ints(&packed->a_signs[word][row],
                       shift_right_by(and_ints(codes, all_ints(0x80008000)),
                                      all_ints(WIDE_SIGN_SHIFT)));
            for (int i = 0; i < 2; i++) {
                ints sign;
                store_as_doubles(&packed->a[word * 2 + i][row],
                                 wide_magnitude(codes, i, &format, &sign));
            }
        }
        work->a.specials |= (uint64_t)set_of_nonzero(specials) << row;
    }
}

/* The three rows of b for one k, of LANES columns. */
OPERATION void store_wide_b(struct packed_wide *packed, int k, int column,
                            floats magnitude, ints sign)
{
    const floats negative = floats_where_negative(sign, magnitude);
    const floats positive = floats_where_positive(sign, magnitude);
    double *const to = packed->b[column / WIDE_WIDTH][k] + column % WIDE_WIDTH;
    store_as_doubles(to, magnitude);
    store_as_doubles(to + WIDE_WIDTH, negative);
    store_as_doubles(to + 2 * WIDE_WIDTH, positive);
}

static TARGET void pack_wide_b(struct assay_dot_tile_work *work,
                               struct packed_wide *packed)
{
    const struct assay_dot_tile_format format = *work->b.format;
    const int columns = (work->b.rows + WIDE_WIDTH - 1) / WIDE_WIDTH * WIDE_WIDTH;
    for (int column = 0; column < columns; column += LANES) {
        ints words[STEP_WORDS], specials = all_ints(0);
        load_words(work->b.codes + column * work->b.row_bytes, work->b.row_bytes, words);
        UNROLLED
        for (int word = 0; word < STEP_WORDS; word++) {
            const ints codes = words[word];
            specials = or_ints(specials, wide_specials(codes, &format));
            store_ints(&packed->b_exponents[word][column],
                       wide_exponents(codes, &format));
            for (int i = 0; i < 2; i++) {
                ints sign;
                const floats magnitude = wide_magnitude(codes, i, &format, &sign);
                store_wide_b(packed, word * 2 + i, column, magnitude, sign);
            }
        }
        work->b.specials |= (uint64_t)set_of_nonzero(specials) << column;
    }
}

struct wide_sums {
    ints largest[BLOCK_ROWS][WIDE_VECTORS / 2];
    doubles start[BLOCK_ROWS][WIDE_VECTORS];
    doubles all[BLOCK_ROWS][WIDE_VECTORS];      /* start + magnitudes */
    doubles negative[BLOCK_ROWS][WIDE_VECTORS]; /* start + magnitudes of negative terms */
};

OPERATION void wide_find_largest(struct wide_sums *sums, const struct packed_wide *packed,
                                 int row, int column)
{
    UNROLLED
    for (int r = 0; r < BLOCK_ROWS; r++)
        UNROLLED
    for (int v = 0; v < WIDE_VECTORS / 2; v++)
        sums->largest[r][v] = all_ints(0);
    for (int word = 0; word < STEP_WORDS; word++)
        UNROLLED
    for (int r = 0; r < BLOCK_ROWS; r++) {
        const ints a = all_ints(packed->a_exponents[word][row + r]);
        UNROLLED
        for (int v = 0; v < WIDE_VECTORS / 2; v++) {
            const ints b = load_ints(&packed->b_exponents[word][column + v * LANES]);
            sums->largest[r][v] = larger_words(sums->largest[r][v], add_words(a, b));
        }
    }
}

/* The exponent of the start of the sums, 2^(E + 27), whose last bit is worth 2^(E - 25),
 * biased as f64's. A zero accumulator has no exponent, a step of zeros starts
 * anywhere. */
OPERATION ints wide_start(ints exponents, ints accumulator)
{
    const ints magnitude = shift_left(accumulator, 1);
    const ints field = larger_ints(shift_right(magnitude, 24), all_ints(1));
    const ints own =
        ints_where(magnitude, add_ints(field, all_ints(WIDE_BIAS - F32_BIAS)));
    const ints products =
        shift_right(larger_words(exponents, shift_left(exponents, 16)), 16);
    const ints largest =
        larger_ints(larger_ints(products, own), all_ints(WIDE_BIAS - 2 * F32_BIAS));
    return subtract_ints(largest, all_ints(WIDE_BIAS - F64_BIAS - 27));
}

OPERATION void wide_add_accumulator(struct wide_sums *sums, const uint32_t *accumulator)
{
    UNROLLED
    for (int r = 0; r < BLOCK_ROWS; r++)
        UNROLLED
    for (int v = 0; v < WIDE_VECTORS; v += 2) {
        const ints bits = load_ints(accumulator + r * SIDE + v * DOUBLES);
        const ints start = wide_start(sums->largest[r][v / 2], bits);
        const floats magnitude = as_floats(and_ints(bits, all_ints(0x7FFFFFFF)));
        const floats negative = smaller_floats(as_floats(bits), all_floats(0.0f));
        doubles *const starts = &sums->start[r][v];
        starts[0] = low_powers_of_two(start);
        starts[1] = high_powers_of_two(start);
        sums->all[r][v] = add_doubles(starts[0], low_doubles(magnitude));
        sums->all[r][v + 1] = add_doubles(starts[1], high_doubles(magnitude));
        sums->negative[r][v] = subtract_doubles(starts[0], low_doubles(negative));
        sums->negative[r][v + 1] = subtract_doubles(starts[1], high_doubles(negative));
    }
}

OPERATION void wide_add_products(struct wide_sums *sums, const struct packed_wide *packed,
                                 int row, int column)
{
    for (int k = 0; k < WIDE_TERMS; k++) {
        const double *const b = packed->b[column / WIDE_WIDTH][k];
        UNROLLED
        for (int r = 0; r < BLOCK_ROWS; r++) {
            const doubles a = all_doubles(packed->a[k][row + r]);
            const uint32_t signs = packed->a_signs[k / 2][row + r];
            const double *const negative =
                b + WIDE_WIDTH + (signs >> k % 2 * 16 & 0xFFFF);
            UNROLLED
            for (int v = 0; v < WIDE_VECTORS; v++) {
                sums->all[r][v] =
                    fused_doubles(a, load_doubles(b + v * DOUBLES), sums->all[r][v]);
                sums->negative[r][v] = fused_doubles(
                    a, load_doubles(negative + v * DOUBLES), sums->negative[r][v]);
            }
        }
    }
}

OPERATION doubles wide_sum(const struct wide_sums *sums, int r, int v)
{
    const doubles less_start =
        fused_doubles(all_doubles(-2.0), sums->negative[r][v], sums->all[r][v]);
    return add_doubles(less_start, sums->start[r][v]);
}

/* Exact, as fp8_store, up to the truncation to f32. Adding zero makes a -0 +0. */
OPERATION void wide_store(const struct wide_sums *sums, uint32_t *accumulator)
{
    UNROLLED
    for (int r = 0; r < BLOCK_ROWS; r++)
        UNROLLED
    for (int v = 0; v < WIDE_VECTORS; v += 2) {
        const floats result =
            joined_floats(wide_sum(sums, r, v), wide_sum(sums, r, v + 1));
        store_ints(accumulator + r * SIDE + v * DOUBLES,
                   as_ints(add_floats(result, all_floats(0.0f))));
    }
}

static TARGET void wide_block(struct assay_dot_tile_work *work,
                              const struct packed_wide *packed, int row, int column)
{
    uint32_t *const accumulator = work->accumulator + row * SIDE + column;
    struct wide_sums sums;
    wide_find_largest(&sums, packed, row, column);
    wide_add_accumulator(&sums, accumulator);
    wide_add_products(&sums, packed, row, column);
    wide_store(&sums, accumulator);
}

static __attribute__((noinline)) TARGET void wide_step(struct assay_dot_tile_work *work)
{
    struct packed_wide *const packed = (struct packed_wide *)(void *)work->packed;
    pack_wide_a(work, packed);
    pack_wide_b(work, packed);
    for (int column = 0; column < work->b.rows; column += WIDE_WIDTH)
        for (int row = 0; row < work->a.rows; row += BLOCK_ROWS)
            wide_block(work, packed, row, column);
}
