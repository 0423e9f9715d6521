/* SPDX-License-Identifier: MIT */
/* Inputs of mla_absorb: one stream a logical row, a fixed number of draws an element, and
 * sizes that do not depend on the extents, so that a smaller case keeps the values it
 * shares. */
#include "ref/format/minifloat.h"
#include "verify/data/runs.h"
#include "verify/operation/mla_absorb/mla_absorb.h"

#include <assert.h>

enum { EXACT_GROUP = 4, MAX_PLACE_BITS = 8 };

struct row { /* of one tensor, under construction */
    const struct assay_tensor *tensor;
    struct assay_stream *stream;
    int64_t first, columns; /* element 0 of the row */
    int place;              /* of the tensor */
    double size;
};

static void put(const struct row *row, int64_t column, double value)
{
    assay_tensor_set_bits(row->tensor, row->first + column,
                          assay_minifloat_encode(assay_minifloat(row->tensor->format),
                                                 value, ASSAY_OVERFLOW_SPECIAL));
}

static void fill_normal(const struct row *row)
{
    for (int64_t k = 0; k < row->columns; k++)
        put(row, k, row->size * assay_stream_normal(row->stream));
}

static void fill_uniform(const struct row *row)
{
    for (int64_t k = 0; k < row->columns; k++)
        put(row, k, row->size * (2 * assay_stream_unit(row->stream) - 1));
}

static void fill_positive(const struct row *row)
{
    for (int64_t k = 0; k < row->columns; k++)
        put(row, k, row->size * assay_stream_unit(row->stream));
}

/* Queries and scores are zeros, and all weights 1 / n. A hidden state is one +-1 (or
 * nothing), so c_kv is of -1, 0, 1 and its sum over 256 tokens at most 256, which bf16
 * holds; w_uv has one +-1 in four, 256 in the longest row, so the same holds for v.
 * The others' integers only meet zeros. */
static void fill_exact(const struct row *row)
{
    const uint32_t draw = assay_stream_next(row->stream);
    const uint32_t place_bits = draw % (MAX_PLACE_BITS + 1);
    const int64_t place = draw >> 8 & ((1u << place_bits) - 1);
    uint32_t group = 0;
    for (int64_t k = 0; k < row->columns; k++) {
        const uint32_t own = assay_stream_next(row->stream);
        const double sign = own >> 31 ? -1 : 1;
        if (k % EXACT_GROUP == 0) group = own % EXACT_GROUP;
        switch (row->place) {
        case ASSAY_MLA_ABSORB_HIDDEN: put(row, k, k == place ? sign : 0); break;
        case ASSAY_MLA_ABSORB_W_UV:
            put(row, k, k % EXACT_GROUP == group ? sign : 0);
            break;
        case ASSAY_MLA_ABSORB_W_UQ:
        case ASSAY_MLA_ABSORB_W_QR: put(row, k, 0); break;
        default: put(row, k, own % 3 ? sign : 0); break;
        }
    }
}

static void fill_runs(const struct row *row)
{
    const struct assay_run_range range =
        assay_run_range(row->tensor->format, 4 * row->size, row->size);
    struct assay_runs runs;
    assay_runs_begin(&runs, row->stream);
    for (int64_t k = 0; k < row->columns; k++)
        assay_tensor_set_bits(row->tensor, row->first + k,
                              assay_runs_next(&runs, &range));
}

static void fill_zeros(const struct row *row)
{
    for (int64_t k = 0; k < row->columns; k++)
        put(row, k, 0);
}

static void (*const fill_row[ASSAY_DATA_KIND_COUNT])(const struct row *) = {
    [ASSAY_DATA_NORMAL] = fill_normal,     [ASSAY_DATA_UNIFORM] = fill_uniform,
    [ASSAY_DATA_POSITIVE] = fill_positive, [ASSAY_DATA_EXACT] = fill_exact,
    [ASSAY_DATA_RUNS] = fill_runs,         [ASSAY_DATA_ZERO] = fill_zeros,
};

/* Rows of all but the last dimension; the first of three has a key of its own. */
static void fill_tensor(const struct assay_tensor *tensor, int place,
                        enum assay_data_kind kind, uint64_t seed, double size)
{
    const int64_t columns = tensor->shape[tensor->rank - 1];
    const int64_t rows = tensor->shape[tensor->rank - 2];
    const int64_t heads = tensor->rank == 3 ? tensor->shape[0] : 1;
    for (int64_t i = 0; i < heads * rows; i++) {
        struct assay_stream stream;
        assay_stream_open(&stream, seed, tensor->name, assay_data_kinds[kind].name,
                          i / rows << 32 | i % rows);
        fill_row[kind](
            &(struct row){ tensor, &stream, i * columns, columns, place, size });
    }
}

/* --- the rotation ----------------------------------------------------------------- */

struct turn { /* cos + i sin */
    double cosine, sine;
};

static struct turn then(struct turn a, struct turn b)
{
    return (struct turn){ a.cosine * b.cosine - a.sine * b.sine,
                          a.cosine * b.sine + a.sine * b.cosine };
}

/* By 2 atan x with x = 1/2, 3/8, 1/4, 3/16 ..., a rational point of the circle: pair by
 * pair about 3 in 4, as 10000^(-2 i / 64) falls. No libm: the same bits everywhere. */
static struct turn turn_of_pair(int64_t pair)
{
    const double x = (pair % 2 ? 0.75 : 1) * assay_power_of_two(-1 - (int)(pair / 2));
    return (struct turn){ (1 - x * x) / (1 + x * x), 2 * x / (1 + x * x) };
}

/* @position times the pair's turn, by squaring; within 2^-40, then rounded to f32. */
static struct turn turn_at(int64_t position, int64_t pair)
{
    struct turn total = { 1, 0 }, power = turn_of_pair(pair);
    for (; position; position >>= 1) {
        if (position & 1) total = then(total, power);
        power = then(power, power);
    }
    return total;
}

static void fill_turns(const struct assay_tensor *cosine, const struct assay_tensor *sine)
{
    const int64_t pairs = cosine->shape[1];
    const struct assay_minifloat *const f32 = assay_minifloat(ASSAY_F32);
    for (int64_t i = 0; i < cosine->shape[0] * pairs; i++) {
        const struct turn turn = turn_at(i / pairs, i % pairs);
        assay_tensor_set_bits(
            cosine, i, assay_minifloat_encode(f32, turn.cosine, ASSAY_OVERFLOW_SPECIAL));
        assay_tensor_set_bits(
            sine, i, assay_minifloat_encode(f32, turn.sine, ASSAY_OVERFLOW_SPECIAL));
    }
}

void assay_mla_absorb_fill(const void *problem, enum assay_data_kind kind, uint64_t seed,
                           const struct assay_tensors *tensors)
{
    const struct assay_mla_absorb_case *const absorb = problem;
    assert(kind < ASSAY_DATA_KIND_COUNT && fill_row[kind]);
    for (int i = 0; i < ASSAY_MLA_ABSORB_COS; i++) {
        const bool is_weight = i != ASSAY_MLA_ABSORB_HIDDEN;
        fill_tensor(&tensors->item[i], i, kind, seed,
                    is_weight ? assay_power_of_two(absorb->weight_exponent) : 1);
    }
    fill_turns(&tensors->item[ASSAY_MLA_ABSORB_COS],
               &tensors->item[ASSAY_MLA_ABSORB_SIN]);
}
