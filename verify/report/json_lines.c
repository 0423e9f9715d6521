/* SPDX-License-Identifier: MIT */
/* JSON Lines: the facts, for machines. Every other view can be made from them. */
#include "verify/report/json_put.h"
#include "verify/report/json_result.h"
#include "verify/report/report.h"
#include "verify/report/version.h"

#include <cblas.h>
#include <fenv.h>
#include <omp.h>
#include <stdlib.h>

enum { SCHEMA = 1 };

#ifdef __clang__
static const char compiler[] = __VERSION__;
#else
static const char compiler[] = "GCC " __VERSION__;
#endif

/* Reads its operands through volatile, so that the machine computes and not the
 * compiler. */
static const char *float_mode(void)
{
    const volatile float tiny = 0x1p-126F;
    const volatile double factor = 1 + 0x1p-30, square = -1 - 0x1p-29;

    if (fegetround() != FE_TONEAREST) return "directed rounding";
    if (tiny * 0.125F == 0) return "flush to zero";
    if (factor * factor + square != 0) return "contracted or extended";
    return "ieee";
}

static json_t *environment(struct assay_json_output *json)
{
    static const char *const names[] = {
        "OMP_NUM_THREADS",         "OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE",
        "CUDA_VISIBLE_DEVICES",    "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING",
        "CUBLAS_WORKSPACE_CONFIG",
    };
    json_t *const object = json_object(), *const variables = json_object();
    assay_json_put_text(json, object, "compiler", compiler);
    assay_json_put_text(json, object, "blas", openblas_get_config());
    assay_json_put_text(json, object, "float_mode", float_mode());
    assay_json_put_count(json, object, "threads", omp_get_max_threads());
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assay_json_put_text(json, variables, names[i], getenv(names[i]));
    assay_json_put(json, object, "variables", variables);
    return object;
}

static enum assay_status begin(void *state, FILE *file,
                               const struct assay_run_header *header)
{
    struct assay_json_output *const json = state;
    json_t *const object = json_object();

    *json = (struct assay_json_output){ .file = file };
    assay_json_put_text(json, object, "type", "header");
    assay_json_put_count(json, object, "schema", SCHEMA);
    assay_json_put_text(json, object, "tool", "assay");
    assay_json_put_text(json, object, "version", ASSAY_VERSION);
    assay_json_put_text(json, object, "command", header->command);
    assay_json_put_text(json, object, "candidate", header->candidate);
    assay_json_put_text(json, object, "reference", header->reference);
    assay_json_put_text(json, object, "checks", header->checks);
    assay_json_put_text(json, object, "require", header->require);
    assay_json_put(json, object, "environment", environment(json));
    return assay_json_write_line(json, object);
}

static enum assay_status write_result(void *state, const struct assay_result *result)
{
    const struct assay_json_output *const json = state;
    return assay_json_result_write(json->file, result);
}

static enum assay_status end(void *state, const struct assay_summary *summary)
{
    struct assay_json_output *const json = state;
    json_t *const object = json_object(), *const verdicts = json_object();

    assay_json_put_text(json, object, "type", "summary");
    assay_json_put_count(json, object, "cases", summary->cases);
    assay_json_put_count(json, object, "passed", summary->passed);
    assay_json_put_count(json, object, "failed", summary->failed);
    assay_json_put_count(json, object, "indecisive", summary->indecisive);
    assay_json_put_count(json, object, "unsupported", summary->unsupported);
    assay_json_put_count(json, object, "broken", summary->broken);
    assay_json_put_count(json, object, "contradictions", summary->contradictions);
    for (int i = 0; i < ASSAY_VERDICT_COUNT; i++)
        assay_json_put_count(json, verdicts, assay_verdicts[i].name,
                             summary->verdicts[i]);
    assay_json_put(json, object, "verdicts", verdicts);
    assay_json_put_count(json, object, "elements_compared", summary->elements_compared);
    assay_json_put_count(json, object, "elements_equal", summary->elements_equal);
    assay_json_put_real(json, object, "max_error_over_bound",
                        summary->max_error_over_bound);
    assay_json_put_count(json, object, "exit_code", summary->exit_code);
    return assay_json_write_line(json, object);
}

const struct assay_report assay_report_json = {
    .name = "json",
    .summary = "JSON Lines: a header, one object a case, a summary",
    .state_bytes = sizeof(struct assay_json_output),
    .begin = begin,
    .result = write_result,
    .end = end,
};
