/* SPDX-License-Identifier: MIT */
#include "gpu/gemm/configuration.h"

#include <cmath>

namespace gemm {

enum : int { L2_BYTES_A_CYCLE = 48, SHARED_BYTES_A_CYCLE = 128 };
enum : int { TILE_CYCLES = 2000, CHAIN_CYCLES = 250 };
/* By scale form: of 64 rows' additions, while the tensor core takes the registers'
 * bandwidth, and of 1D1D's scales besides. */
static const double add_cycles_a_column[] = { 1.7, 4 };

static const configuration *const tables[] = { kernels_1d2d, kernels_1d1d, kernels_e5m2 };

static double divide_up(double value, double by)
{
    return std::ceil(value / by);
}

/* The groups of CONTIGUOUS begin at multiples of 128 rows: a tile has one group's b. */
static bool fits(const configuration &one, const problem &of)
{
    return one.form == of.form && one.a_is_e5m2 == of.a_is_e5m2 &&
           one.b_is_e5m2 == of.b_is_e5m2 && (of.kind != CONTIGUOUS || one.block_m <= 128);
}

/* Of one block of K of one tile. */
static double block_cycles(const configuration &one, int cluster)
{
    const double m = one.block_m, n = one.block_n, instructions = m / 64 * 4;
    const double slabs = one.block_m > 128 ? 2 : 1;
    const double tensor_core = instructions * std::fmax(n / 2, 32);
    const double shared =
        (instructions * (64 + n) * 32 + (m + n) * BLOCK_K) / SHARED_BYTES_A_CYCLE;
    const double added = slabs * add_cycles_a_column[one.form] * n;
    const double fetched = (m / cluster + n) * BLOCK_K / L2_BYTES_A_CYCLE;
    const double chain = slabs * (4 * std::fmax(n / 2, 32) + n / 2 + CHAIN_CYCLES);
    return std::fmax(std::fmax(tensor_core, shared) + added, std::fmax(fetched, chain));
}

static double tiles_of(const configuration &one, const problem &of, int cluster)
{
    const bool is_one = of.kind == DENSE || of.kind == CONTIGUOUS;
    const double groups = is_one ? 1 : (double)of.groups;
    const double columns =
        divide_up(divide_up((double)of.n, one.block_n), cluster) * cluster;
    return groups * divide_up((double)of.valid_m / groups, one.block_m) * columns;
}

static double cycles(const configuration &one, const problem &of, int multiprocessors,
                     int cluster)
{
    const double groups = of.kind == K_GROUPED ? (double)of.groups : 1;
    const double blocks = divide_up((double)of.k / groups, BLOCK_K);
    const double waves = divide_up(tiles_of(one, of, cluster), multiprocessors);
    return waves * (blocks * block_cycles(one, cluster) + TILE_CYCLES);
}

/* Rows of tiles for which what all blocks read at a time is smallest. */
static int band_of(const configuration &one, int multiprocessors, int cluster)
{
    int best = 1;
    double least = INFINITY;
    for (int band = 1; band <= 32; band++) {
        const double columns = divide_up(multiprocessors, band * cluster) * cluster;
        const double rows_read = (double)band * one.block_m + columns * one.block_n;
        if (rows_read < least) least = rows_read, best = band;
    }
    return best;
}

static choice choice_of(const configuration &one, int multiprocessors, int cluster)
{
    return { &one, cluster, band_of(one, multiprocessors, cluster) };
}

/* Clusters pay where a multiprocessor gets several tiles, and those of a are large. With
 * one tile each, waiting for the other block costs more than L2 gains, and in 1D1D L2 is
 * not what is waited for. */
static bool may_share(const configuration &one, const problem &of, int multiprocessors)
{
    return of.form == SCALE_1D2D && of.n > one.block_n && one.block_m >= 128 &&
           tiles_of(one, of, 2) > multiprocessors;
}

choice choose(const problem &of, int multiprocessors)
{
    choice best = {};
    double least = INFINITY;
    for (const configuration *const table : tables)
        for (const configuration *one = table; one->kernel; one++)
            for (int cluster = 1; cluster <= 2 && fits(*one, of); cluster++) {
                const double taken = cycles(*one, of, multiprocessors, cluster);
                if (cluster == 1 ? taken >= least : taken > least) continue;
                if (cluster > 1 && !may_share(*one, of, multiprocessors)) continue;
                least = taken;
                best = choice_of(*one, multiprocessors, cluster);
            }
    return best;
}

static bool is_asked(const configuration &one, const char *tile)
{
    char own[32];
    std::snprintf(own, sizeof(own), "%dx%d", one.block_m, one.block_n);
    return std::strcmp(own, tile) == 0;
}

bool choose_asked(const assay_call *call, const problem &of, int multiprocessors,
                  choice *chosen)
{
    char tile[32], cluster[8];
    const bool has_tile =
        assay_plugin_setting(call->options, ',', "tile", tile, sizeof(tile));
    const bool has_cluster =
        assay_plugin_setting(call->options, ',', "cluster", cluster, sizeof(cluster));
    *chosen = choose(of, multiprocessors);
    if (!chosen->kernel) return false;
    if (has_tile) {
        const configuration *found = nullptr;
        for (const configuration *const table : tables)
            for (const configuration *one = table; one->kernel; one++)
                if (fits(*one, of) && is_asked(*one, tile)) found = one;
        if (!found) return false;
        *chosen = choice_of(*found, multiprocessors, chosen->cluster);
    }
    if (has_cluster) {
        if (std::strcmp(cluster, "1") != 0 && std::strcmp(cluster, "2") != 0)
            return false;
        *chosen = choice_of(*chosen->kernel, multiprocessors, cluster[0] - '0');
    }
    return true;
}

} // namespace gemm
