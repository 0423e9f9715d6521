/* SPDX-License-Identifier: MIT */
/* Clock and power of an NVIDIA GPU while something runs on it, by NVML. Where that is
 * not installed there is no device, and nothing fails. */
#ifndef ASSAY_VERIFY_COMMAND_BENCH_DEVICE_H
#define ASSAY_VERIFY_COMMAND_BENCH_DEVICE_H

struct assay_device;

struct assay_device_state { /* 0: unknown */
    double sm_clock_mhz, power_w;
};

/* The GPU that a CUDA program would take first: the first one that CUDA_VISIBLE_DEVICES
 * names by its number, else number 0. NULL: there is none. */
struct assay_device *assay_device_open(void);

/* Samples it every 20 ms until assay_device_stop. NULL is no device. */
void assay_device_watch(struct assay_device *device);

/* Medians over those samples that lie in the upper half of what power was drawn: those
 * that saw a kernel run, between uploads and checks. */
struct assay_device_state assay_device_stop(struct assay_device *device);

void assay_device_close(struct assay_device *device);

#endif
