/* SPDX-License-Identifier: MIT */
/* NVML by dlopen: declarations of our own for the few functions it takes. */
#include "verify/command/bench_device.h"

#include "verify/command/timing.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_SAMPLES = 4096, SAMPLE_MILLISECONDS = 20 };
/* NVML's numbers: nvmlClockType_t, and the field that is no mean over a second. */
enum { NVML_OK = 0, NVML_SM_CLOCK = 1, NVML_POWER_INSTANT = 186 };

struct nvml_field {
    uint32_t field, scope;
    int64_t timestamp, latency;
    uint32_t value_type;
    int result;
    union {
        double real;
        uint32_t milliwatts;
    } value;
};

struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    int (*find)(unsigned index, void **device);
    int (*clock)(void *device, int type, unsigned *mhz);
    int (*power)(void *device, unsigned *milliwatts);
    int (*fields)(void *device, int count, struct nvml_field *fields); /* or NULL */
};

struct assay_device {
    void *library, *handle;
    struct nvml nvml;
    pthread_t thread;
    bool is_watching;
    atomic_bool is_ending;
    int samples;
    struct assay_device_state sample[MAX_SAMPLES];
};

static bool find_functions(void *library, struct nvml *nvml)
{
    *(void **)&nvml->init = dlsym(library, "nvmlInit_v2");
    *(void **)&nvml->shutdown = dlsym(library, "nvmlShutdown");
    *(void **)&nvml->find = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&nvml->clock = dlsym(library, "nvmlDeviceGetClockInfo");
    *(void **)&nvml->power = dlsym(library, "nvmlDeviceGetPowerUsage");
    *(void **)&nvml->fields = dlsym(library, "nvmlDeviceGetFieldValues");
    return nvml->init && nvml->shutdown && nvml->find && nvml->clock && nvml->power;
}

/* False for devices that are named by something else than a number. */
static bool device_index(unsigned *index)
{
    const char *const visible = getenv("CUDA_VISIBLE_DEVICES");
    char *end = NULL;
    *index = 0;
    if (!visible) return true;
    *index = (unsigned)strtoul(visible, &end, 10);
    return end != visible && (*end == '\0' || *end == ',');
}

struct assay_device *assay_device_open(void)
{
    struct assay_device *const device = calloc(1, sizeof(*device));
    unsigned index;
    if (!device) return NULL;
    device->library =
        device_index(&index) ? dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL) : NULL;
    const bool has_begun = device->library &&
                           find_functions(device->library, &device->nvml) &&
                           device->nvml.init() == NVML_OK;
    if (has_begun && device->nvml.find(index, &device->handle) == NVML_OK) return device;
    if (has_begun) device->nvml.shutdown();
    if (device->library) dlclose(device->library);
    free(device);
    return NULL;
}

static double power_of(const struct assay_device *device)
{
    struct nvml_field field = { .field = NVML_POWER_INSTANT };
    unsigned milliwatts = 0;
    if (device->nvml.fields &&
        device->nvml.fields(device->handle, 1, &field) == NVML_OK &&
        field.result == NVML_OK)
        return field.value.milliwatts / 1e3;
    return device->nvml.power(device->handle, &milliwatts) == NVML_OK ? milliwatts / 1e3
                                                                      : 0;
}

static void *keep_sampling(void *context)
{
    struct assay_device *const device = context;
    const struct timespec pause = { .tv_nsec = SAMPLE_MILLISECONDS * 1000000L };
    do {
        unsigned mhz = 0;
        if (device->nvml.clock(device->handle, NVML_SM_CLOCK, &mhz) != NVML_OK) mhz = 0;
        device->sample[device->samples++] =
            (struct assay_device_state){ .sm_clock_mhz = mhz,
                                         .power_w = power_of(device) };
        nanosleep(&pause, NULL);
    } while (!atomic_load(&device->is_ending) && device->samples < MAX_SAMPLES);
    return NULL;
}

/* Signals are the business of the other threads. */
void assay_device_watch(struct assay_device *device)
{
    sigset_t all, before;
    if (!device) return;
    device->samples = 0;
    atomic_store(&device->is_ending, false);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int result = pthread_create(&device->thread, NULL, keep_sampling, device);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    device->is_watching = result == 0;
}

static struct assay_device_state summary_of(const struct assay_device_state *sample,
                                            int samples)
{
    double clock[MAX_SAMPLES], power[MAX_SAMPLES];
    double least = sample[0].power_w, most = least;
    int count = 0;
    for (int i = 1; i < samples; i++) {
        if (sample[i].power_w < least) least = sample[i].power_w;
        if (sample[i].power_w > most) most = sample[i].power_w;
    }
    for (int i = 0; i < samples; i++)
        if (sample[i].power_w >= (least + most) / 2) {
            clock[count] = sample[i].sm_clock_mhz;
            power[count++] = sample[i].power_w;
        }
    return (struct assay_device_state){ .sm_clock_mhz = assay_median(clock, count),
                                        .power_w = assay_median(power, count) };
}

struct assay_device_state assay_device_stop(struct assay_device *device)
{
    if (!device || !device->is_watching) return (struct assay_device_state){ 0, 0 };
    atomic_store(&device->is_ending, true);
    pthread_join(device->thread, NULL);
    device->is_watching = false;
    return summary_of(device->sample, device->samples);
}

void assay_device_close(struct assay_device *device)
{
    if (!device) return;
    device->nvml.shutdown();
    dlclose(device->library);
    free(device);
}
