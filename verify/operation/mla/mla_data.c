/* SPDX-License-Identifier: MIT */
/* Query and key vectors of every kind of data, sinks, and shuffled page numbers. */
#include "verify/operation/mla/mla_data.h"

#include "ref/format/minifloat.h"
#include "verify/data/runs.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { TOKEN_BITS = 32, NEEDLE_DIMS = 8, SPECIAL_TOKENS = 64 };

struct row { /* one vector under construction */
    const struct assay_mla_vector *vector;
    const struct assay_minifloat *format;
    struct assay_stream *stream;
    uint64_t seed;
};

int64_t assay_mla_row_key(int64_t request, int64_t token)
{
    return request << TOKEN_BITS | token;
}

static int64_t request_of(const struct row *row)
{
    return row->vector->row_key >> TOKEN_BITS;
}

static int64_t token_of(const struct row *row)
{
    return row->vector->row_key & UINT32_MAX;
}

static void put(const struct row *row, int64_t i, double value)
{
    row->vector->element[i] =
        (uint16_t)assay_minifloat_encode(row->format, value, ASSAY_OVERFLOW_SATURATES);
}

static uint16_t sign_bit(uint32_t draw)
{
    return (uint16_t)(draw >> 31 << 15);
}

/* Scores have a standard deviation of 2.9 units of log 2 with scale count^-0.5. */
static void fill_normal(const struct row *row)
{
    const double size = row->vector->is_key ? 1 : 2;
    for (int64_t i = 0; i < row->vector->count; i++)
        put(row, i, size * assay_stream_normal(row->stream));
}

static void fill_uniform(const struct row *row)
{
    const double size = row->vector->is_key ? 1 : 6;
    for (int64_t i = 0; i < row->vector->count; i++)
        put(row, i, size * (2 * assay_stream_unit(row->stream) - 1));
}

static void fill_positive(const struct row *row)
{
    const double size = row->vector->is_key ? 1 : 6;
    for (int64_t i = 0; i < row->vector->count; i++)
        put(row, i, size * assay_stream_unit(row->stream));
}

/* +-2^e (1 to 2), with e evenly spread over @count values up to @largest. */
static void fill_log_uniform(const struct row *row, int largest, int count)
{
    for (int64_t i = 0; i < row->vector->count; i++) {
        const uint32_t draw = assay_stream_next(row->stream);
        const double significand = 1 + assay_stream_unit(row->stream);
        const double sign = draw >> 31 ? -1 : 1;
        put(row, i,
            sign * significand *
                assay_power_of_two(largest - (int)(draw % (uint32_t)count)));
    }
}

static void fill_wide(const struct row *row)
{
    if (row->vector->is_key)
        fill_log_uniform(row, 3, 24);
    else
        fill_log_uniform(row, 1, 16);
}

static void fill_outlier(const struct row *row)
{
    const double small = row->vector->is_key ? 0.25 : 0.5;
    for (int64_t i = 0; i < row->vector->count; i++) {
        const bool is_huge = assay_stream_next(row->stream) < UINT32_MAX / 64;
        const double value = assay_stream_normal(row->stream);
        put(row, i, (is_huge ? 8 : small) * value);
    }
}

/* Elements 2j and 2j + 1: a query holds v and -v (in the first pair and one of eight
 * others v twice), a key holds w twice: seven pairs of products in eight cancel. */
static void fill_cancel(const struct row *row)
{
    const double size = row->vector->is_key ? 1 : 4;
    for (int64_t i = 0; i < row->vector->count; i += 2) {
        const bool is_kept = assay_stream_next(row->stream) < UINT32_MAX / 8 || i == 0;
        const double value = size * assay_stream_normal(row->stream);
        put(row, i, value);
        if (i + 1 < row->vector->count)
            put(row, i + 1, row->vector->is_key || is_kept ? value : -value);
    }
}

/* Keys from the smallest subnormal to 2^18 times the smallest normal (f16: 2^7 times),
 * queries so large that scores are ordinary, but one in four, never that of row 0, is
 * subnormal itself. */
static void fill_subnormal(const struct row *row)
{
    const bool is_f16 = row->vector->format == ASSAY_F16;
    if (row->vector->is_key) {
        fill_log_uniform(row, is_f16 ? -8 : -115, is_f16 ? 17 : 19);
        return;
    }
    const bool is_subnormal =
        assay_stream_next(row->stream) < UINT32_MAX / 4 && row->vector->row_key != 0;
    const uint32_t mantissas = 1u << row->format->mantissa_bits;
    const double size = 1.2 * assay_power_of_two(is_f16 ? 10 : 117);
    for (int64_t i = 0; i < row->vector->count; i++) {
        const uint32_t draw = assay_stream_next(row->stream);
        put(row, i, size * assay_stream_normal(row->stream));
        if (is_subnormal)
            row->vector->element[i] =
                (uint16_t)(sign_bit(draw) | (draw >> 8 & (mantissas - 1)));
    }
}

/* Infinity, the largest value, the smallest one, zero, and for queries and odd requests
 * NaN. */
static uint16_t special_code(const struct row *row, uint32_t draw)
{
    const uint32_t largest = row->format->largest_finite,
                   nan = row->format->canonical_nan;
    const uint32_t codes[] = { largest + 1, largest, 1, 0, nan, nan };
    const bool may_be_nan = !row->vector->is_key || request_of(row) % 2;
    return (uint16_t)(sign_bit(draw) | codes[draw % (may_be_nan ? 6 : 4)]);
}

/* Of a request's keys one is odd, whoever has a say in how many keys there are. */
static bool is_special_key(const struct row *row)
{
    struct assay_stream stream;
    assay_stream_open(&stream, row->seed, "special key", "special", request_of(row));
    return token_of(row) == 1 + assay_stream_next(&stream) % (SPECIAL_TOKENS - 1);
}

static void fill_special(const struct row *row)
{
    const uint32_t chance = assay_stream_next(row->stream);
    const uint32_t place = assay_stream_next(row->stream);
    const uint32_t draw = assay_stream_next(row->stream);
    fill_normal(row);
    const bool is_special = row->vector->is_key
                                ? is_special_key(row)
                                : chance < UINT32_MAX / 8 && row->vector->row_key != 0;
    const int64_t i = (int64_t)((uint64_t)place * ASSAY_MLA_MAX_D_QK >> 32);
    if (is_special && i < row->vector->count)
        row->vector->element[i] = special_code(row, draw);
}

static void fill_zeros(const struct row *row)
{
    memset(row->vector->element, 0,
           (size_t)row->vector->count * sizeof(*row->vector->element));
}

/* Codes of magnitude 2^-3 to 2^4 by the request's own stream, plus one for odd tokens. */
static void fill_ties(const struct row *row)
{
    struct assay_stream shared;
    const uint32_t token = (uint32_t)token_of(row);
    const int mantissa_bits = row->format->mantissa_bits;
    if (!row->vector->is_key) {
        fill_zeros(row);
        return;
    }
    assay_stream_open(&shared, row->seed, "ties", "ties", request_of(row));
    for (int64_t i = 0; i < row->vector->count; i++) {
        const uint32_t draw = assay_stream_next(&shared);
        const uint32_t exponent = (uint32_t)row->format->bias - 3 + draw % 7;
        const uint32_t mantissa = draw >> 8 & ((1u << mantissa_bits) - 1);
        row->vector->element[i] =
            (uint16_t)(sign_bit(draw) |
                       ((exponent << mantissa_bits | mantissa) + (token & 1)));
    }
}

static void fill_exact(const struct row *row)
{
    if (!row->vector->is_key) {
        fill_zeros(row);
        return;
    }
    for (int64_t i = 0; i < row->vector->count; i++)
        put(row, i, (int)(assay_stream_next(row->stream) % 31) - 15);
}

/* The last 8 elements decide. Queries hold A there, A * softmax_scale = 1.44, the needle
 * 18 to 30: 299 to 499 units of log 2 (8 * 18 * 1.44 * log2 e = 299). Other keys hold
 * normal values there, below 3.4642: 58 units at most. Elsewhere queries are so small
 * that scores have a standard deviation of 1.44 units; 10 of them stay below 15. */
static void fill_needle(const struct row *row)
{
    const struct assay_mla_vector *const vector = row->vector;
    const double scale = (double)vector->softmax_scale;
    const double decisive = 1.44 / scale, other = 1 / (scale * sqrt(ASSAY_MLA_MAX_D_QK));
    for (int64_t i = 0; i < vector->count; i++) {
        const bool is_decisive = i >= vector->count - NEEDLE_DIMS;
        const double normal = assay_stream_normal(row->stream);
        const double unit = assay_stream_unit(row->stream);
        if (vector->is_key) {
            const double value = normal == 0 ? 1 : normal;
            put(row, i, is_decisive && vector->is_needle ? 18 + 12 * unit : value);
        } else
            put(row, i, is_decisive ? decisive : other * normal);
    }
}

/* Scores of two rows of largest values: 576 * 4 * 8 / 24, 1108 units of log 2. */
static void fill_runs(const struct row *row)
{
    const bool is_key = row->vector->is_key;
    const struct assay_run_range range =
        assay_run_range(row->vector->format, is_key ? 8 : 4, is_key ? 1 : 2);
    struct assay_runs runs;
    assay_runs_begin(&runs, row->stream);
    for (int64_t i = 0; i < row->vector->count; i++)
        row->vector->element[i] = (uint16_t)assay_runs_next(&runs, &range);
}

static void (*const fill_vector[ASSAY_DATA_KIND_COUNT])(const struct row *) = {
    [ASSAY_DATA_NORMAL] = fill_normal,     [ASSAY_DATA_UNIFORM] = fill_uniform,
    [ASSAY_DATA_WIDE] = fill_wide,         [ASSAY_DATA_OUTLIER] = fill_outlier,
    [ASSAY_DATA_CANCEL] = fill_cancel,     [ASSAY_DATA_SUBNORMAL] = fill_subnormal,
    [ASSAY_DATA_SPECIAL] = fill_special,   [ASSAY_DATA_TIES] = fill_ties,
    [ASSAY_DATA_POSITIVE] = fill_positive, [ASSAY_DATA_EXACT] = fill_exact,
    [ASSAY_DATA_RUNS] = fill_runs,         [ASSAY_DATA_ZERO] = fill_zeros,
    [ASSAY_DATA_NEEDLE] = fill_needle,
};

void assay_mla_fill_vector(const struct assay_mla_vector *vector,
                           enum assay_data_kind kind, uint64_t seed, const char *tensor)
{
    struct assay_stream stream;
    assert(kind < ASSAY_DATA_KIND_COUNT && fill_vector[kind]);
    assay_stream_open(&stream, seed, tensor, assay_data_kinds[kind].name,
                      vector->row_key);
    fill_vector[kind](
        &(struct row){ vector, assay_minifloat(vector->format), &stream, seed });
}

int64_t assay_mla_needle(uint64_t seed, int64_t request, int64_t tokens)
{
    struct assay_stream stream;
    assert(tokens > 0 && tokens <= UINT32_MAX);
    assay_stream_open(&stream, seed, "needle", "needle", request);
    return (int64_t)((uint64_t)assay_stream_next(&stream) * (uint64_t)tokens >> 32);
}

void assay_mla_fill_sink(const struct assay_tensor *attn_sink, enum assay_data_kind kind,
                         uint64_t seed)
{
    const struct assay_minifloat *const f32 = assay_minifloat(ASSAY_F32);
    const bool is_neutral = kind == ASSAY_DATA_EXACT || kind == ASSAY_DATA_NEEDLE;
    for (int64_t head = 0; head < attn_sink->shape[0]; head++) {
        struct assay_stream stream;
        assay_stream_open(&stream, seed, attn_sink->name, assay_data_kinds[kind].name,
                          head);
        const uint32_t choice = assay_stream_next(&stream) % 10;
        double value = assay_stream_normal(&stream);
        if (choice < 3) value = HUGE_VAL;
        if ((choice >= 3 && choice < 6) || is_neutral) value = -HUGE_VAL;
        if (kind == ASSAY_DATA_ZERO) value = 0;
        assay_tensor_set_bits(attn_sink, head,
                              assay_minifloat_encode(f32, value, ASSAY_OVERFLOW_SPECIAL));
    }
}

/* Four rounds of a balanced Feistel network permute 2^(2 * half_bits) numbers, at most
 * four times @count; following a cycle until it is back below @count permutes those. */
enum { ROUNDS = 4 };
struct network {
    uint32_t key[ROUNDS], half_bits, mask;
};

static struct network open_network(uint64_t seed, const char *name, int64_t count)
{
    struct network network = { .half_bits = 1 };
    struct assay_stream stream;
    assert(count > 0 && count <= INT32_MAX);
    assay_stream_open(&stream, seed, name, "shuffle", 0);
    for (int round = 0; round < ROUNDS; round++)
        network.key[round] = assay_stream_next(&stream);
    while (INT64_C(1) << 2 * network.half_bits < count)
        network.half_bits++;
    network.mask = (1u << network.half_bits) - 1;
    return network;
}

/* Wellons' hash lowbias32. */
static uint32_t mixed(const struct network *network, int round, uint32_t half)
{
    uint32_t word = (half ^ network->key[round]) * 0x7FEB352Du;
    word = (word ^ word >> 15) * 0x846CA68Bu;
    return (word ^ word >> 16) & network->mask;
}

int64_t assay_mla_shuffled(uint64_t seed, const char *name, int64_t count, int64_t index)
{
    const struct network network = open_network(seed, name, count);
    assert(index >= 0 && index < count);
    do {
        uint32_t left = (uint32_t)(index >> network.half_bits);
        uint32_t right = (uint32_t)index & network.mask;
        for (int round = 0; round < ROUNDS; round++) {
            const uint32_t next = left ^ mixed(&network, round, right);
            left = right;
            right = next;
        }
        index = (int64_t)left << network.half_bits | right;
    } while (index >= count);
    return index;
}

int64_t assay_mla_unshuffled(uint64_t seed, const char *name, int64_t count,
                             int64_t place)
{
    const struct network network = open_network(seed, name, count);
    assert(place >= 0 && place < count);
    do {
        uint32_t left = (uint32_t)(place >> network.half_bits);
        uint32_t right = (uint32_t)place & network.mask;
        for (int round = ROUNDS - 1; round >= 0; round--) {
            const uint32_t before = right ^ mixed(&network, round, left);
            right = left;
            left = before;
        }
        place = (int64_t)left << network.half_bits | right;
    } while (place >= count);
    return place;
}

void assay_mla_shuffle(uint64_t seed, const char *name, int64_t count, int32_t *order)
{
    for (int64_t i = 0; i < count; i++)
        order[i] = (int32_t)assay_mla_shuffled(seed, name, count, i);
}

float assay_mla_softmax_scale(const struct assay_case *the_case, int64_t d_qk)
{
    const double given = assay_case_fraction(the_case, "softmax_scale");
    return (float)(given == 0 ? 1 / sqrt((double)d_qk) : given);
}
