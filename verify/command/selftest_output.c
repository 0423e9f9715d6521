/* SPDX-License-Identifier: MIT */
#include "verify/command/selftest_output.h"

#include "verify/report/json_put.h"

#include <errno.h>
#include <string.h>

enum assay_status assay_selftest_output_open(struct assay_selftest_output *output,
                                             const char *json_path,
                                             struct assay_message *message)
{
    const struct assay_run_header header = { .command = "selftest" };
    output->has_text = !json_path || strcmp(json_path, "-") != 0;
    return json_path ? assay_report_file_open(&output->json, &assay_report_json,
                                              json_path, &header, message)
                     : ASSAY_RAN;
}

static void count(struct assay_selftest_output *output,
                  const struct assay_selftest *selftest,
                  const struct assay_fault_outcome *outcome)
{
    const enum assay_fault_kind kind = outcome->fault->kind;
    bool is_found = false;
    output->faults++;
    output->caught += outcome->is_caught;
    for (int i = 0; i < selftest->column_count; i++) {
        const bool has_found = outcome->kill[i].cases > 0;
        output->judged[i] += outcome->kill[i].chances > 0;
        output->found[i] += has_found;
        is_found |= has_found && !selftest->column[i].uses_model &&
                    !selftest->column[i].is_criterion;
    }
    if (kind != ASSAY_FAULT_FUNCTION && kind != ASSAY_FAULT_EXECUTION) return;
    output->kernels++;
    output->without_model += is_found;
}

/* --- text ------------------------------------------------------------------------- */

static void print_columns(const struct assay_selftest *selftest,
                          const struct assay_fault_outcome *outcome, bool criteria)
{
    for (int i = 0; i < selftest->column_count; i++)
        if (selftest->column[i].is_criterion == criteria && outcome->kill[i].cases)
            printf(" %s %d", selftest->column[i].name, outcome->kill[i].cases);
}

static void print_fault(const struct assay_selftest *selftest,
                        const struct assay_fault_outcome *outcome)
{
    const struct assay_fault *const fault = outcome->fault;
    printf("%s %-26s %-5s %-9s", outcome->is_caught ? "caught  " : "SURVIVES",
           fault->name, fault->class_id, assay_fault_kind_names[fault->kind]);
    print_columns(selftest, outcome, false);
    if (fault->kind != ASSAY_FAULT_VERIFIER) {
        fputs(" |", stdout);
        print_columns(selftest, outcome, true);
    }
    if (*outcome->remark) printf(" %s", outcome->remark);
    printf("  (%d case%s)\n", outcome->cases, outcome->cases == 1 ? "" : "s");
    if (!outcome->is_caught && *outcome->case_line)
        printf("         seen first on %s\n", outcome->case_line);
}

static void print_share(const struct assay_selftest_output *output,
                        const struct assay_selftest *selftest, bool criteria)
{
    for (int i = 0; i < selftest->column_count; i++)
        if (selftest->column[i].is_criterion == criteria && output->judged[i])
            printf("  %-12s %3d of %3d (%.0f %%)\n", selftest->column[i].name,
                   output->found[i], output->judged[i],
                   100.0 * output->found[i] / output->judged[i]);
}

static void print_totals(const struct assay_selftest_output *output,
                         const struct assay_selftest *selftest)
{
    printf("\n%d of %d fault%s caught as their kind demands", output->caught,
           output->faults, output->faults == 1 ? "" : "s");
    if (output->skipped) printf(", %d not run for want of time", output->skipped);
    if (output->kernels)
        printf("\n%d of %d function and execution faults (%.0f %%) found without bitwise",
               output->without_model, output->kernels,
               100.0 * output->without_model / output->kernels);
    printf("\nclean model: %d case%s, %d false alarm%s\n", selftest->clean_cases,
           selftest->clean_cases == 1 ? "" : "s", selftest->alarms,
           selftest->alarms == 1 ? "" : "s");
    if (selftest->alarms) printf("%s\n", selftest->alarm);
    puts("\nfaults that each check found, of those that it judged:");
    print_share(output, selftest, false);
    puts("faults that other people's criteria would have caught, on cases on which they\n"
         "let the clean model pass:");
    print_share(output, selftest, true);
    puts("cases on which they reject the clean model:");
    for (int i = 0; i < selftest->column_count; i++)
        if (selftest->column[i].is_criterion && selftest->clean_judged[i])
            printf("  %-12s %3d of %3d\n", selftest->column[i].name,
                   selftest->clean_rejected[i], selftest->clean_judged[i]);
}

/* --- json ------------------------------------------------------------------------- */

static void put_columns(struct assay_json_output *json, json_t *object, const char *key,
                        const struct assay_selftest *selftest,
                        const struct assay_fault_outcome *outcome, bool criteria)
{
    json_t *const columns = json_object();
    for (int i = 0; i < selftest->column_count; i++) {
        const struct assay_kill *const kill = &outcome->kill[i];
        if (selftest->column[i].is_criterion != criteria || !kill->chances) continue;
        json_t *const column = json_object();
        assay_json_put_count(json, column, "chances", kill->chances);
        if (kill->cases) assay_json_put_count(json, column, "cases", kill->cases);
        assay_json_put(json, columns, selftest->column[i].name, column);
    }
    assay_json_put(json, object, key, columns);
}

static enum assay_status write_fault(FILE *stream, const struct assay_selftest *selftest,
                                     const struct assay_fault_outcome *outcome)
{
    const struct assay_fault *const fault = outcome->fault;
    struct assay_json_output json = { .file = stream };
    json_t *const object = json_object();
    assay_json_put_text(&json, object, "type", "fault");
    assay_json_put_text(&json, object, "fault", fault->name);
    assay_json_put_text(&json, object, "class", fault->class_id);
    assay_json_put_text(&json, object, "report", fault->report);
    assay_json_put_text(&json, object, "kind", assay_fault_kind_names[fault->kind]);
    assay_json_put_text(&json, object, "operation", fault->operation);
    assay_json_put_text(&json, object, "meaning", fault->meaning);
    assay_json_put_flag(&json, object, "caught", outcome->is_caught);
    assay_json_put_text(&json, object, "remark", outcome->remark);
    assay_json_put_count(&json, object, "cases", outcome->cases);
    assay_json_put_text(&json, object, "case", outcome->case_line);
    assay_json_put_real(&json, object, "seconds", outcome->seconds);
    put_columns(&json, object, "checks", selftest, outcome, false);
    put_columns(&json, object, "criteria", selftest, outcome, true);
    return assay_json_write_line(&json, object);
}

static enum assay_status write_totals(FILE *stream,
                                      const struct assay_selftest_output *output,
                                      const struct assay_selftest *selftest)
{
    struct assay_json_output json = { .file = stream };
    json_t *const object = json_object();
    assay_json_put_text(&json, object, "type", "selftest");
    assay_json_put_count(&json, object, "faults", output->faults);
    assay_json_put_count(&json, object, "caught", output->caught);
    assay_json_put_count(&json, object, "skipped", output->skipped);
    assay_json_put_count(&json, object, "function_and_execution", output->kernels);
    assay_json_put_count(&json, object, "found_without_bitwise", output->without_model);
    assay_json_put_count(&json, object, "clean_cases", selftest->clean_cases);
    assay_json_put_count(&json, object, "false_alarms", selftest->alarms);
    assay_json_put_text(&json, object, "false_alarm", selftest->alarm);
    return assay_json_write_line(&json, object);
}

static enum assay_status failed(const struct assay_selftest_output *output,
                                struct assay_message *message)
{
    return assay_fail(message, ASSAY_FAILED, "report %s: writing failed: %s",
                      output->json.path, strerror(errno));
}

enum assay_status assay_selftest_output_add(struct assay_selftest_output *output,
                                            const struct assay_selftest *selftest,
                                            const struct assay_fault_outcome *outcome,
                                            struct assay_message *message)
{
    count(output, selftest, outcome);
    if (output->json.stream &&
        write_fault(output->json.stream, selftest, outcome) != ASSAY_RAN)
        return failed(output, message);
    if (!output->has_text) return ASSAY_RAN;
    print_fault(selftest, outcome);
    if (fflush(stdout) == 0) return ASSAY_RAN;
    return assay_fail(message, ASSAY_FAILED, "stdout: writing failed: %s",
                      strerror(errno));
}

enum assay_status assay_selftest_output_end(struct assay_selftest_output *output,
                                            const struct assay_selftest *selftest,
                                            int exit_code, struct assay_message *message)
{
    const struct assay_summary summary = { .cases = output->faults,
                                           .passed = output->caught,
                                           .failed = output->faults - output->caught,
                                           .contradictions = selftest->alarms,
                                           .exit_code = exit_code };
    if (output->has_text) print_totals(output, selftest);
    if (output->has_text && fflush(stdout) != 0)
        return assay_fail(message, ASSAY_FAILED, "stdout: writing failed: %s",
                          strerror(errno));
    if (!output->json.stream) return ASSAY_RAN;
    if (write_totals(output->json.stream, output, selftest) != ASSAY_RAN)
        return failed(output, message);
    return assay_report_file_end(&output->json, &summary, message);
}

void assay_selftest_output_close(struct assay_selftest_output *output)
{
    assay_report_file_close(&output->json);
}
