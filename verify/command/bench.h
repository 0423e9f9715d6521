/* SPDX-License-Identifier: MIT */
/* What `assay bench` measures and where its figures go. */
#ifndef ASSAY_VERIFY_COMMAND_BENCH_H
#define ASSAY_VERIFY_COMMAND_BENCH_H

#include "verify/backend/backend.h"
#include "verify/command/report_file.h"
#include "verify/command/timing.h"

/* A figure; as JSON {"type":"bench","op","case","candidate","threads","seconds","rate",
 * "unit"[,"launches"][,"ratio_one_core"]}. */
struct assay_measurement {
    const char *op, *case_line, *candidate;
    int threads;    /* that may have shared the work */
    double seconds; /* median: of a launch, or of the case as a whole */
    int launches;   /* in each of the runs, by the candidate's own clock; 0: by ours */
    double rate;    /* of multiply-adds, or of bytes where there are none */
    const char *unit;
    double ratio_one_core; /* rate over that of sgemm on one thread; < 0: none */
};

struct assay_bench_output {
    bool has_text;                 /* a line a figure to stdout */
    struct assay_report_file json; /* closed, if there is none */
    int64_t count;
};

/* @json_path: NULL for none, "-" to replace the text. */
enum assay_status assay_bench_output_open(struct assay_bench_output *output,
                                          const char *json_path, const char *candidate,
                                          struct assay_message *message);
enum assay_status assay_bench_output_add(struct assay_bench_output *output,
                                         const struct assay_measurement *measurement,
                                         struct assay_message *message);
enum assay_status assay_bench_output_end(struct assay_bench_output *output, int exit_code,
                                         struct assay_message *message);
void assay_bench_output_close(struct assay_bench_output *output);

struct assay_bench_time {
    double seconds; /* of one launch */
    int launches;   /* that a run had, by the candidate's own clock; 0: a run by ours */
};

/* Measures the call. Candidates that say how long their launches took are asked for as
 * many in each run as take about 0.1 s. */
enum assay_status assay_bench_call(const struct assay_backend *backend, void *state,
                                   const struct assay_run_call *call,
                                   const struct assay_timing *timing,
                                   struct assay_bench_time *time,
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
