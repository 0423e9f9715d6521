/* SPDX-License-Identifier: MIT */
/* Tiles of dot-adds against the chain of single ones, on random and exhaustive inputs and
 * with each instruction set that this machine has. */
#include "ref/unit/dot_tile.h"

#include "tests/harness.h"

#include <fenv.h>
#include <immintrin.h>
#include <string.h>

enum { SIDE = 64, MAX_K = 4096, STRIDE = MAX_K + 64, GUARD = 0x5A5A5A5A };

/* --- a tile and its expected outputs ---------------------------------------------- */

static struct assay_dot_tile tile;
static unsigned char codes_a[SIDE * STRIDE * 2], codes_b[SIDE * STRIDE * 2];
static uint32_t before[SIDE * (SIDE + 8)], expected[SIDE * (SIDE + 8)];
static uint32_t computed[SIDE * (SIDE + 8)];

static int bits_of(enum assay_format format)
{
    return 8 * (int)assay_format_bytes(format);
}

static uint32_t code_at(enum assay_format format, const unsigned char *codes,
                        int64_t index)
{
    if (bits_of(format) == 8) return codes[index];
    return codes[2 * index] | (uint32_t)codes[2 * index + 1] << 8;
}

static void set_code(enum assay_format format, unsigned char *codes, int64_t index,
                     uint32_t code)
{
    const int64_t bytes = bits_of(format) / 8;
    codes[bytes * index] = (unsigned char)code;
    if (bytes == 2) codes[2 * index + 1] = (unsigned char)(code >> 8);
}

static void decode_step(enum assay_format format, const unsigned char *codes,
                        const int64_t *stride, int rows, int64_t k,
                        struct assay_operand *operands)
{
    const int terms = tile.profile->terms;
    for (int row = 0; row < rows; row++)
        for (int i = 0; i < terms; i++) {
            const int64_t at = row * stride[0] + (k + i) * stride[1];
            const uint32_t code = k + i < tile.k ? code_at(format, codes, at) : 0;
            operands[row * terms + i] = assay_operand_decode(tile.profile, format, code);
        }
}

static void compute_expected(void)
{
    static struct assay_operand a[SIDE * 32], b[SIDE * 32];
    const int terms = tile.profile->terms;
    memcpy(expected, before, sizeof expected);
    for (int64_t k = 0; k < tile.k; k += terms) {
        decode_step(tile.format_a, codes_a, tile.a_stride, tile.rows, k, a);
        decode_step(tile.format_b, codes_b, tile.b_stride, tile.columns, k, b);
        for (int row = 0; row < tile.rows; row++)
            for (int column = 0; column < tile.columns; column++) {
                uint32_t *const sum = &expected[row * tile.accumulator_stride + column];
                *sum = assay_dot_add(tile.profile, *sum, a + row * terms,
                                     b + column * terms);
            }
    }
}

/* All of the accumulators' memory, so that a write beside the tile shows. */
static void compare(const char *what)
{
    const char *const *name = assay_dot_tile_instruction_sets();
    compute_expected();
    for (; *name; name++) {
        if (!assay_dot_tile_choose(*name)) continue;
        memcpy(computed, before, sizeof computed);
        assay_dot_tile(&tile);
        for (int64_t i = 0; i < SIDE * (SIDE + 8); i++)
            if (computed[i] != expected[i])
                ck_abort_msg(
                    "%s, %s by %s, %s: %d by %d outputs, k %lld: [%lld, %lld] from %08x "
                    "is %08x, expected %08x",
                    *name, assay_format_name(tile.format_a),
                    assay_format_name(tile.format_b), what, tile.rows, tile.columns,
                    (long long)tile.k, (long long)(i / tile.accumulator_stride),
                    (long long)(i % tile.accumulator_stride), before[i], computed[i],
                    expected[i]);
    }
}

/* --- random tiles ----------------------------------------------------------------- */

static uint64_t state;

static uint32_t draw(void) /* splitmix64 */
{
    uint64_t z = state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (uint32_t)((z ^ z >> 31) >> 32);
}

static uint32_t below(uint32_t count)
{
    return draw() % count;
}

static int mantissa_bits_of(enum assay_format format)
{
    switch (format) {
    case ASSAY_E4M3: return 3;
    case ASSAY_E5M2: return 2;
    case ASSAY_BF16: return 7;
    default: return 10;
    }
}

static bool is_special(enum assay_format format, uint32_t code)
{
    switch (format) {
    case ASSAY_E4M3: return (code & 0x7F) == 0x7F;
    case ASSAY_E5M2: return (code & 0x7F) >= 0x7C;
    case ASSAY_BF16: return (code & 0x7FFF) >= 0x7F80;
    default: return (code & 0x7FFF) >= 0x7C00;
    }
}

enum kind { UNIFORM, NARROW, TINY, LARGE, ZEROS, SPREAD, RARE_SPECIALS, SPECIALS, KINDS };
static const char *const kind_names[] = {
    "uniform", "narrow", "tiny", "large", "zeros", "spread", "rare specials", "specials"
};

/* Exponent fields from a draw: @centre is the tile's own. */
static uint32_t draw_field(enum kind kind, uint32_t fields, uint32_t centre)
{
    switch (kind) {
    case TINY: return below(2);
    case LARGE: return fields - 1 - below(3);
    case NARROW:
    case ZEROS: return (centre + below(3)) % fields;
    /* Most far below a few, about where alignment cuts. */
    case SPREAD: return (centre + (below(8) ? below(4) : 5 + below(12))) % fields;
    default: return below(fields);
    }
}

static uint32_t draw_code(enum assay_format format, enum kind kind, uint32_t centre)
{
    const int bits = bits_of(format), mantissa_bits = mantissa_bits_of(format);
    const uint32_t fields = UINT32_C(1) << (bits - 1 - mantissa_bits);
    const uint32_t sign = below(2) << (bits - 1);
    if (kind == ZEROS && below(8)) return sign;
    const uint32_t mantissa = below(UINT32_C(1) << mantissa_bits);
    const uint32_t code = sign | draw_field(kind, fields, centre) << mantissa_bits |
                          (below(4) ? mantissa : 0);
    const bool is_wanted = kind == SPECIALS || (kind == RARE_SPECIALS && below(64) == 0);
    if (is_special(format, code) && !is_wanted)
        return code & ~(UINT32_C(1) << mantissa_bits);
    return code;
}

enum start { FROM_ZERO, FROM_NEAR, FROM_TINY, FROM_HUGE, FROM_ANY, STARTS };

static uint32_t draw_accumulator(enum start start)
{
    switch (start) {
    case FROM_ZERO: return below(8) ? 0 : UINT32_C(1) << 31;
    case FROM_NEAR: return below(2) << 31 | (97 + below(64)) << 23 | draw() >> 9;
    case FROM_TINY: return below(2) << 31 | below(100) << 23 | draw() >> 9;
    case FROM_HUGE: return below(2) << 31 | (190 + below(65)) << 23 | draw() >> 9;
    default: return draw();
    }
}

/* Memory between the rows holds NaNs. */
static void draw_side(enum assay_format format, unsigned char *codes,
                      const int64_t *stride, int rows, enum kind kind)
{
    const uint32_t centre = draw() >> 8, sign = UINT32_C(1) << (bits_of(format) - 1);
    const bool cancels = below(4) == 0;
    const int64_t extent = (rows + 16) * stride[0] + (tile.k + 16) * stride[1];
    ck_assert_int_le(extent * bits_of(format) / 8, SIDE * STRIDE * 2);
    memset(codes, 0xFF, (size_t)(extent * bits_of(format) / 8));
    for (int row = 0; row < rows; row++) {
        /* A special code spoils a row or column: only some have any. */
        const enum kind own = kind == SPECIALS && below(2) ? UNIFORM : kind;
        uint32_t last = 0;
        for (int64_t k = 0; k < tile.k; k++) {
            const uint32_t drawn = draw_code(format, own, centre);
            last = cancels && k % 2 ? last ^ (below(2) ? sign : 0) : drawn;
            set_code(format, codes, row * stride[0] + k * stride[1], last);
        }
    }
}

/* Rows one after the other, with or without a gap, or k after k. */
static void draw_stride(int64_t *stride, int rows)
{
    const bool is_transposed = below(4) == 0;
    stride[0] = is_transposed ? 1 : tile.k + (int)below(3) * 7;
    stride[1] = is_transposed ? rows + (int)below(3) * 5 : 1;
}

static void draw_tile(enum kind kind, enum start start, int rows, int columns, int k)
{
    tile.rows = rows;
    tile.columns = columns;
    tile.k = k;
    draw_stride(tile.a_stride, rows);
    draw_stride(tile.b_stride, columns);
    tile.accumulator_stride = SIDE + below(9);
    draw_side(tile.format_a, codes_a, tile.a_stride, rows, kind);
    draw_side(tile.format_b, codes_b, tile.b_stride, columns, kind);
    for (int i = 0; i < SIDE * (SIDE + 8); i++)
        before[i] = GUARD;
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < columns; column++)
            before[row * tile.accumulator_stride + column] = draw_accumulator(start);
}

static const struct {
    const char *profile;
    enum assay_format a, b;
} served[] = {
    { "hopper-fp8", ASSAY_E4M3, ASSAY_E4M3 },  { "hopper-fp8", ASSAY_E4M3, ASSAY_E5M2 },
    { "hopper-fp8", ASSAY_E5M2, ASSAY_E4M3 },  { "hopper-fp8", ASSAY_E5M2, ASSAY_E5M2 },
    { "hopper-bf16", ASSAY_BF16, ASSAY_BF16 }, { "hopper-f16", ASSAY_F16, ASSAY_F16 },
};
enum { SERVED = sizeof(served) / sizeof(served[0]), FP8_SERVED = 4 };

static void set_formats(int i)
{
    tile = (struct assay_dot_tile){
        .profile = assay_dot_add_find(served[i].profile),
        .format_a = served[i].a,
        .format_b = served[i].b,
        .a = codes_a,
        .b = codes_b,
        .accumulator = computed,
    };
}

START_TEST(random_tiles_equal_the_chain)
{
    state = 1;
    for (int i = 0; i < SERVED; i++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int start = 0; start < STARTS; start++)
                for (int repeat = 0; repeat < 8; repeat++) {
                    set_formats(i);
                    draw_tile((enum kind)kind, (enum start)start, 1 + (int)below(SIDE),
                              1 + (int)below(SIDE), (int)below(200));
                    compare(kind_names[kind]);
                }
}
END_TEST

START_TEST(whole_tiles_equal_the_chain)
{
    state = 2;
    for (int i = 0; i < SERVED; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            set_formats(i);
            draw_tile((enum kind)kind, FROM_ZERO, SIDE, SIDE, 128);
            compare(kind_names[kind]);
            draw_tile((enum kind)kind, FROM_NEAR, SIDE, SIDE, 64);
            compare(kind_names[kind]);
        }
}
END_TEST

START_TEST(every_number_of_rows_and_columns_is_computed_alone)
{
    state = 3;
    for (int side = 1; side <= SIDE; side++) {
        set_formats(side % SERVED);
        draw_tile(UNIFORM, FROM_NEAR, side, 1 + (int)below(SIDE), 33);
        compare("rows");
        draw_tile(UNIFORM, FROM_NEAR, 1 + (int)below(SIDE), side, 33);
        compare("columns");
    }
}
END_TEST

START_TEST(every_length_up_to_two_steps_ends_with_zeros)
{
    state = 4;
    for (int i = 0; i < SERVED; i++)
        for (int k = 0; k <= 65; k++) {
            set_formats(i);
            draw_tile(NARROW, FROM_NEAR, 5, 7, k);
            compare("tail");
        }
}
END_TEST

START_TEST(long_chains_equal_the_chain)
{
    state = 5;
    for (int i = 0; i < SERVED; i++)
        for (int kind = 0; kind < RARE_SPECIALS; kind++) {
            set_formats(i);
            draw_tile((enum kind)kind, FROM_ZERO, 9, 20, MAX_K - (int)below(40));
            compare(kind_names[kind]);
        }
}
END_TEST

/* --- every pair of FP8 codes ------------------------------------------------------ */

/* An accumulator at @shift binary places from the product of row and column. */
static uint32_t near_product(const struct assay_dot_add *profile, uint32_t a, uint32_t b,
                             int shift)
{
    const struct assay_operand left = assay_operand_decode(profile, tile.format_a, a);
    const struct assay_operand right = assay_operand_decode(profile, tile.format_b, b);
    const int field = 127 + left.alignment + right.alignment + shift;
    if (field < 1 || field > 254) return below(2) << 31;
    return below(2) << 31 | (uint32_t)field << 23 | draw() >> 9;
}

/* One product an output, at any place of the step. */
static void compare_pairs(uint32_t first_a, uint32_t first_b, int shift)
{
    const uint32_t k = below(32);
    tile.rows = tile.columns = SIDE;
    tile.k = tile.a_stride[0] = tile.b_stride[0] = 32;
    tile.a_stride[1] = tile.b_stride[1] = 1;
    tile.accumulator_stride = SIDE;
    memset(codes_a, 0, SIDE * 32);
    memset(codes_b, 0, SIDE * 32);
    for (uint32_t i = 0; i < SIDE; i++) {
        codes_a[i * 32 + k] = (unsigned char)(first_a + i);
        codes_b[i * 32 + k] = (unsigned char)(first_b + i);
    }
    for (uint32_t i = 0; i < SIDE * SIDE; i++)
        before[i] =
            near_product(tile.profile, first_a + i / SIDE, first_b + i % SIDE, shift);
    compare("pairs");
}

START_TEST(every_pair_of_fp8_codes_equals_the_dot_add)
{
    static const int shifts[] = { -200, -24, -14, -13, -1, 0, 1, 12, 14, 15 };
    state = 6;
    for (int i = 0; i < FP8_SERVED; i++)
        for (size_t shift = 0; shift < sizeof(shifts) / sizeof(shifts[0]); shift++)
            for (uint32_t tile_of_pairs = 0; tile_of_pairs < 16; tile_of_pairs++) {
                set_formats(i);
                compare_pairs(tile_of_pairs / 4 * SIDE, tile_of_pairs % 4 * SIDE,
                              shifts[shift]);
            }
}
END_TEST

/* --- around the arithmetic -------------------------------------------------------- */

/* Of MXCSR all but the sticky exceptions; fegetround does not look there. */
enum { CONTROL_BITS = 0xFFC0 };

START_TEST(the_callers_rounding_mode_neither_matters_nor_changes)
{
    static const int modes[] = { FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST };
    state = 7;
    for (int i = 0; i < SERVED; i++)
        for (size_t mode = 0; mode < sizeof(modes) / sizeof(modes[0]); mode++) {
            set_formats(i);
            draw_tile(UNIFORM, FROM_NEAR, SIDE, SIDE, 40);
            fesetround(modes[mode]);
            const unsigned control = _mm_getcsr() & CONTROL_BITS;
            compare("rounding mode");
            const unsigned after = _mm_getcsr() & CONTROL_BITS;
            fesetround(FE_TONEAREST);
            ck_assert_uint_eq(after, control);
        }
}
END_TEST

static bool is_expected_to_be_served(const char *profile, enum assay_format a,
                                     enum assay_format b)
{
    for (int i = 0; i < SERVED; i++)
        if (strcmp(served[i].profile, profile) == 0 && served[i].a == a &&
            served[i].b == b)
            return true;
    return false;
}

START_TEST(exactly_the_measured_hopper_units_are_served)
{
    int yes = 0;
    for (const struct assay_dot_add *row = assay_dot_adds; row->name; row++)
        for (int a = 0; a < ASSAY_FORMAT_COUNT; a++)
            for (int b = 0; b < ASSAY_FORMAT_COUNT; b++) {
                const bool is_served = assay_dot_tile_serves(row, (enum assay_format)a,
                                                             (enum assay_format)b);
                yes += is_served;
                ck_assert_msg(is_served == is_expected_to_be_served(row->name,
                                                                    (enum assay_format)a,
                                                                    (enum assay_format)b),
                              "%s, formats %d and %d", row->name, a, b);
            }
    ck_assert_int_eq(yes, SERVED);
}
END_TEST

START_TEST(other_constants_are_not_served)
{
    for (int i = 0; i < SERVED; i++)
        for (int change = -1; change <= 1; change += 2) {
            struct assay_dot_add copy = *assay_dot_add_find(served[i].profile);
            ck_assert(assay_dot_tile_serves(&copy, served[i].a, served[i].b));
            copy.align_bits += change;
            ck_assert(!assay_dot_tile_serves(&copy, served[i].a, served[i].b));
            copy.align_bits -= change;
            copy.result_bits += change;
            ck_assert(!assay_dot_tile_serves(&copy, served[i].a, served[i].b));
        }
}
END_TEST

START_TEST(an_instruction_set_is_chosen_by_name_and_an_unknown_one_refused)
{
    int supported = 0;
    ck_assert(assay_dot_tile_choose(NULL));
    const char *const fastest = assay_dot_tile_instruction_set();
    const char *const *name = assay_dot_tile_instruction_sets();
    for (; *name; name++) {
        if (!assay_dot_tile_choose(*name)) continue;
        if (supported++ == 0) ck_assert_str_eq(*name, fastest);
        ck_assert_str_eq(assay_dot_tile_instruction_set(), *name);
    }
    ck_assert(assay_dot_tile_choose("portable"));
    ck_assert(!assay_dot_tile_choose("avx1024"));
    ck_assert(!assay_dot_tile_choose(""));
    ck_assert_str_eq(assay_dot_tile_instruction_set(), "portable");
    ck_assert(assay_dot_tile_choose(NULL));
    ck_assert_str_eq(assay_dot_tile_instruction_set(), fastest);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        random_tiles_equal_the_chain,
        whole_tiles_equal_the_chain,
        every_number_of_rows_and_columns_is_computed_alone,
        every_length_up_to_two_steps_ends_with_zeros,
        long_chains_equal_the_chain,
        every_pair_of_fp8_codes_equals_the_dot_add,
        the_callers_rounding_mode_neither_matters_nor_changes,
        exactly_the_measured_hopper_units_are_served,
        other_constants_are_not_served,
        an_instruction_set_is_chosen_by_name_and_an_unknown_one_refused,
        NULL,
    };
    return run_tests("dot_tile", tests);
}
