/* SPDX-License-Identifier: MIT */
/* Figures of a bench: a line each for people, JSON Lines for machines between the header
 * and the summary that `assay verify` writes as well. */
#include "verify/command/bench.h"
#include "verify/report/json_put.h"

#include <errno.h>
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

static void put_unless_0(struct assay_json_output *json, json_t *object, const char *key,
                         double value)
{
    if (value > 0) assay_json_put_real(json, object, key, value);
}

static void put_upstream(struct assay_json_output *json, json_t *object,
                         const struct assay_measurement *measurement)
{
    const double upstream = measurement->upstream_tflop_per_s;
    put_unless_0(json, object, "upstream_tflop_per_s", upstream);
    put_unless_0(json, object, "upstream_gb_per_s", measurement->upstream_gb_per_s);
    if (upstream > 0)
        put_unless_0(json, object, "over_upstream", measurement->tflop_per_s / upstream);
}

static void put_ratios(struct assay_json_output *json, json_t *object,
                       const struct assay_measurement *measurement)
{
    if (!measurement->ratio_count) return;
    json_t *const all = json_array();
    for (int i = 0; i < measurement->ratio_count; i++) {
        json_t *const beside = json_object();
        assay_json_put_text(json, beside, "candidate", measurement->ratio[i].candidate);
        put_unless_0(json, beside, "ratio", measurement->ratio[i].ratio);
        assay_json_append(json, all, beside);
    }
    assay_json_put(json, object, "over_beside", all);
}

static bool write_object(FILE *stream, const struct assay_measurement *measurement)
{
    struct assay_json_output json = { .file = stream };
    json_t *const object = json_object();
    assay_json_put_text(&json, object, "type", "bench");
    assay_json_put_text(&json, object, "op", measurement->op);
    assay_json_put_text(&json, object, "case", measurement->case_line);
    assay_json_put_text(&json, object, "candidate", measurement->candidate);
    assay_json_put_count(&json, object, "threads", measurement->threads);
    assay_json_put_real(&json, object, "seconds", measurement->seconds);
    assay_json_put_real(&json, object, "rate", measurement->rate);
    assay_json_put_text(&json, object, "unit", measurement->unit);
    if (measurement->launches)
        assay_json_put_count(&json, object, "launches", measurement->launches);
    if (measurement->ratio_one_core >= 0)
        assay_json_put_real(&json, object, "ratio_one_core", measurement->ratio_one_core);
    assay_json_put_text(&json, object, "group", measurement->group);
    assay_json_put_text(&json, object, "cache", measurement->cache);
    put_unless_0(&json, object, "tflop_per_s", measurement->tflop_per_s);
    put_unless_0(&json, object, "gb_per_s", measurement->gb_per_s);
    put_unless_0(&json, object, "roofline_share", measurement->roofline_share);
    put_unless_0(&json, object, "sm_clock_mhz", measurement->device.sm_clock_mhz);
    put_unless_0(&json, object, "power_w", measurement->device.power_w);
    put_upstream(&json, object, measurement);
    put_ratios(&json, object, measurement);
    return assay_json_write_line(&json, object) == ASSAY_RAN;
}

static void print_comparisons(const struct assay_measurement *measurement)
{
    if (measurement->upstream_tflop_per_s > 0)
        printf("  %.3f of upstream's %.4g",
               measurement->tflop_per_s / measurement->upstream_tflop_per_s,
               measurement->upstream_tflop_per_s);
    for (int i = 0; i < measurement->ratio_count; i++)
        printf("  %.3f of %s", measurement->ratio[i].ratio,
               measurement->ratio[i].candidate);
    if (measurement->device.sm_clock_mhz > 0)
        printf("  %.0f MHz", measurement->device.sm_clock_mhz);
    if (measurement->device.power_w > 0) printf("  %.0f W", measurement->device.power_w);
}

static bool write_text(const struct assay_measurement *measurement)
{
    printf("%10.3g s  %10.4g %s  %d thread%s", measurement->seconds, measurement->rate,
           measurement->unit, measurement->threads, measurement->threads == 1 ? "" : "s");
    if (measurement->ratio_one_core >= 0)
        printf("  %.4f of sgemm", measurement->ratio_one_core);
    if (measurement->launches) printf("  %d launches", measurement->launches);
    if (measurement->cache) printf(", %s", measurement->cache);
    if (measurement->tflop_per_s > 0) printf("  %.4g TFLOP/s", measurement->tflop_per_s);
    if (measurement->gb_per_s > 0) printf("  %.4g GB/s", measurement->gb_per_s);
    if (measurement->roofline_share > 0)
        printf("  %.1f %% of the roofline", 100 * measurement->roofline_share);
    print_comparisons(measurement);
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

enum assay_status assay_bench_output_fail(struct assay_bench_output *output,
                                          const char *case_line, const char *candidate,
                                          enum assay_status status,
                                          struct assay_message *message)
{
    struct assay_json_output json = { .file = output->json.stream };
    fprintf(stderr, "assay: not measured: %s: %s\n", case_line, message->text);
    if (status == ASSAY_UNSUPPORTED) return ASSAY_RAN;
    output->broken++;
    if (!json.file) return ASSAY_RAN;
    json_t *const object = json_object();
    assay_json_put_text(&json, object, "type", "bench_failure");
    assay_json_put_text(&json, object, "case", case_line);
    assay_json_put_text(&json, object, "candidate", candidate);
    assay_json_put_text(&json, object, "status", assay_status_name(status));
    assay_json_put_text(&json, object, "message", message->text);
    return assay_json_write_line(&json, object) == ASSAY_RAN
               ? ASSAY_RAN
               : assay_fail(message, ASSAY_FAILED, "report %s: writing failed: %s",
                            output->json.path, strerror(errno));
}

enum assay_status assay_bench_output_end(struct assay_bench_output *output, int exit_code,
                                         struct assay_message *message)
{
    const struct assay_summary summary = { .cases = output->count,
                                           .broken = output->broken,
                                           .exit_code = exit_code };
    return output->json.stream ? assay_report_file_end(&output->json, &summary, message)
                               : ASSAY_RAN;
}

void assay_bench_output_close(struct assay_bench_output *output)
{
    assay_report_file_close(&output->json);
}
