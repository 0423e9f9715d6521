/* SPDX-License-Identifier: MIT */
#include "verify/command/selftest_output.h"

#include "verify/command/selftest_markdown.h"
#include "verify/report/json_put.h"

#include <errno.h>
#include <string.h>

enum assay_status assay_selftest_output_open(struct assay_selftest_output *output,
                                             const char *json_path,
                                             const char *markdown_path,
                                             struct assay_message *message)
{
    const struct assay_run_header header = { .command = "selftest" };
    const bool has_json = json_path && strcmp(json_path, "-") == 0;
    const bool has_markdown = markdown_path && strcmp(markdown_path, "-") == 0;
    enum assay_status status = ASSAY_RAN;
    output->has_text = !has_json && !has_markdown;
    if (has_json && has_markdown)
        return assay_fail(
            message, ASSAY_REFUSED,
            "--json - and --markdown - can't both go to stdout; name a file "
            "for one of them");
    if (json_path)
        status = assay_report_file_open(&output->json, &assay_report_json, json_path,
                                        &header, message);
    if (status == ASSAY_RAN && markdown_path)
        status = assay_report_file_open(&output->markdown, &assay_selftest_markdown,
                                        markdown_path, &header, message);
    return status;
}

static void count(struct assay_selftest_output *output,
                  const struct assay_selftest *selftest,
                  const struct assay_fault_outcome *outcome)
{
    const enum assay_fault_kind kind = outcome->fault->kind;
    bool is_found = false;
    const int class = assay_fault_class_of(outcome->fault);
    output->faults++;
    output->caught += outcome->is_caught;
    output->class_faults[class]++;
    output->class_caught[class] += outcome->is_caught;
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

static void print_classes(const struct assay_selftest_output *output)
{
    puts("\nfaults caught, of those of each class:");
    for (int i = 0; i < ASSAY_FAULT_CLASSES; i++)
        if (output->class_faults[i])
            printf("  %s %-36s %3d of %3d\n", assay_fault_classes[i].id,
                   assay_fault_classes[i].name, output->class_caught[i],
                   output->class_faults[i]);
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
    print_classes(output);
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
    assay_json_put_text(&json, object, "class_name",
                        assay_fault_classes[assay_fault_class_of(fault)].name);
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

static void put_classes(struct assay_json_output *json, json_t *object,
                        const struct assay_selftest_output *output)
{
    json_t *const classes = json_object();
    for (int i = 0; i < ASSAY_FAULT_CLASSES; i++) {
        if (output->class_faults[i] == 0) continue;
        json_t *const class = json_object();
        assay_json_put_text(json, class, "name", assay_fault_classes[i].name);
        assay_json_put_count(json, class, "faults", output->class_faults[i]);
        assay_json_put_count(json, class, "caught", output->class_caught[i]);
        assay_json_put(json, classes, assay_fault_classes[i].id, class);
    }
    assay_json_put(json, object, "classes", classes);
}

static void put_shares(struct assay_json_output *json, json_t *object,
                       const struct assay_selftest_output *output,
                       const struct assay_selftest *selftest)
{
    json_t *const columns = json_object();
    for (int i = 0; i < selftest->column_count; i++) {
        const struct assay_column *const column = &selftest->column[i];
        json_t *const share = json_object();
        assay_json_put_flag(json, share, "criterion", column->is_criterion);
        assay_json_put_count(json, share, "judged", output->judged[i]);
        assay_json_put_count(json, share, "found", output->found[i]);
        assay_json_put_count(json, share, "clean_judged", selftest->clean_judged[i]);
        assay_json_put_count(json, share, "clean_rejected", selftest->clean_rejected[i]);
        assay_json_put(json, columns, column->name, share);
    }
    assay_json_put(json, object, "columns", columns);
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
    put_classes(&json, object, output);
    put_shares(&json, object, output, selftest);
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
    if (output->markdown.state &&
        assay_selftest_matrix_add(output->markdown.state, outcome) != ASSAY_RAN)
        return assay_fail(message, ASSAY_OUT_OF_MEMORY, "no memory for the matrix");
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
    if (output->json.stream &&
        write_totals(output->json.stream, output, selftest) != ASSAY_RAN)
        return failed(output, message);
    if (output->markdown.state)
        ((struct assay_selftest_matrix *)output->markdown.state)->selftest = selftest;
    enum assay_status status = ASSAY_RAN;
    if (output->json.stream)
        status = assay_report_file_end(&output->json, &summary, message);
    if (status == ASSAY_RAN && output->markdown.stream)
        status = assay_report_file_end(&output->markdown, &summary, message);
    return status;
}

void assay_selftest_output_close(struct assay_selftest_output *output)
{
    assay_report_file_close(&output->json);
    assay_report_file_close(&output->markdown);
}
