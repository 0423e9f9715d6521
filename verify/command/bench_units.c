/* SPDX-License-Identifier: MIT */
/* The hardware units' models under the clock, beside OpenBLAS's sgemm of the same run: a
 * ratio says more than seconds of a machine nobody else has. */
#include "ref/format/minifloat.h"
#include "ref/unit/dot_tile.h"
#include "verify/command/bench.h"
#include "verify/data/stream.h"
#include "verify/operation/parts.h"

#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TILE_ROWS = 64, TILE_COLUMNS = 64, TILE_K = 1024, SGEMM_SIZE = 1024 };
enum { MAX_TILES = 4096 };
static const double tile_multiply_adds = (double)TILE_ROWS * TILE_COLUMNS * TILE_K;
static const double sgemm_multiply_adds = (double)SGEMM_SIZE * SGEMM_SIZE * SGEMM_SIZE;
static const double sample_seconds = 0.02; /* long enough for clock and scheduler */
static const char unit_of_rate[] = "multiply-adds/s";

/* Rows of a and of b, K codes each, as they are stored and decoded for the unit. */
struct tile {
    const struct assay_dot_add *profile;
    struct assay_tensor a, b;
    struct assay_operand *a_operands, *b_operands;
};

/* d[64][64], f32 bits, by chains of the exact dot-add. */
static void slow_tile(const struct tile *tile, uint32_t *d)
{
    for (int row = 0; row < TILE_ROWS; row++)
        for (int column = 0; column < TILE_COLUMNS; column++) {
            const struct assay_operand *const a = tile->a_operands + row * TILE_K;
            const struct assay_operand *const b = tile->b_operands + column * TILE_K;
            uint32_t sum = 0;
            for (int k = 0; k < TILE_K; k += tile->profile->terms)
                sum = assay_dot_add(tile->profile, sum, a + k, b + k);
            d[row * TILE_COLUMNS + column] = sum;
        }
}

static void compute_tile(const struct tile *tile, uint32_t *d)
{
    if (!assay_dot_tile_serves(tile->profile, tile->a.format, tile->b.format)) {
        slow_tile(tile, d);
        return;
    }
    memset(d, 0, TILE_ROWS * TILE_COLUMNS * sizeof *d);
    const struct assay_dot_tile job = {
        .profile = tile->profile,
        .format_a = tile->a.format,
        .format_b = tile->b.format,
        .rows = TILE_ROWS,
        .columns = TILE_COLUMNS,
        .k = TILE_K,
        .a = tile->a.data,
        .b = tile->b.data,
        .a_stride = { TILE_K, 1 },
        .b_stride = { TILE_K, 1 },
        .accumulator = d,
        .accumulator_stride = TILE_COLUMNS,
    };
    assay_dot_tile(&job);
}

static const struct {
    const char *profile;
    enum assay_format a, b;
} operand_pairs[] = {
    { "hopper-fp8", ASSAY_E4M3, ASSAY_E4M3 },  { "hopper-fp8", ASSAY_E5M2, ASSAY_E5M2 },
    { "hopper-fp8", ASSAY_E4M3, ASSAY_E5M2 },  { "hopper-fp8", ASSAY_E5M2, ASSAY_E4M3 },
    { "hopper-bf16", ASSAY_BF16, ASSAY_BF16 }, { "hopper-f16", ASSAY_F16, ASSAY_F16 },
    { "hopper-tf32", ASSAY_TF32, ASSAY_TF32 },
};

static struct assay_operand *fill_operand(const struct assay_dot_add *profile,
                                          struct assay_tensor *tensor)
{
    const enum assay_format format = tensor->format;
    const int64_t elements = assay_tensor_elements(tensor);
    struct assay_operand *const operands = calloc((size_t)elements, sizeof *operands);
    struct assay_stream stream;

    tensor->data = calloc((size_t)elements, assay_format_bytes(format));
    assay_stream_open(&stream, 0, tensor->name, "bench", 0);
    for (int64_t i = 0; operands && tensor->data && i < elements; i++) {
        const uint32_t code =
            assay_minifloat_encode(assay_minifloat(format), assay_stream_normal(&stream),
                                   ASSAY_OVERFLOW_SATURATES);
        assay_tensor_set_bits(tensor, i, format == ASSAY_TF32 ? code << 13 : code);
        operands[i] = assay_operand_decode(profile, format, assay_tensor_bits(tensor, i));
    }
    return operands;
}

static struct assay_tensor operand_tensor(const char *name, enum assay_format format,
                                          int64_t rows)
{
    struct assay_tensor tensor = {
        .name = name, .format = format, .rank = 2, .shape = { rows, TILE_K }
    };
    assay_tensor_set_dense(&tensor);
    return tensor;
}

static struct tile open_tile(const char *profile, enum assay_format a,
                             enum assay_format b)
{
    struct tile tile = {
        .profile = assay_dot_add_find(profile),
        .a = operand_tensor("a", a, TILE_ROWS),
        .b = operand_tensor("b", b, TILE_COLUMNS),
    };
    tile.a_operands = fill_operand(tile.profile, &tile.a);
    tile.b_operands = fill_operand(tile.profile, &tile.b);
    return tile;
}

static void close_tile(struct tile *tile)
{
    free(tile->a.data);
    free(tile->b.data);
    free(tile->a_operands);
    free(tile->b_operands);
}

struct tiles { /* the same tile so many times, on one thread or on all */
    const struct tile *tile;
    int count;
    bool is_parallel;
    uint32_t result[MAX_TILES]; /* read by nobody, so that nothing is optimised away */
};

static enum assay_status work_on_tile(void *context, int64_t part)
{
    struct tiles *const tiles = context;
    uint32_t d[TILE_ROWS * TILE_COLUMNS];
    compute_tile(tiles->tile, d);
    tiles->result[part] = d[TILE_ROWS * TILE_COLUMNS - 1];
    return ASSAY_RAN;
}

static enum assay_status work_on_tiles(void *context)
{
    struct tiles *const tiles = context;
    if (tiles->is_parallel) return assay_for_each_part(tiles->count, work_on_tile, tiles);
    for (int i = 0; i < tiles->count; i++)
        work_on_tile(tiles, i);
    return ASSAY_RAN;
}

struct sgemm {
    float *a, *b, *c;
};

static enum assay_status work_on_sgemm(void *context)
{
    const struct sgemm *const sgemm = context;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, SGEMM_SIZE, SGEMM_SIZE,
                SGEMM_SIZE, 1, sgemm->a, SGEMM_SIZE, sgemm->b, SGEMM_SIZE, 0, sgemm->c,
                SGEMM_SIZE);
    return ASSAY_RAN;
}

static float *random_matrix(const char *name)
{
    const size_t elements = (size_t)SGEMM_SIZE * SGEMM_SIZE;
    float *const matrix = malloc(elements * sizeof *matrix);
    struct assay_stream stream;
    assay_stream_open(&stream, 0, name, "bench", 0);
    for (size_t i = 0; matrix && i < elements; i++)
        matrix[i] = (float)assay_stream_normal(&stream);
    return matrix;
}

/* Rate of OpenBLAS's sgemm on one thread: 3 warm-ups, median of 5. */
static enum assay_status measure_sgemm(struct assay_bench_output *output, double *rate,
                                       struct assay_message *message)
{
    static const struct assay_timing timing = { .warm_ups = 3, .repeats = 5 };
    struct sgemm sgemm = { random_matrix("a"), random_matrix("b"), random_matrix("c") };
    enum assay_status status = ASSAY_OUT_OF_MEMORY;
    double seconds = 0;

    openblas_set_num_threads(1);
    if (sgemm.a && sgemm.b && sgemm.c)
        status = assay_median_seconds(&timing, work_on_sgemm, &sgemm, &seconds);
    free(sgemm.a);
    free(sgemm.b);
    free(sgemm.c);
    if (status != ASSAY_RAN)
        return assay_fail(message, status, "no memory for sgemm's matrices");
    *rate = sgemm_multiply_adds / seconds;
    const struct assay_measurement measurement = {
        .op = "sgemm",
        .case_line = "sgemm m=1024 n=1024 k=1024",
        .candidate = "openblas",
        .threads = 1,
        .seconds = seconds,
        .rate = *rate,
        .unit = unit_of_rate,
        .ratio_one_core = -1,
    };
    return assay_bench_output_add(output, &measurement, message);
}

/* So many tiles that a sample takes long enough. */
static enum assay_status choose_count(struct tiles *tiles)
{
    static const struct assay_timing once = { .warm_ups = 1, .repeats = 1 };
    double seconds;
    tiles->count = 1;
    const enum assay_status status =
        assay_median_seconds(&once, work_on_tiles, tiles, &seconds);
    if (status == ASSAY_RAN)
        tiles->count = (int)fmin(fmax(ceil(sample_seconds / seconds), 1), 256);
    return status;
}

static enum assay_status measure_threads(const char *name, struct tiles *tiles,
                                         int threads, double sgemm_rate,
                                         const struct assay_timing *timing,
                                         struct assay_bench_output *output,
                                         struct assay_message *message)
{
    char line[160];
    double seconds;

    const enum assay_status status =
        assay_median_seconds(timing, work_on_tiles, tiles, &seconds);
    if (status != ASSAY_RAN) return status;
    snprintf(line, sizeof line, "%s a_format=%s b_format=%s m=%d n=%d k=%d", name,
             assay_format_name(tiles->tile->a.format),
             assay_format_name(tiles->tile->b.format), TILE_ROWS, TILE_COLUMNS, TILE_K);
    const double rate = tile_multiply_adds * tiles->count / seconds;
    const struct assay_measurement measurement = {
        .op = name,
        .case_line = line,
        .candidate = "model",
        .threads = threads,
        .seconds = seconds / tiles->count,
        .rate = rate,
        .unit = unit_of_rate,
        .ratio_one_core = tiles->is_parallel ? -1 : rate / sgemm_rate,
    };
    return assay_bench_output_add(output, &measurement, message);
}

static enum assay_status measure_tile(const char *name, const struct tile *tile,
                                      double sgemm_rate,
                                      const struct assay_timing *timing,
                                      struct assay_bench_output *output,
                                      struct assay_message *message)
{
    const int all = omp_get_max_threads();
    struct tiles *const tiles = calloc(1, sizeof *tiles);
    const bool has_memory =
        tiles && tile->a.data && tile->b.data && tile->a_operands && tile->b_operands;
    if (!has_memory) {
        free(tiles);
        return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for a tile");
    }
    tiles->tile = tile;
    enum assay_status status = choose_count(tiles);
    if (status == ASSAY_RAN)
        status = measure_threads(name, tiles, 1, sgemm_rate, timing, output, message);
    tiles->is_parallel = true;
    tiles->count = (int)fmin((double)tiles->count * all, MAX_TILES);
    if (status == ASSAY_RAN)
        status = measure_threads(name, tiles, all, sgemm_rate, timing, output, message);
    free(tiles);
    return status;
}

static enum assay_status run_wgmma(const char *name, const struct assay_timing *timing,
                                   struct assay_bench_output *output,
                                   struct assay_message *message)
{
    double sgemm_rate = 0;
    enum assay_status status = measure_sgemm(output, &sgemm_rate, message);
    const size_t count = sizeof operand_pairs / sizeof *operand_pairs;
    for (size_t i = 0; i < count && status == ASSAY_RAN; i++) {
        struct tile tile =
            open_tile(operand_pairs[i].profile, operand_pairs[i].a, operand_pairs[i].b);
        status = measure_tile(name, &tile, sgemm_rate, timing, output, message);
        close_tile(&tile);
    }
    return status;
}

const struct assay_unit_bench assay_unit_benches[] = {
    { "wgmma", "the dot-add of one 64 x 64 tile, K = 1024", run_wgmma },
    { NULL, NULL, NULL },
};
