/* SPDX-License-Identifier: MIT */
/* One case by all candidates, on one set of inputs. */
#include "verify/check/inputs.h"
#include "verify/command/bench_groups.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

/* A case while it is measured. */
struct trial {
    const struct assay_case *the_case;
    char line[ASSAY_MAX_CASE_LINE], group[ASSAY_MAX_GROUP_NAME];
    union assay_problem_storage problem;
    struct assay_tensors tensors;
    struct assay_buffers buffers;
    struct assay_cost cost;
    const struct assay_upstream_figure *upstream;
};

/* What somebody's kernel does to its own process is no reason to lose the other figures;
 * a device that is lost, or a mistake of the user's, is. */
static bool is_survived(const struct assay_bench_candidate *candidate,
                        enum assay_status status)
{
    return status != ASSAY_RAN && status != ASSAY_REFUSED &&
           status != ASSAY_DEVICE_LOST && !candidate->backend->is_trusted;
}

/* Somebody's kernel may turn the case down. */
static enum assay_status ask_candidate(struct assay_bench_output *output,
                                       const struct assay_bench_candidate *candidate,
                                       const struct trial *trial, bool *does_it,
                                       struct assay_message *message)
{
    const struct assay_run_call call = { .the_case = trial->the_case,
                                         .problem = &trial->problem,
                                         .tensors = &trial->tensors };
    struct assay_backend_claim claim;
    *does_it = true;
    if (candidate->backend->is_trusted) return ASSAY_RAN;
    const enum assay_status status =
        candidate->backend->claim(candidate->state, &call, &claim, message);
    *does_it = status == ASSAY_RAN;
    return is_survived(candidate, status)
               ? assay_bench_output_fail(output, trial->line, candidate->text, status,
                                         message)
               : status;
}

static void add_rates(const struct trial *trial, struct assay_measurement *measurement)
{
    const struct assay_cost cost = trial->cost;
    const double seconds = measurement->seconds;
    measurement->tflop_per_s = 2e-12 * cost.multiply_adds / seconds;
    measurement->gb_per_s = 1e-9 * cost.bytes / seconds;
    if (measurement->launches)
        measurement->roofline_share =
            assay_roofline_seconds(trial->the_case->operation, cost) / seconds;
}

/* Upstream's figures are a GPU's, measured as those of candidates with a clock. */
static void add_upstream(const struct assay_upstream_figure *figure,
                         struct assay_measurement *measurement)
{
    if (!figure || !measurement->cache) return;
    const bool is_cold = strcmp(measurement->cache, "cold") == 0;
    measurement->upstream_tflop_per_s = is_cold ? figure->cold : figure->hot;
    measurement->upstream_gb_per_s = is_cold ? figure->cold_gb_per_s : 0;
}

static struct assay_measurement figure_of(const struct assay_bench_candidate *candidate,
                                          const struct trial *trial,
                                          const struct assay_bench_time *time)
{
    const bool has_products = trial->cost.multiply_adds > 0;
    const double amount = has_products ? trial->cost.multiply_adds : trial->cost.bytes;
    struct assay_measurement measurement = {
        .op = trial->the_case->operation->name,
        .case_line = trial->line,
        .candidate = candidate->text,
        .threads = omp_get_max_threads(),
        .seconds = time->seconds,
        .launches = time->launches,
        .rate = amount / time->seconds,
        .unit = has_products ? "multiply-adds/s" : "bytes/s",
        .ratio_one_core = -1,
        .group = trial->group,
        .cache = !time->launches      ? NULL
                 : candidate->is_cold ? "cold"
                                      : "hot",
        .device = time->device,
    };
    add_rates(trial, &measurement);
    add_upstream(trial->upstream, &measurement);
    return measurement;
}

/* The first candidate's figure is written when those beside it are known. */
static enum assay_status write_figures(struct assay_bench_job *job,
                                       const struct trial *trial,
                                       struct assay_measurement *measurement, int count,
                                       struct assay_message *message)
{
    struct assay_measurement *const first = measurement;
    enum assay_status status = ASSAY_RAN;
    for (int i = 1; i < count; i++)
        first->ratio[first->ratio_count++] =
            (struct assay_bench_ratio){ measurement[i].candidate,
                                        measurement[i].seconds / first->seconds };
    for (int i = 0; i < count && status == ASSAY_RAN; i++)
        status = assay_bench_output_add(&job->output, &measurement[i], message);
    return status == ASSAY_RAN
               ? assay_bench_groups_add(job->groups, first, trial->upstream, message)
               : status;
}

/* Writes the figure to @measurement, if there is one. */
static enum assay_status measure_candidate(struct assay_bench_job *job,
                                           const struct assay_bench_candidate *candidate,
                                           const struct trial *trial,
                                           struct assay_measurement *measurement,
                                           bool *has_figure,
                                           struct assay_message *message)
{
    struct assay_bench_time time;
    const struct assay_run_call call = { .the_case = trial->the_case,
                                         .problem = &trial->problem,
                                         .tensors = &trial->tensors };
    const enum assay_status status =
        assay_bench_call(candidate, &call, &job->timing, job->device, &time, message);
    *has_figure = status == ASSAY_RAN;
    if (*has_figure) *measurement = figure_of(candidate, trial, &time);
    return is_survived(candidate, status)
               ? assay_bench_output_fail(&job->output, trial->line, candidate->text,
                                         status, message)
               : status;
}

static enum assay_status measure_set(struct assay_bench_job *job, int set,
                                     const bool *does_it, const struct trial *trial,
                                     struct assay_message *message)
{
    struct assay_measurement measurement[1 + ASSAY_MAX_BESIDE];
    enum assay_status status = ASSAY_RAN;
    int count = 0;
    for (int i = 0; i < job->set[set].count && status == ASSAY_RAN; i++) {
        bool has_figure = false;
        if (!does_it[i]) continue;
        status = measure_candidate(job, &job->set[set].candidate[i], trial,
                                   &measurement[count], &has_figure, message);
        if (has_figure) count++;
        if (!count) return status;
    }
    return status == ASSAY_RAN ? write_figures(job, trial, measurement, count, message)
                               : status;
}

/* Those of one set do what those of the other do. */
static enum assay_status ask_candidates(struct assay_bench_job *job,
                                        const struct trial *trial, bool *does_it,
                                        struct assay_message *message)
{
    const struct assay_bench_set *const set = &job->set[0];
    enum assay_status status = ASSAY_RAN;
    for (int i = 0; i < set->count && status == ASSAY_RAN && (!i || does_it[0]); i++)
        status =
            ask_candidate(&job->output, &set->candidate[i], trial, &does_it[i], message);
    return status;
}

/* Inputs are generated when it is known that somebody wants them: some take gigabytes. */
enum assay_status assay_bench_case(struct assay_bench_job *job,
                                   const struct assay_case *the_case,
                                   struct assay_message *message)
{
    const struct assay_operation *const operation = the_case->operation;
    struct trial trial = { .the_case = the_case };
    bool does_it[1 + ASSAY_MAX_BESIDE] = { false };
    assay_case_format(the_case, trial.line, sizeof(trial.line));
    assay_bench_group_name(the_case, trial.group);
    trial.upstream = assay_upstream_find(job->upstream, the_case);
    enum assay_status status = operation->bind(the_case, &trial.problem, message);
    if (status != ASSAY_RAN) return status;
    operation->shape(&trial.problem, &trial.tensors);
    trial.cost = operation->cost(&trial.problem);
    status = ask_candidates(job, &trial, does_it, message);
    if (status == ASSAY_RAN && does_it[0])
        status = assay_inputs_open(the_case, NULL, 0, &trial.problem, &trial.tensors,
                                   &trial.buffers, message);
    for (int i = 0; i < job->set_count && status == ASSAY_RAN && does_it[0]; i++)
        status = measure_set(job, i, does_it, &trial, message);
    assay_buffers_close(&trial.buffers);
    return status;
}
