/* SPDX-License-Identifier: MIT */
/* Which tile of d a block works on next. Every role of a block walks through the same
 * tiles; nothing is exchanged. A cluster takes neighbouring columns of tiles, so that its
 * blocks share the tile of a. Tiles go down a band of rows before they go right: what is
 * worked on at the same time is nearly a square, which L2 serves best. */
#ifndef ASSAY_GPU_GEMM_SCHEDULE_CUH
#define ASSAY_GPU_GEMM_SCHEDULE_CUH

#include "gpu/gemm/arguments.h"
#include "gpu/gemm/fault.cuh"
#include "gpu/ptx/mbarrier.cuh"

namespace gemm {

struct tile {
    const CUtensorMap *a, *b;
    int32_t a_row, b_row; /* in the tensors that the maps describe */
    int32_t m0, n0;       /* in the group */
    int32_t m_end;        /* rows of the group from here on are not written */
    int32_t d_row;        /* of m0, in all of d */
    int32_t sfa_row;      /* of the first block of K, in sfa and in 1D1D's sfb */
    int32_t group;
    int32_t k_blocks; /* 0: there is nothing to sum up */
};

template <int block_m, int block_n> class schedule {
  public:
    __device__ __forceinline__ explicit schedule(const arguments &all)
        : given(all), column_units(divide_up(divide_up(all.n, block_n), all.cluster)),
          index(blockIdx.x / all.cluster)
    {
        rank = all.cluster > 1 ? (int32_t)ptx::cluster_block_rank() : 0;
        open_group();
    }

    /* The next tile; false when there is none. */
    __device__ __forceinline__ bool next(tile &out)
    {
        while (index - before >= rows * column_units) {
            if (!close_group()) return false;
            open_group();
        }
        place(index - before, out);
        index += gridDim.x / given.cluster;
        return true;
    }

    /* Whether 64 rows from @row of the tile's group on count; the first one decides. */
    __device__ __forceinline__ bool counts(const tile &at, int32_t row) const
    {
        if (row >= at.m_end) return false;
        if (given.kind == CONTIGUOUS) return __ldg(given.layout + row) >= 0;
        return given.kind != MASKED || row < __ldg(given.layout + at.group);
    }

  private:
    const arguments &given;
    const int32_t column_units; /* columns of tiles, a cluster's taken together */
    int32_t rank;               /* of this block in its cluster */
    int32_t index;              /* of the next tile, all groups counted */
    int32_t before = 0;         /* tiles of the groups before this one */
    int32_t group = 0, rows = 0, m_end = 0;
    int32_t blocks_before = 0; /* of K; K_GROUPED */
    int32_t group_blocks = 0;

    static __device__ __forceinline__ int32_t divide_up(int32_t value, int32_t by)
    {
        return (value + by - 1) / by;
    }

    __device__ __forceinline__ void open_group()
    {
        int32_t group_m = given.m;
        if (given.kind == MASKED)
            group_m = min(max(__ldg(given.layout + group), 0), given.m);
        group_blocks = given.kind == K_GROUPED ? __ldg(given.layout + group) / BLOCK_K
                                               : given.k_blocks;
        rows = divide_up(group_m, block_m);
        m_end = given.kind == MASKED
                    ? min(divide_up(group_m, MASKED_ROWS) * MASKED_ROWS, given.m)
                    : given.m;
    }

    /* False after the last group. */
    __device__ __forceinline__ bool close_group()
    {
        const int32_t groups = given.kind == CONTIGUOUS ? 1 : given.groups;
        if (group + 1 >= groups) return false;
        before += rows * column_units;
        blocks_before += group_blocks;
        group++;
        return true;
    }

    __device__ __forceinline__ void place(int32_t at, tile &out) const
    {
        const int32_t band_tiles = given.band * column_units;
        const int32_t first_row = at / band_tiles * given.band;
        const int32_t band_rows = min(given.band, rows - first_row);
        const int32_t in_band = at % band_tiles;
        out.m0 = (first_row + in_band % band_rows) * block_m;
        out.n0 = (in_band / band_rows * given.cluster + rank) * block_n;
        out.m_end = m_end;
        out.group = group;
        if (given.kind == CONTIGUOUS)
            out.group = min(max(__ldg(given.layout + out.m0), 0), given.groups - 1);
        fill(out);
    }

    __device__ __forceinline__ void fill(tile &out) const
    {
        const bool is_split = given.kind == K_GROUPED;
        const bool has_own_a = given.kind == MASKED;
        out.a = is_split ? &given.groups_maps[group].a : &given.a;
        out.b = is_split ? &given.groups_maps[group].b : &given.b;
        out.a_row = out.m0 + (has_own_a ? out.group * given.m : 0);
        out.b_row = out.n0 + (is_split ? 0 : out.group * given.n);
        out.d_row = out.m0 + (has_own_a || is_split ? out.group * given.m : 0);
        out.sfa_row = is_split    ? blocks_before
                      : has_own_a ? out.group * given.k_blocks
                                  : 0;
        out.k_blocks = group_blocks;
        if (fault_is(given, FAULT_STALE_DESCRIPTOR) && is_split && group > 0)
            out.a = &given.groups_maps[group - 1].a;
    }
};

} // namespace gemm

#endif
