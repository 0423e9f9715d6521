/* SPDX-License-Identifier: MIT */
/* What `assay bench` measures and where its figures go. */
#ifndef ASSAY_VERIFY_COMMAND_BENCH_H
#define ASSAY_VERIFY_COMMAND_BENCH_H

#include "verify/backend/backend.h"
#include "verify/command/bench_device.h"
#include "verify/command/report_file.h"
#include "verify/command/timing.h"

enum { ASSAY_MAX_BESIDE = 8, ASSAY_COLD_LAUNCHES = 15, ASSAY_MAX_GROUP_NAME = 96 };

/* Who else was measured on the same inputs: how many times as fast it was measured. */
struct assay_bench_ratio {
    const char *candidate;
    double ratio;
};

/* A figure; as JSON {"type":"bench","op","case","candidate","threads","seconds","rate",
 * "unit"[,"launches"][,"ratio_one_core"][,"group"][,"cache"][,"tflop_per_s"][,"gb_per_s"]
 * [,"roofline_share"][,"sm_clock_mhz"][,"power_w"][,"upstream_tflop_per_s",
 * "over_upstream"][,"upstream_gb_per_s"][,"over_beside":[{"candidate","ratio"}...]]}. */
struct assay_measurement {
    const char *op, *case_line, *candidate;
    int threads;    /* that may have shared the work */
    double seconds; /* median: of a launch, or of the case as a whole */
    int launches;   /* in each of the runs, by the candidate's own clock; 0: by ours */
    double rate;    /* of multiply-adds, or of bytes where there are none */
    const char *unit;
    double ratio_one_core; /* rate over that of sgemm on one thread; < 0: none */
    const char *group;     /* of cases, as assay_bench_group_name has it; NULL: none */
    const char *cache;     /* "cold" or "hot", before each launch; NULL: unknown */
    /* 0: none */
    double tflop_per_s, gb_per_s; /* two operations a multiply-add; all tensors once */
    double roofline_share;        /* of the seconds: how many the GPU has to take */
    double upstream_tflop_per_s, upstream_gb_per_s;
    struct assay_device_state device;
    int ratio_count;
    struct assay_bench_ratio ratio[ASSAY_MAX_BESIDE];
};

struct assay_bench_output {
    bool has_text;                 /* a line a figure to stdout */
    struct assay_report_file json; /* closed, if there is none */
    int64_t count, broken;         /* figures, and those that a candidate broke */
};

/* @json_path: NULL for none, "-" to replace the text. */
enum assay_status assay_bench_output_open(struct assay_bench_output *output,
                                          const char *json_path, const char *candidate,
                                          struct assay_message *message);
enum assay_status assay_bench_output_add(struct assay_bench_output *output,
                                         const struct assay_measurement *measurement,
                                         struct assay_message *message);
/* Says on stderr that there is no such figure, and why; unless the candidate does not do
 * such cases, it broke, and {"type":"bench_failure","case","candidate","status",
 * "message"} is written. */
enum assay_status assay_bench_output_fail(struct assay_bench_output *output,
                                          const char *case_line, const char *candidate,
                                          enum assay_status status,
                                          struct assay_message *message);
enum assay_status assay_bench_output_end(struct assay_bench_output *output, int exit_code,
                                         struct assay_message *message);
void assay_bench_output_close(struct assay_bench_output *output);

struct assay_bench_candidate {
    const char *text; /* as it was named */
    char *opened;     /* as it was opened, if otherwise: with cold=1 */
    bool is_cold;     /* flushes the cache before each launch */
    const struct assay_backend *backend;
    void *state;
};

/* Candidates that are measured on the same inputs one after the other: the one that
 * counts, and those beside it. */
struct assay_bench_set {
    int count;
    struct assay_bench_candidate candidate[1 + ASSAY_MAX_BESIDE];
};

/* Opens what @texts name. @cache: "cold" adds the plugin option cold=1, "hot" sees to it
 * that nobody has it; NULL leaves that to the texts. The set may be closed whatever
 * happens. */
enum assay_status assay_bench_set_open(struct assay_bench_set *set,
                                       const char *const *texts, int count,
                                       const char *cache,
                                       const struct assay_backend_limits *limits,
                                       struct assay_message *message);
void assay_bench_set_close(struct assay_bench_set *set);

struct assay_bench_time {
    double seconds; /* of one launch */
    int launches;   /* that a run had, by the candidate's own clock; 0: a run by ours */
    struct assay_device_state device; /* meanwhile, with a clock of its own */
};

/* Measures the call. Candidates that say how long their launches took are asked for as
 * many in each run as take about 0.1 s, those that flush the cache before each for
 * ASSAY_COLD_LAUNCHES; runs end early when they have taken 10 s together, large inputs
 * being brought to a device in each. @device: NULL to watch none. */
enum assay_status assay_bench_call(const struct assay_bench_candidate *candidate,
                                   const struct assay_run_call *call,
                                   const struct assay_timing *timing,
                                   struct assay_device *device,
                                   struct assay_bench_time *time,
                                   struct assay_message *message);

/* Seconds that the GPU takes at least for what the operation costs; 0: unknown. */
double assay_roofline_seconds(const struct assay_operation *operation,
                              struct assay_cost cost);

struct assay_upstream;
struct assay_bench_groups;

/* What all cases share. */
struct assay_bench_job {
    int set_count;
    struct assay_bench_set set[2];
    struct assay_timing timing;
    struct assay_device *device;     /* NULL: there is none */
    struct assay_upstream *upstream; /* figures of others */
    struct assay_bench_groups *groups;
    struct assay_bench_output output;
};

/* Measures the case by the candidates of all sets. One that turns it down or breaks is
 * said to, and ends nothing; those beside one that breaks have nothing to be compared
 * with. */
enum assay_status assay_bench_case(struct assay_bench_job *job,
                                   const struct assay_case *the_case,
                                   struct assay_message *message);

/* A hardware unit's model under the clock; tables are closed by a NULL name. */
struct assay_unit_bench {
    const char *name, *summary; /* as --op has it: "wgmma" */
    enum assay_status (*run)(const char *name, const struct assay_timing *timing,
                             struct assay_bench_output *output,
                             struct assay_message *message);
};
extern const struct assay_unit_bench assay_unit_benches[];

#endif
