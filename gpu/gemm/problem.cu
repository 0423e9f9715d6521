/* SPDX-License-Identifier: MIT */
#include "gpu/gemm/problem.h"

namespace gemm {

enum : int64_t { ALIGNMENT_BYTES = 16, MAX_ROWS = INT32_MAX };

static const assay_plugin_tensor *tensor(const assay_call *call, const char *name)
{
    return assay_call_tensor(call, name);
}

/* Of the last dimension (1), or the one before it (2). */
static int64_t extent(const assay_plugin_tensor *of, int from_behind)
{
    return of->shape[of->rank - from_behind];
}

static int64_t row_stride(const assay_plugin_tensor *of)
{
    return of->rank > 1 ? of->stride[of->rank - 2] : 0;
}

static void set_k_grouped(const assay_call *call, problem *made)
{
    const assay_plugin_tensor *const a = tensor(call, "a"), *const d = tensor(call, "d");
    made->groups = d->shape[0];
    made->m = d->shape[1];
    made->n = d->shape[2];
    made->k = a->rank == 2 ? a->shape[0] : made->m ? a->shape[0] / made->m : 0;
    made->a_stride = made->b_stride = ALIGNMENT_BYTES; /* a group's own K */
    made->valid_m = made->m * made->groups;
}

problem problem_of(const assay_call *call, kind kind, scale_form form)
{
    const assay_plugin_tensor *const a = tensor(call, "a"), *const b = tensor(call, "b");
    const assay_plugin_tensor *const d = tensor(call, "d");
    problem made = {};
    made.kind = kind;
    made.form = form;
    made.a_is_e5m2 = a->format == ASSAY_PLUGIN_E5M2;
    made.b_is_e5m2 = b->format == ASSAY_PLUGIN_E5M2;
    made.d_is_f32 = d->format == ASSAY_PLUGIN_F32;
    made.d_stride = row_stride(d);
    if (kind == K_GROUPED) {
        set_k_grouped(call, &made);
        return made;
    }
    made.m = extent(a, 2);
    made.n = extent(b, 2);
    made.k = extent(a, 1);
    made.groups = b->rank == 3 ? b->shape[0] : 1;
    made.a_stride = row_stride(a);
    made.b_stride = row_stride(b);
    made.valid_m = kind == MASKED ? made.m * made.groups : made.m;
    return made;
}

static int refuse_formats(const assay_call *call)
{
    for (const char *name : { "a", "b" }) {
        const int32_t format = tensor(call, name)->format;
        if (format != ASSAY_PLUGIN_E4M3 && format != ASSAY_PLUGIN_E5M2)
            return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                        "%s is neither e4m3 nor e5m2, which Hopper's "
                                        "tensor cores multiply",
                                        name);
    }
    return ASSAY_PLUGIN_OK;
}

static int refuse_strides(const assay_call *call, const problem &of)
{
    const int64_t d_bytes = of.d_is_f32 ? 4 : 2;
    const int64_t k = of.kind == K_GROUPED ? 0 : of.k; /* a group's own */
    const struct {
        const char *name;
        int64_t bytes, used;
    } rows[] = { { "a", of.a_stride, k },
                 { "b", of.b_stride, k },
                 { "d", of.d_stride * d_bytes, of.n * d_bytes } };
    for (const auto &row : rows) {
        if (row.bytes < row.used)
            return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                        "rows of %s hold %lld bytes and are %lld apart, "
                                        "so that they overlap",
                                        row.name, (long long)row.used,
                                        (long long)row.bytes);
        if (row.bytes % ALIGNMENT_BYTES)
            return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                        "rows of %s are %lld bytes apart; tensor maps "
                                        "need a multiple of 16",
                                        row.name, (long long)row.bytes);
    }
    return ASSAY_PLUGIN_OK;
}

/* Elements from one index of a dimension to the next that the kernels count on; 0: they
 * take the tensor's own, which refuse_strides looks at. */
static int64_t wanted_stride(const assay_plugin_tensor *one, int dimension,
                             const problem &of)
{
    const bool is_row = dimension == one->rank - 2;
    const bool is_scale = one->name[0] == 's';
    const bool has_own_stride = std::strlen(one->name) == 1 && *one->name != 'c';
    if (dimension == one->rank - 1) return 1;
    if (is_row && has_own_stride && (of.kind != K_GROUPED || *one->name == 'd')) return 0;
    const int64_t inside = one->shape[dimension + 1];
    if (is_scale && of.kind == K_GROUPED) return (inside + 3) / 4 * 4;
    return inside * one->stride[dimension + 1];
}

static bool is_empty(const assay_plugin_tensor *one)
{
    for (int i = 0; i < one->rank; i++)
        if (one->shape[i] == 0) return true;
    return false;
}

static int refuse_layouts(const assay_call *call, const problem &of)
{
    for (int32_t t = 0; t < call->tensor_count; t++) {
        const assay_plugin_tensor *const one = call->tensor[t];
        for (int i = one->rank - 1; i >= 0 && !is_empty(one); i--) {
            const int64_t wanted = wanted_stride(one, i, of);
            if (wanted == 0 || one->shape[i] == 1 || one->stride[i] == wanted) continue;
            return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                        "%s has stride %lld in dimension %d, and the "
                                        "kernels read it with %lld",
                                        one->name, (long long)one->stride[i], i,
                                        (long long)wanted);
        }
    }
    return ASSAY_PLUGIN_OK;
}

/* Rows of all groups, blocks of K of all groups, and tiles, the smallest ones. */
static bool fits_32_bits(const problem &of)
{
    const int64_t most = MAX_ROWS - 1024, all = of.groups + !of.groups;
    const int64_t groups = of.kind == CONTIGUOUS ? 1 : all;
    const int64_t scales = of.kind == MASKED ? all : 1;
    return of.m <= most / groups && of.n <= most / all && of.k <= most &&
           (of.k + BLOCK_K - 1) / BLOCK_K <= most / scales &&
           ((of.m + 63) / 64 * groups) * ((of.n + 15) / 16) <= most;
}

static int refuse_sizes(const assay_call *call, const problem &of)
{
    if (of.k % ALIGNMENT_BYTES)
        return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                    "k=%lld is no multiple of 16, which tensor maps need",
                                    (long long)of.k);
    if (of.n % 8)
        return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                    "n=%lld is no multiple of 8", (long long)of.n);
    if (of.kind != DENSE && of.kind != CONTIGUOUS && of.m % BLOCK_K)
        return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                    "groups of %lld rows are no multiple of 128: a tile "
                                    "would reach into the next group",
                                    (long long)of.m);
    if (!fits_32_bits(of))
        return assay_cuda::complain(call, ASSAY_PLUGIN_UNSUPPORTED,
                                    "%lld groups of %lld x %lld x %lld have coordinates "
                                    "or tiles beyond 32 bits",
                                    (long long)of.groups, (long long)of.m,
                                    (long long)of.n, (long long)of.k);
    return ASSAY_PLUGIN_OK;
}

int check(const assay_call *call, const problem &of)
{
    int result = refuse_formats(call);
    if (result == ASSAY_PLUGIN_OK) result = refuse_sizes(call, of);
    if (result == ASSAY_PLUGIN_OK) result = refuse_strides(call, of);
    if (result == ASSAY_PLUGIN_OK) result = refuse_layouts(call, of);
    return result;
}

} // namespace gemm
