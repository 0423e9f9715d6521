/* SPDX-License-Identifier: MIT */
/* What `assay bench` measures and where its figures go. */
#ifndef ASSAY_VERIFY_COMMAND_BENCH_H
#define ASSAY_VERIFY_COMMAND_BENCH_H

#include "verify/command/report_file.h"
#include "verify/command/timing.h"

/* A figure; as JSON {"type":"bench","op","case","candidate","threads","seconds","rate",
 * "unit"[,"ratio_one_core"]}. */
struct assay_measurement {
    const char *op, *case_line, *candidate;
    int threads;    /* that may have shared the work */
    double seconds; /* median, of the case as a whole */
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

/* A hardware unit's model under the clock; tables are closed by a NULL name. */
struct assay_unit_bench {
    const char *name, *summary; /* as --op has it: "wgmma" */
    enum assay_status (*run)(const char *name, const struct assay_timing *timing,
                             struct assay_bench_output *output,
                             struct assay_message *message);
};
extern const struct assay_unit_bench assay_unit_benches[];

#endif
