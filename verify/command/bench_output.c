/* SPDX-License-Identifier: MIT */
/* Figures of a bench: a line each for people, JSON Lines for machines between the header
 * and the summary that `assay verify` writes as well. */
#include "verify/command/bench.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

enum assay_status assay_bench_output_open(struct assay_bench_output *output,
                                          const char *json_path, const char *candidate,
                                          struct assay_message *message)
{
    const struct assay_run_header header = { .command = "bench", .candidate = candidate };
    output->has_text = !json_path || strcmp(json_path, "-") != 0;
    return json_path ? assay_report_file_open(&output->json, &assay_report_json,
                                              json_path, &header, message)
                     : ASSAY_RAN;
}

static json_t *object_of(const struct assay_measurement *measurement)
{
    json_t *const object =
        json_pack("{ss ss ss ss si sf sf ss}", "type", "bench", "op", measurement->op,
                  "case", measurement->case_line, "candidate", measurement->candidate,
                  "threads", measurement->threads, "seconds", measurement->seconds,
                  "rate", measurement->rate, "unit", measurement->unit);
    const bool has_ratio = measurement->ratio_one_core >= 0;
    if (object &&
        (!measurement->launches ||
         json_object_set_new(object, "launches", json_integer(measurement->launches)) ==
             0) &&
        (!has_ratio || json_object_set_new(object, "ratio_one_core",
                                           json_real(measurement->ratio_one_core)) == 0))
        return object;
    json_decref(object);
    return NULL;
}

static bool write_object(FILE *stream, const struct assay_measurement *measurement)
{
    json_t *const object = object_of(measurement);
    const bool is_written = object && json_dumpf(object, stream, JSON_COMPACT) == 0 &&
                            fputc('\n', stream) != EOF && fflush(stream) == 0;
    json_decref(object);
    return is_written;
}

static bool write_text(const struct assay_measurement *measurement)
{
    printf("%10.3g s  %10.4g %s  %d thread%s", measurement->seconds, measurement->rate,
           measurement->unit, measurement->threads, measurement->threads == 1 ? "" : "s");
    if (measurement->ratio_one_core >= 0)
        printf("  %.4f of sgemm", measurement->ratio_one_core);
    if (measurement->launches) printf("  %d launches", measurement->launches);
    printf("  %s  %s\n", measurement->candidate, measurement->case_line);
    return fflush(stdout) == 0;
}

enum assay_status assay_bench_output_add(struct assay_bench_output *output,
                                         const struct assay_measurement *measurement,
                                         struct assay_message *message)
{
    const bool has_json = output->json.stream != NULL;
    output->count++;
    if (has_json && !write_object(output->json.stream, measurement))
        return assay_fail(message, ASSAY_FAILED, "report %s: writing failed: %s",
                          output->json.path, strerror(errno));
    if (output->has_text && !write_text(measurement))
        return assay_fail(message, ASSAY_FAILED, "stdout: writing failed: %s",
                          strerror(errno));
    return ASSAY_RAN;
}

enum assay_status assay_bench_output_end(struct assay_bench_output *output, int exit_code,
                                         struct assay_message *message)
{
    const struct assay_summary summary = { .cases = output->count,
                                           .exit_code = exit_code };
    return output->json.stream ? assay_report_file_end(&output->json, &summary, message)
                               : ASSAY_RAN;
}

void assay_bench_output_close(struct assay_bench_output *output)
{
    assay_report_file_close(&output->json);
}
