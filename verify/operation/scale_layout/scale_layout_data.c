/* SPDX-License-Identifier: MIT */
/* Scales for every kind of data: drawn by logical coordinates, the same in every layout
 * but for the mantissa, which packed scales have not. */
#include "ref/layout/scale_layout.h"
#include "verify/data/runs.h"
#include "verify/operation/scale_layout/scale_layout.h"

#include <assert.h>

enum { MANTISSA_BITS = 23, BIAS = 127 };

static const struct {
    bool is_known, is_packable;
    int lowest, exponents; /* 2^lowest and so many powers of two from there */
} kinds[ASSAY_DATA_KIND_COUNT] = {
    [ASSAY_DATA_NORMAL] = { true, true, -16, 16 },
    [ASSAY_DATA_UNIFORM] = { true, true, -4, 8 },
    [ASSAY_DATA_WIDE] = { true, true, -126, 254 },
    [ASSAY_DATA_OUTLIER] = { true, true, -12, 16 },
    [ASSAY_DATA_SUBNORMAL] = { true, false, -127, 16 },
    [ASSAY_DATA_SPECIAL] = { true, false, -16, 16 },
    [ASSAY_DATA_POSITIVE] = { true, true, -32, 32 },
    [ASSAY_DATA_EXACT] = { true, true, -8, 16 },
    [ASSAY_DATA_RUNS] = { true, true, -16, 16 },
    [ASSAY_DATA_ZERO] = { true, true, 0, 1 },
    [ASSAY_DATA_RECORDED] = { true, true, 0, 0 },
};

bool assay_scale_layout_has_data(enum assay_data_kind kind)
{
    return kinds[kind].is_known;
}

bool assay_scale_layout_has_packable_data(enum assay_data_kind kind)
{
    return kinds[kind].is_packable;
}

struct drawn { /* one scale */
    uint32_t exponent, mantissa;
};

static struct drawn draw_run_scale(struct assay_runs *runs)
{
    static const struct assay_scale_range range = { -126, 127, -16, 16 };
    const struct assay_run_scale scale = assay_runs_next_scale(runs, &range);
    return (struct drawn){ (uint32_t)(scale.exponent + BIAS), scale.mantissa };
}

static struct drawn draw_scale(struct assay_stream *stream, enum assay_data_kind kind)
{
    const bool is_power = kind == ASSAY_DATA_EXACT || kind == ASSAY_DATA_ZERO;
    const uint32_t draw = assay_stream_next(stream);
    const uint32_t mantissa = assay_stream_next(stream) >> (32 - MANTISSA_BITS);
    const int above = (int)((draw >> 8) % (uint32_t)kinds[kind].exponents);
    const bool is_huge = kind == ASSAY_DATA_OUTLIER && (draw & 63) == 0;
    const int exponent = is_huge ? 60 : kinds[kind].lowest + above;
    return (struct drawn){ (uint32_t)(exponent + BIAS), is_power ? 0 : mantissa };
}

/* What no quantiser writes, and every layout has to move all the same. */
static uint32_t special_scale(uint32_t draw, bool is_packed)
{
    static const uint32_t specials[] = { 0x00000000, 0x80000000, 0x7FC00001, 0x7F800000,
                                         0x00012345, 0xFF800000, 0xBE99999A, 0x00400000 };
    static const uint32_t codes[] = { 0, 1, 254, 255 };
    return is_packed ? codes[draw % 4] : specials[draw % 8];
}

struct target { /* where the scales go */
    const struct assay_scale_layout_problem *problem;
    const struct assay_tensor *sf;
    enum assay_data_kind kind;
    uint64_t seed;
};

/* One row in eight, never the first, has one special scale among its first four. */
static void fill_row(const struct target *target, int64_t group, int64_t row)
{
    const struct assay_scale_layout_problem *const problem = target->problem;
    const bool is_packed = problem->from == ASSAY_SCALE_PACKED_UE8M0;
    const bool has_no_mantissa =
        problem->to == ASSAY_SCALE_PACKED_UE8M0 && kinds[target->kind].is_packable;
    struct assay_stream stream;
    assay_stream_open(&stream, target->seed, target->sf->name,
                      assay_data_kinds[target->kind].name, group << 32 | row);
    const uint32_t chance = assay_stream_next(&stream);
    const uint32_t choice = assay_stream_next(&stream);
    const bool is_odd =
        target->kind == ASSAY_DATA_SPECIAL && row > 0 && chance < UINT32_MAX / 8;
    struct assay_runs runs;
    assay_runs_begin(&runs, &stream);
    for (int64_t k = 0; k < assay_scale_k_blocks(problem); k++) {
        const struct drawn drawn = target->kind == ASSAY_DATA_RUNS
                                       ? draw_run_scale(&runs)
                                       : draw_scale(&stream, target->kind);
        uint32_t scale = is_packed ? drawn.exponent
                                   : drawn.exponent << MANTISSA_BITS |
                                         (has_no_mantissa ? 0 : drawn.mantissa);
        if (is_odd && k == choice >> 30) scale = special_scale(choice, is_packed);
        assay_scale_store(problem->from, target->sf, group, row, k, scale);
    }
}

void assay_scale_layout_fill(const void *bound, enum assay_data_kind kind, uint64_t seed,
                             const struct assay_tensors *tensors)
{
    const struct assay_scale_layout_problem *const problem = bound;
    const struct target target = { problem, assay_tensors_find(tensors, "sf"), kind,
                                   seed };
    const int64_t groups = problem->groups ? problem->groups : 1;
    assert(kinds[kind].exponents > 0);
    for (int64_t group = 0; group < groups; group++)
        for (int64_t row = 0; row < assay_scale_rows(problem, problem->from); row++)
            fill_row(&target, group, row);
}
