/* SPDX-License-Identifier: MIT */
/* Integers that fill an accumulator.
 *
 * With w = the least of align_bits, result_bits and 23, integers below 2^(w+1) are kept
 * exactly as long as all terms are below 2^(w+1) too: no quantum exceeds 1. A chain has
 * heavy products, multiples of 4 or 6 of at most (2^(w+1) - 1) / their number, and now
 * and then a light one, 1. So its largest partial sum is below 2^(w+1) in any order, and
 * its total is at least 2^w and, by an odd number of light products, odd: the last bit of
 * w is needed for it, and for light products that come late. Chains that are longer than
 * promised pass 2^(w+1) and lose light products.
 *
 * Outputs of 8 bits show that only where heavy products cancel and light ones are left:
 * in three of four columns the heavy products of every second half chain, every second
 * chain, or the second half of all chains are negative, without light ones beside them.
 *
 * Sums of chains stay at or below 2^24, and further chains are zero.
 *
 * All of a is one power of two, so that light products are integers of b's last place. */
#include "verify/operation/fp8_gemm_nt/fp8_gemm_accumulator.h"

#include "ref/format/minifloat.h"
#include "ref/layout/scale_layout.h"

#include <math.h>

enum { F32_FRACTION = 23, STEP = 32, FEWEST_BITS = 4 };
enum { UNIT_SCALE_F32 = 0x3F800000, UNIT_SCALE_UE8M0 = 127 };

enum pattern { ALL_POSITIVE, HALF_CHAINS, CHAINS, HALF_OF_K, PATTERNS };

/* One run of products of one sign. */
struct climb {
    int64_t length;
    int64_t light_every, heavy_every; /* heavy ones lie between the light ones */
    bool has_even_lights;             /* the second of them is left out */
    int64_t heavy;                    /* value of a heavy product */
};

struct ladder {
    int64_t chain, chains;    /* products a chain, and chains that are not zero */
    struct climb whole, half; /* a chain, and half of one */
    int a_exponent;           /* all of a is 2^this */
};

static bool is_light_place(const struct climb *climb, int64_t at)
{
    return at % climb->light_every == 0;
}

static bool is_heavy_place(const struct climb *climb, int64_t at)
{
    return !is_light_place(climb, at) &&
           at % climb->heavy_every == (climb->heavy_every > 1);
}

static int64_t lights(const struct climb *climb)
{
    const int64_t places = (climb->length + climb->light_every - 1) / climb->light_every;
    return places - (places % 2 == 0);
}

static int64_t heavies(const struct climb *climb)
{
    int64_t count = 0;
    for (int64_t at = 0; at < climb->length; at++)
        count += is_heavy_place(climb, at);
    return count;
}

/* 2 or 3 times a power of two. */
static int64_t with_two_bits(int64_t value)
{
    int64_t unit = 1;
    while (value >= 4 * unit)
        unit *= 2;
    return value / unit * unit;
}

/* A climb to at least 2^@bits and below twice that; false if there is none. */
static bool plan_climb(int64_t length, int bits, struct climb *climb)
{
    const int64_t most = (INT64_C(2) << bits) - 1;
    *climb = (struct climb){ .length = length, .light_every = STEP, .heavy_every = 1 };
    while (lights(climb) > most / 4)
        climb->light_every *= 2;
    climb->has_even_lights =
        (length + climb->light_every - 1) / climb->light_every % 2 == 0;
    int64_t count = heavies(climb);
    while (count > 0 && (most - lights(climb)) / count < 4) {
        climb->heavy_every *= 2;
        count = heavies(climb);
    }
    if (count == 0) return false;
    climb->heavy = with_two_bits((most - lights(climb)) / count);
    return climb->heavy * count + lights(climb) > most / 2;
}

static double largest_of(enum assay_format format)
{
    return format == ASSAY_E5M2 ? 57344 : format == ASSAY_E4M3 ? 448 : 6;
}

static double smallest_normal_of(enum assay_format format)
{
    return ldexp(1, 1 - assay_minifloat(format)->bias);
}

/* Whether b has a place for the light and all heavy numbers beside some a. */
static bool split_products(const struct assay_gemm_view *view, struct ladder *ladder)
{
    const int64_t heavy = ladder->half.heavy > ladder->whole.heavy ? ladder->half.heavy
                                                                   : ladder->whole.heavy;
    ladder->a_exponent = 0;
    while (ldexp((double)heavy, -ladder->a_exponent) > largest_of(view->b.format))
        ladder->a_exponent++;
    return ldexp(1, ladder->a_exponent) <= largest_of(view->a.format) &&
           ldexp(1, -ladder->a_exponent) >= smallest_normal_of(view->b.format);
}

static bool plan(const struct assay_gemm_view *view,
                 const struct assay_fp8_gemm_precision *precision, struct ladder *ladder)
{
    int bits = F32_FRACTION;
    if (precision->align_bits < bits) bits = precision->align_bits;
    if (precision->result_bits < bits) bits = precision->result_bits;
    const bool is_one =
        precision->chain_k == 0 || precision->chain_k > view->k || view->k < 2;
    const int64_t room = INT64_C(1) << (F32_FRACTION - bits);
    ladder->chain = is_one ? view->k : precision->chain_k;
    if (bits < FEWEST_BITS || ladder->chain < 2) return false;
    ladder->chains = view->k / ladder->chain;
    if (ladder->chains > room) ladder->chains = room;
    return plan_climb(ladder->chain, bits, &ladder->whole) &&
           plan_climb(ladder->chain / 2, bits, &ladder->half) &&
           split_products(view, ladder);
}

static int64_t product_in(const struct climb *climb, int64_t at, bool is_negative)
{
    if (is_heavy_place(climb, at)) return is_negative ? -climb->heavy : climb->heavy;
    const bool is_left_out = climb->has_even_lights && at == climb->light_every;
    return is_light_place(climb, at) && !is_left_out && !is_negative;
}

static int64_t product_at(const struct ladder *ladder, enum pattern pattern, int64_t k)
{
    const int64_t chain = k / ladder->chain, at = k % ladder->chain;
    const int64_t half = ladder->half.length, paired = ladder->chains / 2 * 2;
    if (chain >= ladder->chains) return 0;
    if (pattern == HALF_CHAINS)
        return at < 2 * half ? product_in(&ladder->half, at % half, at >= half) : 0;
    if (pattern == ALL_POSITIVE) return product_in(&ladder->whole, at, false);
    if (chain >= paired) return 0;
    return product_in(&ladder->whole, at,
                      pattern == CHAINS ? chain % 2 == 1 : chain >= paired / 2);
}

static uint32_t code_of(enum assay_format format, double value)
{
    return assay_minifloat_encode_f32(assay_minifloat(format), (float)value,
                                      ASSAY_OVERFLOW_SPECIAL);
}

static void fill_operands(const struct assay_gemm_view *view, const struct ladder *ladder)
{
    const double a = ldexp(1, ladder->a_exponent);
    for (int64_t i = 0; i < view->rows * view->k; i++)
        assay_tensor_set_bits(&view->a, i,
                              code_of(view->a.format, i / view->k % 2 ? -a : a));
    for (int64_t row = 0; row < view->columns; row++)
        for (int64_t k = 0; k < view->k; k++) {
            const int64_t product = product_at(ladder, (enum pattern)(row % PATTERNS), k);
            assay_tensor_set_bits(&view->b, row * view->k + k,
                                  code_of(view->b.format, (double)product / a));
        }
}

static void fill(const struct assay_tensor *tensor, uint32_t bits)
{
    for (int64_t i = 0; i < assay_tensor_elements(tensor); i++)
        assay_tensor_set_bits(tensor, i, bits);
}

static void fill_scales(const struct assay_gemm_view *view,
                        const struct assay_tensor *scales, int64_t rows)
{
    fill(scales, view->has_packed_scales ? 0 : UNIT_SCALE_F32);
    for (int64_t row = 0; view->has_packed_scales && row < rows; row++)
        for (int64_t block = 0; block < assay_gemm_blocks(view); block++)
            assay_scale_store(ASSAY_SCALE_PACKED_UE8M0, scales, 0, row, block,
                              UNIT_SCALE_UE8M0);
}

bool assay_gemm_fill_accumulator(const struct assay_gemm_view *view,
                                 const struct assay_fp8_gemm_precision *precision)
{
    struct ladder ladder;
    if (!plan(view, precision, &ladder)) return false;
    fill_operands(view, &ladder);
    fill_scales(view, &view->sfa, view->rows);
    fill_scales(view, &view->sfb, view->columns);
    if (view->has_c) fill(&view->c, 0);
    return true;
}
