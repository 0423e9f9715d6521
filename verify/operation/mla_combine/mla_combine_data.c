/* SPDX-License-Identifier: MIT */
/* Inputs of mla_combine: one stream a split, token and head, and the same number of draws
 * for every element, so that a smaller case keeps the values it shares; and which inputs
 * are legal. */
#include "ref/unit/scalar.h"
#include "verify/data/runs.h"
#include "verify/operation/mla/mla_data.h"
#include "verify/operation/mla_combine/mla_combine.h"

#include <math.h>

struct row { /* one split of one token and head, under construction */
    const struct assay_mla_combine_problem *problem;
    enum assay_data_kind kind;
    uint64_t seed;
    int64_t request, split, splits; /* splits of the request */
    int64_t token, head;
    float *partial;
    struct assay_stream stream;
    struct assay_runs partials, lses; /* kind runs: along columns, along heads */
};

/* Splits are at most 160, tokens and heads at most 4096. */
static int64_t key_of(const struct row *row, int64_t split)
{
    return row->request << 40 | split << 32 | row->token << 16 | row->head;
}

static void open_stream(const struct row *row, struct assay_stream *stream,
                        const char *name, int64_t split)
{
    assay_stream_open(stream, row->seed, name, assay_data_kinds[row->kind].name,
                      key_of(row, split));
}

static double binades(struct assay_stream *stream, int lowest, int count)
{
    const uint32_t draw = assay_stream_next(stream);
    const double significand = 1 + (draw >> 9) * 0x1p-23;
    const double sign = draw & 1 ? -1 : 1;
    return sign * significand *
           assay_power_of_two(lowest + (int)(draw >> 1 & 0xFF) % count);
}

/* Half way between two neighbours of the output format; one in eight a little above. */
static double tie(struct assay_stream *stream, enum assay_format format)
{
    const int bits = format == ASSAY_BF16 ? 8 : 11; /* of a significand */
    const uint32_t draw = assay_stream_next(stream);
    const uint32_t significand = 1u << (bits - 1) | draw >> (32 - bits + 1);
    const double quarters = 4.0 * significand + 2 + ((draw & 7) == 0);
    return (draw & 8 ? -quarters : quarters) * assay_power_of_two(-bits - 1);
}

static double special(struct row *row, double value, int64_t column)
{
    static const uint32_t specials[] = { 0x7FC00000, 0x7F800000, 0xFF800000, 0xFFC00001,
                                         0x80000000, 0x7F7FFFFF, 0x00000001, 0x807FFFFF };
    struct assay_stream stream;
    if (key_of(row, row->split) == 0) return value;
    open_stream(row, &stream, "special", row->split);
    const bool is_odd = assay_stream_next(&stream) < UINT32_MAX / 8;
    const uint32_t draw = assay_stream_next(&stream);
    if (!is_odd || (int64_t)(draw % ASSAY_MLA_D_V) != column) return value;
    return (double)assay_f32_from_bits(specials[draw >> 29]);
}

static double subnormal(struct row *row, int64_t column)
{
    const double value = assay_stream_normal(&row->stream);
    switch (column % 4) {
    case 1: return value * 0x1p-20; /* results are subnormal in f16 */
    case 2: return value * 0x1p-125;
    case 3: return value * 0x1p-132;
    default: return value;
    }
}

/* Splits 2j and 2j + 1 cancel but in one column of 16. */
static double cancelling(struct row *row, int64_t column)
{
    const double value = assay_stream_normal(&row->stream);
    return row->split % 2 && column % 16 ? -value : value;
}

static double run_value(struct assay_runs *runs, double largest, double ordinary)
{
    const struct assay_run_range range = assay_run_range(ASSAY_F32, largest, ordinary);
    return (double)assay_f32_from_bits(assay_runs_next(runs, &range));
}

static double partial_of(struct row *row, int64_t column)
{
    struct assay_stream *const stream = &row->stream;
    const bool is_f16 = row->problem->format == ASSAY_F16;
    switch (row->kind) {
    case ASSAY_DATA_UNIFORM: return 2 * assay_stream_unit(stream) - 1;
    case ASSAY_DATA_WIDE: return binades(stream, is_f16 ? -26 : -120, is_f16 ? 40 : 240);
    case ASSAY_DATA_OUTLIER:
        return (column % 64 ? 1 : 1000) * assay_stream_normal(stream);
    case ASSAY_DATA_CANCEL: return cancelling(row, column);
    case ASSAY_DATA_SUBNORMAL: return subnormal(row, column);
    case ASSAY_DATA_SPECIAL: return special(row, assay_stream_normal(stream), column);
    case ASSAY_DATA_TIES: return tie(stream, row->problem->format);
    case ASSAY_DATA_POSITIVE: return 0.5 + assay_stream_unit(stream);
    case ASSAY_DATA_EXACT: return (double)(assay_stream_next(stream) % 17) - 8;
    case ASSAY_DATA_RUNS: return run_value(&row->partials, is_f16 ? 0x1p14 : 0x1p120, 1);
    case ASSAY_DATA_ZERO: return 0;
    default: return assay_stream_normal(stream);
    }
}

/* In base 2. All splits of a row have one lse where weights are to be equal. */
static double lse_of(struct row *row)
{
    if (row->kind == ASSAY_DATA_RUNS) return run_value(&row->lses, 160, 3);
    if (row->kind == ASSAY_DATA_ZERO) return 0;
    struct assay_stream stream;
    const bool is_shared = row->kind == ASSAY_DATA_EXACT;
    const int64_t pair = row->kind == ASSAY_DATA_CANCEL ? row->split / 2 : row->split;
    open_stream(row, &stream, "lseaccum", is_shared ? 0 : pair);
    const uint32_t choice = assay_stream_next(&stream);
    switch (row->kind) {
    case ASSAY_DATA_UNIFORM:
    case ASSAY_DATA_SPECIAL: return 2 * assay_stream_unit(&stream) - 1;
    case ASSAY_DATA_WIDE: return 320 * assay_stream_unit(&stream) - 160;
    case ASSAY_DATA_OUTLIER: return (choice % 8 ? 0 : 24) + assay_stream_normal(&stream);
    case ASSAY_DATA_SUBNORMAL:
        return (row->split % 2 ? -126 : 0) + assay_stream_normal(&stream);
    case ASSAY_DATA_EXACT: return (double)(choice % 17) - 8;
    default: return 3 + 2 * assay_stream_normal(&stream);
    }
}

/* Exact weights need a power of two of splits with keys, ties one. */
static bool is_empty(const struct row *row, double share)
{
    struct assay_stream stream;
    if (row->kind == ASSAY_DATA_TIES) {
        open_stream(row, &stream, "chosen", 0);
        return (int64_t)((uint64_t)assay_stream_next(&stream) * (uint64_t)row->splits >>
                         32) != row->split;
    }
    if (row->kind == ASSAY_DATA_EXACT) {
        int64_t power = 1;
        while (2 * power <= row->splits)
            power *= 2;
        return row->split >= power;
    }
    open_stream(row, &stream, "empty", row->split);
    return assay_stream_unit(&stream) < share;
}

static void fill_row(struct row *row, double share, float *lse)
{
    const bool has_no_key = is_empty(row, share);
    const float weight = (float)lse_of(row);
    *lse = has_no_key ? -INFINITY : weight;
    open_stream(row, &row->stream, "oaccum",
                row->kind == ASSAY_DATA_CANCEL ? row->split / 2 : row->split);
    assay_runs_begin(&row->partials, &row->stream);
    for (int64_t column = 0; column < ASSAY_MLA_D_V; column++)
        row->partial[column] = has_no_key ? 0 : (float)partial_of(row, column);
}

static void fill_request(struct row *row, double share, int64_t first,
                         const struct assay_tensors *tensors)
{
    const struct assay_tensor *const oaccum = &tensors->item[ASSAY_COMBINE_OACCUM];
    const struct assay_tensor *const lseaccum = &tensors->item[ASSAY_COMBINE_LSEACCUM];
    for (row->split = 0; row->split < row->splits; row->split++)
        for (row->token = 0; row->token < row->problem->s_q; row->token++) {
            row->head = 0;
            open_stream(row, &row->stream, "lseaccum", row->split);
            assay_runs_begin(&row->lses, &row->stream);
            for (; row->head < row->problem->h_q; row->head++) {
                const int64_t at = first + row->split;
                row->partial = (float *)oaccum->data + at * oaccum->stride[0] +
                               row->token * oaccum->stride[1] +
                               row->head * oaccum->stride[2];
                fill_row(row, share,
                         (float *)lseaccum->data + at * lseaccum->stride[0] +
                             row->token * lseaccum->stride[1] +
                             row->head * lseaccum->stride[2]);
            }
        }
}

void assay_mla_combine_fill(const void *problem, enum assay_data_kind kind, uint64_t seed,
                            const struct assay_tensors *tensors)
{
    const struct assay_mla_combine_case *const given = problem;
    const struct assay_tensor *const num_splits =
        &tensors->item[ASSAY_COMBINE_NUM_SPLITS];
    const double share = (double)given->empty / (double)ASSAY_FRACTION_UNIT;
    int64_t first = 0;
    assay_tensor_set_bits(num_splits, 0, 0);
    for (int64_t i = 0; i < given->problem.b; i++) {
        struct row row = { .problem = &given->problem,
                           .kind = kind,
                           .seed = seed,
                           .request = i,
                           .splits = given->splits[given->splits_count == 1 ? 0 : i] };
        fill_request(&row, share, first, tensors);
        first += row.splits;
        assay_tensor_set_bits(num_splits, i + 1, (uint32_t)first);
    }
    if (given->problem.has_sink)
        assay_mla_fill_sink(&tensors->item[ASSAY_COMBINE_SINK], kind, seed);
}

/* One split of a row has all the weight, or equal weights are powers of two. */
bool assay_mla_combine_is_exact(const void *problem, enum assay_data_kind kind,
                                int output)
{
    const struct assay_mla_combine_case *const given = problem;
    if (output != ASSAY_COMBINE_OUT) return false;
    return kind == ASSAY_DATA_EXACT ||
           (kind == ASSAY_DATA_TIES && !given->problem.has_sink);
}

static enum assay_status check_splits(const struct assay_mla_combine_problem *problem,
                                      const struct assay_tensor *num_splits,
                                      struct assay_message *message)
{
    int64_t last = 0;
    if (assay_tensor_bits(num_splits, 0) != 0)
        return assay_fail(message, ASSAY_REFUSED,
                          "num_splits begins with %d; it must begin with 0",
                          (int32_t)assay_tensor_bits(num_splits, 0));
    for (int64_t i = 0; i < problem->b; i++) {
        const int64_t end = (int32_t)assay_tensor_bits(num_splits, i + 1);
        if (end <= last || end - last > ASSAY_MLA_MAX_PARTS)
            return assay_fail(
                message, ASSAY_REFUSED,
                "num_splits give request %lld the splits from %lld to below "
                "%lld; it must have 1 to %d of them",
                (long long)i, (long long)last, (long long)end, ASSAY_MLA_MAX_PARTS);
        last = end;
    }
    if (last != problem->splits)
        return assay_fail(message, ASSAY_REFUSED,
                          "num_splits end with %lld; they must count all %lld splits",
                          (long long)last, (long long)problem->splits);
    return ASSAY_RAN;
}

enum assay_status assay_mla_combine_check_inputs(const void *problem,
                                                 const struct assay_tensors *tensors,
                                                 struct assay_message *message)
{
    const struct assay_mla_combine_case *const given = problem;
    const struct assay_tensor *const lseaccum = &tensors->item[ASSAY_COMBINE_LSEACCUM];
    const int64_t rows = given->problem.s_q * given->problem.h_q;
    const enum assay_status status =
        check_splits(&given->problem, &tensors->item[ASSAY_COMBINE_NUM_SPLITS], message);
    if (status != ASSAY_RAN) return status;
    for (int64_t i = 0; i < given->problem.splits * rows; i++) {
        const float lse = assay_f32_from_bits(assay_tensor_bits(lseaccum, i));
        if (isnan(lse) || lse == INFINITY)
            return assay_fail(
                message, ASSAY_REFUSED,
                "lseaccum of split %lld, token %lld, head %lld is %s; it must "
                "be finite or -infinity, or use unsafe=1",
                (long long)(i / rows), (long long)(i % rows / given->problem.h_q),
                (long long)(i % given->problem.h_q), isnan(lse) ? "NaN" : "+infinity");
    }
    return ASSAY_RAN;
}
