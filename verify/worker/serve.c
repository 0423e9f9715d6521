/* SPDX-License-Identifier: MIT */
#include "verify/worker/serve.h"

#include "ref/unit/scalar.h"
#include "verify/worker/channel.h"
#include "verify/worker/load.h"
#include "verify/worker/request.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
  #define HAS_HUGE_SHADOW 1
#elif defined(__has_feature)
  #if __has_feature(address_sanitizer)
    #define HAS_HUGE_SHADOW 1
  #endif
#endif

struct server {
    const struct assay_plugin *plugin;
    const char *options;
    int64_t memory_bytes; /* 0: address space is not limited */
};

/* Text of a plugin, which may be anything, as JSON takes it. */
static json_t *text_of(const char *text, size_t limit)
{
    char *const copy = strndup(text ? text : "", limit);
    json_t *value = copy ? json_string(copy) : NULL;
    for (char *at = copy; copy && !value && *at; at++)
        if ((unsigned char)*at >= 0x80) *at = '?';
    if (copy && !value) value = json_string(copy);
    free(copy);
    return value;
}

static void say(const char *stage)
{
    assay_channel_send(ASSAY_CHANNEL_FD, json_pack("{s:s}", "stage", stage), -1);
}

static json_t *reply_of(enum assay_status status, const char *message)
{
    return json_pack("{s:i, s:o, s:b}", "status", (int)status, "message",
                     text_of(message, sizeof(struct assay_message)), "mode_changed",
                     !assay_float_mode_is_sound());
}

static enum assay_status status_of(int result)
{
    switch (result) {
    case ASSAY_PLUGIN_OK: return ASSAY_RAN;
    case ASSAY_PLUGIN_UNSUPPORTED: return ASSAY_UNSUPPORTED;
    case ASSAY_PLUGIN_OUT_OF_MEMORY: return ASSAY_OUT_OF_MEMORY;
    case ASSAY_PLUGIN_DEVICE_LOST: return ASSAY_DEVICE_LOST;
    default: return ASSAY_FAILED;
    }
}

/* Address space beyond what is taken already; nothing where that cannot be told. */
static void limit_memory(const struct server *server)
{
#ifndef HAS_HUGE_SHADOW
    long long pages = 0;
    FILE *const file = fopen("/proc/self/statm", "re");
    const bool is_read = file && fscanf(file, "%lld", &pages) == 1;
    if (file) fclose(file);
    struct rlimit limit;
    if (!is_read || !server->memory_bytes || getrlimit(RLIMIT_AS, &limit) != 0) return;
    const rlim_t wanted = (rlim_t)(pages * sysconf(_SC_PAGESIZE) + server->memory_bytes);
    if (wanted < limit.rlim_max) limit.rlim_cur = wanted;
    setrlimit(RLIMIT_AS, &limit);
#else
    (void)server;
#endif
}

static void lift_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_AS, &limit);
}

static int run_plugin(const struct assay_plugin *plugin,
                      const struct assay_request *request, double *seconds)
{
    void *run = NULL;
    say("prepare");
    int result = plugin->prepare(&request->call, &run);
    if (result != ASSAY_PLUGIN_OK) return result;
    say("launch");
    result = plugin->launch(run, request->launches, seconds);
    if (result == ASSAY_PLUGIN_OK) {
        say("fetch");
        result = plugin->fetch(run);
    }
    say("release");
    plugin->release(run);
    return result;
}

static json_t *run_case(const struct server *server, struct assay_request *request)
{
    limit_memory(server);
    double seconds = 0;
    const int result = run_plugin(server->plugin, request, &seconds);
    fflush(NULL);
    lift_limit();
    request->why[sizeof(request->why) - 1] = '\0';
    json_t *const reply = reply_of(status_of(result), request->why);
    if (isfinite(seconds) && seconds > 0)
        json_object_set_new(reply, "launch_seconds", json_real(seconds));
    return reply;
}

static json_t *claim_case(const struct server *server, struct assay_request *request)
{
    struct assay_claim claim = { .bytes = sizeof(claim) };
    say("claim");
    const int result =
        server->plugin->claim ? server->plugin->claim(&request->call, &claim) : 0;
    fflush(NULL);
    request->why[sizeof(request->why) - 1] = '\0';
    json_t *const reply = reply_of(status_of(result), request->why);
    if (claim.numerics)
        json_object_set_new(reply, "numerics",
                            text_of(claim.numerics, ASSAY_MAX_NUMERICS_TEXT));
    json_object_set_new(reply, "is_deterministic", json_boolean(claim.is_deterministic));
    json_object_set_new(reply, "is_batch_invariant",
                        json_boolean(claim.is_batch_invariant));
    return reply;
}

static bool serve_one(const struct server *server)
{
    int fd;
    bool is_closed;
    struct assay_request request;
    json_t *const line = assay_channel_receive(ASSAY_CHANNEL_FD, &fd, &is_closed);
    if (!line) return false;
    json_t *reply;
    if (!assay_request_open(&request, line, fd, server->options))
        reply = reply_of(ASSAY_OUT_OF_MEMORY, "no room for the tensors of the case");
    else if (request.is_run)
        reply = run_case(server, &request);
    else
        reply = claim_case(server, &request);
    assay_request_close(&request);
    json_decref(line);
    return assay_channel_send(ASSAY_CHANNEL_FD, reply, -1);
}

static bool load(struct server *server, const char *path)
{
    struct assay_message message = { "" };
    const enum assay_status status = assay_plugin_load(path, &server->plugin, &message);
    json_t *const hello = reply_of(status, message.text);
    fflush(NULL);
    if (status == ASSAY_RAN) {
        json_object_set_new(hello, "name", text_of(server->plugin->name, 64));
        json_object_set_new(hello, "version", text_of(server->plugin->version, 64));
        if (!(server->plugin->flags & ASSAY_PLUGIN_PLAIN_MEMORY))
            server->memory_bytes = 0;
    }
    return assay_channel_send(ASSAY_CHANNEL_FD, hello, -1) && status == ASSAY_RAN;
}

static bool is_channel(int fd)
{
    int type = 0;
    socklen_t bytes = sizeof(type);
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 &&
           type == SOCK_SEQPACKET && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

int assay_worker_serve(int argc, char **argv)
{
    if (argc != 4 || !is_channel(ASSAY_CHANNEL_FD)) return 2;
    struct server server = { .options = argv[2],
                             .memory_bytes = strtoll(argv[3], NULL, 10) };
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!load(&server, argv[1])) return 1;
    while (serve_one(&server))
        continue;
    return 0;
}
