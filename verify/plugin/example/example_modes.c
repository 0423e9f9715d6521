/* SPDX-License-Identifier: MIT */
/* The ways in which the example plugin can be wrong: what tests of the tool need. */
#include "verify/plugin/example/example_plugin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TILE = 64, BLOCK = 128, CHUNK_BYTES = 1 << 24 };

static const struct {
    const char *name;
    enum example_mode mode;
} modes[] = {
    { "honest", EXAMPLE_HONEST },
    { "crash", EXAMPLE_CRASH },
    { "abort", EXAMPLE_ABORT },
    { "write-input", EXAMPLE_WRITE_INPUT },
    { "hang", EXAMPLE_HANG },
    { "endless-output", EXAMPLE_ENDLESS_OUTPUT },
    { "noise", EXAMPLE_NOISE },
    { "exit", EXAMPLE_EXIT },
    { "out-of-memory", EXAMPLE_OUT_OF_MEMORY },
    { "past-the-end", EXAMPLE_PAST_THE_END },
    { "unwritten", EXAMPLE_UNWRITTEN },
    { "reads-padding", EXAMPLE_READS_PADDING },
    { "wrong-tile", EXAMPLE_WRONG_TILE },
    { "one-in-ten", EXAMPLE_ONE_IN_TEN },
    { "leaks-padding", EXAMPLE_LEAKS_PADDING },
    { "adds-up", EXAMPLE_ADDS_UP },
    { "looks-around", EXAMPLE_LOOKS_AROUND },
    { "false-claim", EXAMPLE_FALSE_CLAIM },
    { "unknown-claim", EXAMPLE_UNKNOWN_CLAIM },
    { "crash-in-claim", EXAMPLE_CRASH_IN_CLAIM },
    { "break-protocol", EXAMPLE_BREAK_PROTOCOL },
    { "flood-protocol", EXAMPLE_FLOOD_PROTOCOL },
    { "close-protocol", EXAMPLE_CLOSE_PROTOCOL },
    { "fail", EXAMPLE_FAIL },
    { NULL, EXAMPLE_HONEST },
};

static int complain(const struct assay_call *call, const char *sentence, int result)
{
    snprintf(call->why, call->why_bytes, "%s", sentence);
    return result;
}

/* With rows=N the mode is for cases of N rows only; others are computed honestly. */
static int is_meant(const struct assay_call *call)
{
    char rows[24];
    if (!assay_plugin_setting(call->options, ',', "rows", rows, sizeof(rows))) return 1;
    return assay_call_tensor(call, "d")->shape[0] == strtoll(rows, NULL, 10);
}

int example_find_mode(const struct assay_call *call, enum example_mode *mode)
{
    char name[32];
    *mode = EXAMPLE_HONEST;
    if (!assay_plugin_setting(call->options, ',', "mode", name, sizeof(name)))
        return *call->options
                   ? complain(call,
                              "the only options are mode= and rows=", ASSAY_PLUGIN_FAILED)
                   : ASSAY_PLUGIN_OK;
    int row = 0;
    while (modes[row].name && strcmp(modes[row].name, name) != 0)
        row++;
    if (!modes[row].name)
        return complain(call, "the example has no such mode", ASSAY_PLUGIN_FAILED);
    if (is_meant(call)) *mode = modes[row].mode;
    return ASSAY_PLUGIN_OK;
}

static void crash(void)
{
    volatile int *volatile nowhere = NULL;
    *nowhere = 1;
}

int example_claim(const struct assay_call *call, struct assay_claim *promise)
{
    enum example_mode mode;
    const int result = example_find_mode(call, &mode);
    if (mode == EXAMPLE_CRASH_IN_CLAIM) crash();
    if (mode == EXAMPLE_FALSE_CLAIM) promise->numerics = "deepgemm-1d2d";
    if (mode == EXAMPLE_UNKNOWN_CLAIM) promise->numerics = "no-such-numerics";
    return result;
}

/* Until there is none, or somebody stops us. */
static int take_all_memory(const struct example_run *run)
{
    for (char *chunk; (chunk = malloc(CHUNK_BYTES));)
        for (size_t at = 0; at < CHUNK_BYTES; at += 512)
            ((volatile char *)chunk)[at] = (char)(at | 1);
    return complain(run->call, "no memory for a workspace", ASSAY_PLUGIN_OUT_OF_MEMORY);
}

/* Together with a child, which must not survive. */
_Noreturn static void hang(void)
{
    const pid_t child = fork();
    if (child > 0) printf("child %d\n", (int)child);
    for (;;)
        pause();
}

int example_before(const struct example_run *run)
{
    switch (run->mode) {
    case EXAMPLE_CRASH:
        puts("about to crash");
        crash();
        break;
    case EXAMPLE_ABORT: fputs("an assertion, say\n", stderr); abort();
    case EXAMPLE_WRITE_INPUT: *(volatile char *)run->a->data = 0; break;
    case EXAMPLE_HANG: hang();
    case EXAMPLE_ENDLESS_OUTPUT:
        for (;;)
            puts("and on and on");
    case EXAMPLE_NOISE: puts("launching 1 x 1 blocks\n{\"status\":3}"); break;
    case EXAMPLE_EXIT: exit(0);
    case EXAMPLE_OUT_OF_MEMORY: return take_all_memory(run);
    case EXAMPLE_BREAK_PROTOCOL:
        if (write(3, "nonsense", 8) < 0) return ASSAY_PLUGIN_FAILED;
        break;
    case EXAMPLE_FLOOD_PROTOCOL:
        if (fork() < 0 || fork() < 0) return ASSAY_PLUGIN_FAILED;
        while (write(3, "{\"stage\":\"flood\"}", 17) > 0)
            continue;
        break;
    case EXAMPLE_CLOSE_PROTOCOL: close(3); hang();
    case EXAMPLE_FAIL:
        return complain(run->call, "the launch gave error 700", ASSAY_PLUGIN_FAILED);
    default: break;
    }
    return ASSAY_PLUGIN_OK;
}

int64_t example_rows(const struct example_run *run)
{
    return run->d->shape[0] - (run->mode == EXAMPLE_UNWRITTEN);
}

static int is_tenth(void)
{
    static int calls;
    return ++calls % 10 == 0;
}

int64_t example_columns(const struct example_run *run, int64_t row, int64_t column)
{
    const int64_t k = run->a->shape[1];
    const int is_first = row == 0 && column == 0;
    switch (run->mode) {
    case EXAMPLE_READS_PADDING: return run->a->stride[0];
    case EXAMPLE_WRONG_TILE: return row / TILE == 1 && column / TILE == 0 ? k - BLOCK : k;
    case EXAMPLE_ONE_IN_TEN: return is_first && is_tenth() ? k - BLOCK : k;
    default: return k;
    }
}

/* What follows the row in memory, times its last scale, without NaN, which would show. */
static float padding_sum(const struct example_run *run, int64_t row)
{
    const int64_t k = run->a->shape[1], stride = run->a->stride[0];
    const uint8_t *const a = (const uint8_t *)run->a->data + row * stride;
    const float *const sfa = (const float *)run->sfa->data + row * run->sfa->stride[0];
    float sum = 0;
    for (int64_t i = k; i < stride; i++) {
        const float value = example_e4m3_value(a[i]);
        if (!isnan(value)) sum += value;
    }
    return k ? sum * sfa[(k - 1) / BLOCK] : 0;
}

/* 1, and up to 2^-13 more or less by the first code of the next row. */
static float neighbour(const struct example_run *run, int64_t row)
{
    const int64_t next = (row + 1) % run->a->shape[0];
    const uint8_t *const a = (const uint8_t *)run->a->data + next * run->a->stride[0];
    const float value = example_e4m3_value(a[0]);
    return isnan(value) ? 1 : 1 + value * ldexpf(1, -13) / 448;
}

float example_change(const struct example_run *run, int64_t row, int64_t column,
                     float value)
{
    switch (run->mode) {
    case EXAMPLE_LEAKS_PADDING: return value + padding_sum(run, row);
    case EXAMPLE_ADDS_UP:
        return run->launches > 1 ? value + example_load(run->d, row, column) : value;
    case EXAMPLE_LOOKS_AROUND: return value * neighbour(run, row);
    default: return value;
    }
}

int example_after(const struct example_run *run)
{
    const struct assay_plugin_tensor *const d = run->d;
    const int64_t bytes = d->format == ASSAY_PLUGIN_F32 ? 4 : 2;
    if (run->mode == EXAMPLE_PAST_THE_END)
        ((volatile char *)d->data)[d->shape[0] * d->stride[0] * bytes] = 0;
    return ASSAY_PLUGIN_OK;
}
