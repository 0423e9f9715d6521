/* SPDX-License-Identifier: MIT */
/* Fuzzing target: a case object of a json report or journal, read and reported again. */
#include "fuzz/target/input.h"
#include "verify/report/json_read.h"
#include "verify/report/json_result.h"
#include "verify/report/report.h"

static char *line_of(const struct assay_result *result)
{
    char *line = NULL;
    size_t size;
    FILE *const file = open_memstream(&line, &size);
    const enum assay_status status = assay_json_result_write(file, result);
    assert(status == ASSAY_RAN);
    fclose(file);
    assert(strlen(line) == size && strchr(line, '\n') == line + size - 1);
    return line;
}

/* What a result is written as is read as the same. */
static void check_round_trip(const struct assay_result *result)
{
    struct assay_result again;
    struct assay_message message = { "" };
    char *const line = line_of(result);
    const enum assay_status status = assay_json_result_read(line, &again, &message);
    assert(status == ASSAY_RAN);
    char *const other = line_of(&again);
    assert(strcmp(line, other) == 0);
    free(line);
    free(other);
    assay_result_close(&again);
}

static void report_all(const struct assay_result *result)
{
    const struct assay_run_header header = { .command = "verify", .candidate = "model" };
    const struct assay_summary summary = { .cases = 1 };
    for (int i = 0; assay_reports[i]; i++) {
        const struct assay_report *const report = assay_reports[i];
        char *text = NULL;
        size_t size;
        FILE *const file = open_memstream(&text, &size);
        void *const state = calloc(1, report->state_bytes);
        assert(file && state);
        bool has_worked = report->begin(state, file, &header) == ASSAY_RAN;
        has_worked &= report->result(state, result) == ASSAY_RAN;
        has_worked &= report->end(state, &summary) == ASSAY_RAN;
        assert(has_worked);
        if (report->close) report->close(state);
        fclose(file);
        free(state);
        free(text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct assay_result result;
    struct assay_message message = { "" };
    char *const line = input_text(data, size);
    const enum assay_status status = assay_json_result_read(line, &result, &message);
    check_answer(status, &message);
    memset(line, '?', strlen(line)); /* nothing of it is borrowed */
    if (status == ASSAY_RAN) {
        check_round_trip(&result);
        report_all(&result);
    }
    assay_result_close(&result);
    free(line);
    return 0;
}
