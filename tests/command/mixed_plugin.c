/* SPDX-License-Identifier: MIT */
/* The example plugin, broken in another way from case to case, as the case's seed has it:
 * for tests of runs that go on after whatever happened. Each launch adds the line of its
 * case to the file that the environment's ASSAY_MIXED_LOG names. */
#include "verify/plugin/assay_plugin.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The example under another name, so that both fit into one library. */
extern const struct assay_plugin *example_plugin_v1(void);

enum { PERIOD = 100 };

static const struct {
    int seed; /* modulo PERIOD */
    const char *options;
} mixture[] = {
    { 3, "mode=abort" },
    { 8, "mode=wrong-tile" },
    { 14, "mode=noise" },
    { 21, "mode=exit" },
    { 27, "mode=fail" },
    { 33, "mode=past-the-end" },
    { 38, "hang" },
    { 53, "mode=abort" },
    { 58, "mode=wrong-tile" },
    { 64, "mode=noise" },
    { 71, "mode=exit" },
    { 77, "mode=fail" },
    { 83, "mode=past-the-end" },
    { 0, NULL },
};

struct mixed_run {
    const struct assay_call *call; /* as it came */
    struct assay_call changed;     /* as the example sees it */
    void *run;
};

static const char *options_of(const struct assay_call *call)
{
    char seed[24];
    int row = 0;
    if (!assay_plugin_setting(call->case_line, ' ', "seed", seed, sizeof(seed)))
        return "";
    while (mixture[row].options && mixture[row].seed != atoi(seed) % PERIOD)
        row++;
    return mixture[row].options ? mixture[row].options : "";
}

static int does_hang(const struct assay_call *call)
{
    return strcmp(options_of(call), "hang") == 0;
}

static struct assay_call changed(const struct assay_call *call)
{
    struct assay_call copy = *call;
    copy.options = does_hang(call) ? "" : options_of(call);
    return copy;
}

static int claim(const struct assay_call *call, struct assay_claim *promise)
{
    const struct assay_call copy = changed(call);
    return example_plugin_v1()->claim(&copy, promise);
}

static int prepare(const struct assay_call *call, void **run)
{
    struct mixed_run *const mine = malloc(sizeof(*mine));
    if (!mine) return ASSAY_PLUGIN_OUT_OF_MEMORY;
    *mine = (struct mixed_run){ .call = call, .changed = changed(call) };
    const int result = example_plugin_v1()->prepare(&mine->changed, &mine->run);
    if (result == ASSAY_PLUGIN_OK)
        *run = mine;
    else
        free(mine);
    return result;
}

static void log_launch(const struct assay_call *call)
{
    char line[4200];
    const char *const path = getenv("ASSAY_MIXED_LOG");
    if (!path) return;
    const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0666);
    const int bytes = snprintf(line, sizeof(line), "%s\n", call->case_line);
    if (fd < 0 || write(fd, line, (size_t)bytes) != bytes) abort();
    close(fd);
}

static int launch(void *opaque, int repeats, double *seconds)
{
    const struct mixed_run *const mine = opaque;
    log_launch(mine->call);
    while (does_hang(mine->call))
        pause();
    return example_plugin_v1()->launch(mine->run, repeats, seconds);
}

static int fetch(void *opaque)
{
    return example_plugin_v1()->fetch(((struct mixed_run *)opaque)->run);
}

static void release(void *opaque)
{
    struct mixed_run *const mine = opaque;
    example_plugin_v1()->release(mine->run);
    free(mine);
}

const struct assay_plugin *assay_plugin_v1(void)
{
    static const struct assay_plugin plugin = {
        .abi = ASSAY_PLUGIN_ABI,
        .bytes = sizeof(plugin),
        .flags = ASSAY_PLUGIN_PLAIN_MEMORY,
        .name = "mixed",
        .version = "1",
        .claim = claim,
        .prepare = prepare,
        .launch = launch,
        .fetch = fetch,
        .release = release,
    };
    return &plugin;
}
