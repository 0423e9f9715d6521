/* SPDX-License-Identifier: MIT */
/* An example plugin: fp8_gemm_nt with block scales in plain C, with f32 sums in an order
 * of its own. It claims nothing, so that the proven bound is what judges it.
 *
 * Option mode=NAME breaks it on purpose, each name in another way: example_modes.c. */
#include "verify/plugin/example/example_plugin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifndef EXAMPLE_ABI
  #define EXAMPLE_ABI ASSAY_PLUGIN_ABI
#endif
#ifndef EXAMPLE_FLAGS
  #define EXAMPLE_FLAGS ASSAY_PLUGIN_PLAIN_MEMORY
#endif

enum { BLOCK = 128 };

float example_e4m3_value(uint8_t code)
{
    const int exponent = code >> 3 & 15, mantissa = code & 7;
    if ((code & 0x7F) == 0x7F) return NAN;
    const float size = exponent ? ldexpf((float)(8 + mantissa), exponent - 10)
                                : ldexpf((float)mantissa, -9);
    return code & 0x80 ? -size : size;
}

static uint16_t bf16_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return 0x7FFF;
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static int refuse(const struct assay_call *call, const char *sentence)
{
    snprintf(call->why, call->why_bytes, "%s", sentence);
    return ASSAY_PLUGIN_UNSUPPORTED;
}

/* The tensors by name, when the case is one of ours. */
static int find_operands(const struct assay_call *call, struct example_run *run)
{
    if (strcmp(call->operation, "fp8_gemm_nt") != 0)
        return refuse(call, "the example computes fp8_gemm_nt only");
    run->call = call;
    run->a = assay_call_tensor(call, "a");
    run->b = assay_call_tensor(call, "b");
    run->sfa = assay_call_tensor(call, "sfa");
    run->sfb = assay_call_tensor(call, "sfb");
    run->d = assay_call_tensor(call, "d");
    const int64_t k_blocks = (run->a->shape[1] + BLOCK - 1) / BLOCK;
    if (run->a->format != ASSAY_PLUGIN_E4M3 || run->b->format != ASSAY_PLUGIN_E4M3)
        return refuse(call, "the example takes e4m3 operands only");
    if (run->sfa->format != ASSAY_PLUGIN_F32 || run->sfa->shape[0] != run->a->shape[0] ||
        run->sfa->shape[1] != k_blocks || run->sfb->shape[1] != k_blocks ||
        run->sfb->shape[0] != (run->b->shape[0] + BLOCK - 1) / BLOCK)
        return refuse(call, "the example takes recipe=1d2d only");
    if (assay_call_tensor(call, "c")) return refuse(call, "the example has no c");
    return ASSAY_PLUGIN_OK;
}

static int claim(const struct assay_call *call, struct assay_claim *promise)
{
    struct example_run run = { 0 };
    const int result = find_operands(call, &run);
    if (result != ASSAY_PLUGIN_OK) return result;
    promise->is_deterministic = promise->is_batch_invariant = 1;
    return example_claim(call, promise);
}

static int prepare(const struct assay_call *call, void **run)
{
    struct example_run *const mine = calloc(1, sizeof(*mine));
    if (!mine) return ASSAY_PLUGIN_OUT_OF_MEMORY;
    int result = find_operands(call, mine);
    if (result == ASSAY_PLUGIN_OK) result = example_find_mode(call, &mine->mode);
    if (result == ASSAY_PLUGIN_OK)
        *run = mine;
    else
        free(mine);
    return result;
}

static float element(const struct example_run *run, int64_t row, int64_t column)
{
    static float value[256];
    if (value[0x38] == 0)
        for (int code = 0; code < 256; code++)
            value[code] = example_e4m3_value((uint8_t)code);
    const uint8_t *const a = (const uint8_t *)run->a->data + row * run->a->stride[0];
    const uint8_t *const b = (const uint8_t *)run->b->data + column * run->b->stride[0];
    const float *const sfa = (const float *)run->sfa->data + row * run->sfa->stride[0];
    const float *const sfb =
        (const float *)run->sfb->data + column / BLOCK * run->sfb->stride[0];
    const int64_t k = example_columns(run, row, column);
    float sum = 0;
    for (int64_t first = 0; first < k; first += BLOCK) {
        const int64_t end = first + BLOCK < k ? first + BLOCK : k;
        float block = 0;
        for (int64_t i = first; i < end; i++)
            block += value[a[i]] * value[b[i]];
        sum += block * (sfa[first / BLOCK] * sfb[first / BLOCK]);
    }
    return sum;
}

static void store(const struct assay_plugin_tensor *d, int64_t row, int64_t column,
                  float value)
{
    const int64_t place = row * d->stride[0] + column;
    if (d->format == ASSAY_PLUGIN_F32)
        ((float *)d->data)[place] = value;
    else
        ((uint16_t *)d->data)[place] = bf16_bits(value);
}

float example_load(const struct assay_plugin_tensor *d, int64_t row, int64_t column)
{
    const int64_t place = row * d->stride[0] + column;
    if (d->format == ASSAY_PLUGIN_F32) return ((const float *)d->data)[place];
    const uint32_t bits = (uint32_t)((const uint16_t *)d->data)[place] << 16;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static void compute(const struct example_run *run)
{
    const int64_t rows = example_rows(run);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < run->d->shape[1]; column++)
            store(run->d, row, column,
                  example_change(run, row, column, element(run, row, column)));
}

static int launch(void *opaque, int repeats, double *seconds)
{
    struct example_run *const run = opaque;
    struct timespec start, end;
    const int result = example_before(run);
    if (result != ASSAY_PLUGIN_OK) return result;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < repeats; i++) {
        run->launches++;
        compute(run);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (seconds)
        *seconds = (double)(end.tv_sec - start.tv_sec) +
                   1e-9 * (double)(end.tv_nsec - start.tv_nsec);
    return ASSAY_PLUGIN_OK;
}

/* The outputs are host memory already. */
static int fetch(void *opaque)
{
    return example_after(opaque);
}

const struct assay_plugin *assay_plugin_v1(void)
{
    static const struct assay_plugin plugin = {
        .abi = EXAMPLE_ABI,
        .bytes = sizeof(plugin),
        .flags = EXAMPLE_FLAGS,
        .name = "example",
        .version = "1",
        .claim = claim,
        .prepare = prepare,
        .launch = launch,
        .fetch = fetch,
        .release = free,
    };
    return &plugin;
}
