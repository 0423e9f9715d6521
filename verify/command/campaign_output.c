/* SPDX-License-Identifier: MIT */
#include "verify/command/campaign_output.h"

#include "verify/command/command.h"
#include "verify/report/json_put.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* --- text ------------------------------------------------------------------------- */

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

static void print_summary(const struct assay_campaign_settings *settings,
                          const struct assay_campaign_tally *tally)
{
    const struct assay_campaign *const campaign = &settings->campaign;
    const struct assay_summary *const summary = &tally->summary;
    const bool has_candidate = settings->candidate && *settings->candidate;
    printf("campaign of seed %" PRIu64 ", generator %d, candidate %s: %" PRId64
           " case%s\n",
           campaign->seed, ASSAY_CAMPAIGN_VERSION,
           has_candidate ? settings->candidate : "model", summary->cases,
           plural(summary->cases));
    printf("%" PRId64 " passed, %" PRId64 " failed, %" PRId64 " indecisive, %" PRId64
           " unsupported, %" PRId64 " broken, %" PRId64 " contradiction%s, %" PRId64
           " refused\n",
           summary->passed, summary->failed, summary->indecisive, summary->unsupported,
           summary->broken, summary->contradictions, plural(summary->contradictions),
           tally->refused);
    fputs("verdicts:", stdout);
    for (int i = 0; i < ASSAY_VERDICT_COUNT; i++)
        if (summary->verdicts[i])
            printf(" %" PRId64 " %s", summary->verdicts[i], assay_verdicts[i].name);
    printf("\n%" PRId64 " illegal case%s, %" PRId64 " of them accepted\n",
           tally->negatives, plural(tally->negatives), tally->accepted);
    printf("%" PRId64 " of %" PRId64 " elements equal to the bit; largest error/bound "
           "%.3g\n",
           summary->elements_equal, summary->elements_compared,
           summary->max_error_over_bound);
}

static void print_coverage(const struct assay_campaign_tally *tally)
{
    printf("\n%-34s %8s %12s %16s\n", "taken of all", "cases", "classes", "pairs");
    for (int i = 0; i < tally->campaign->operations; i++) {
        const struct assay_coverage *const coverage = &tally->coverage[i];
        const struct assay_coverage_counts counts = assay_coverage_count(coverage);
        printf("%-34s %8" PRId64 " %5" PRId64 "/%-6" PRId64 " %8" PRId64 "/%-7" PRId64
               "\n",
               tally->campaign->operation[i]->name, coverage->cases, counts.classes,
               counts.all_classes, counts.pairs, counts.all_pairs);
    }
}

static void print_findings(const struct assay_campaign_settings *settings,
                           const struct assay_campaign_findings *findings)
{
    printf("\n%" PRId64 " finding%s", findings->count, plural(findings->count));
    if (findings->cases)
        printf(" in %" PRId64 " case%s", findings->cases, plural(findings->cases));
    putchar('\n');
    for (int64_t i = 0; i < findings->count; i++) {
        const struct assay_campaign_finding *const finding = &findings->item[i];
        printf("\n%" PRId64 ". %s\n   %" PRId64 " case%s, the first is number %" PRId64
               "\n   assay verify '%s'%s\n",
               i + 1, finding->signature.text, finding->cases, plural(finding->cases),
               finding->number, finding->line, settings->repetition);
        if (!finding->is_negative)
            printf("   assay shrink '%s'%s\n", finding->line, settings->repetition);
    }
    if (findings->dropped)
        printf("\n%" PRId64 " further case%s failed with other signatures\n",
               findings->dropped, plural(findings->dropped));
}

/* --- json ------------------------------------------------------------------------- */

static enum assay_status write_campaign(FILE *stream,
                                        const struct assay_campaign_settings *settings)
{
    struct assay_json_output json = { .file = stream };
    const struct assay_campaign *const campaign = &settings->campaign;
    json_t *const object = json_object(), *const operations = json_array();
    char seed[24];
    snprintf(seed, sizeof(seed), "%" PRIu64, campaign->seed);
    for (int i = 0; i < campaign->operations; i++)
        assay_json_append(&json, operations, json_string(campaign->operation[i]->name));
    assay_json_put_text(&json, object, "type", "campaign");
    assay_json_put_count(&json, object, "generator", ASSAY_CAMPAIGN_VERSION);
    assay_json_put_text(&json, object, "seed", seed);
    assay_json_put_text(&json, object, "options", settings->repetition);
    assay_json_put(&json, object, "operations", operations);
    assay_json_put_real(&json, object, "cost", campaign->multiply_adds);
    if (campaign->shape_pool)
        assay_json_put_count(&json, object, "shape_pool", campaign->shape_pool);
    if (settings->cases)
        assay_json_put_count(&json, object, "cases_asked", settings->cases);
    return assay_json_write_line(&json, object);
}

static enum assay_status write_coverage(FILE *stream,
                                        const struct assay_operation *operation,
                                        const struct assay_coverage *coverage)
{
    struct assay_json_output json = { .file = stream };
    const struct assay_coverage_counts counts = assay_coverage_count(coverage);
    json_t *const object = json_object();
    assay_json_put_text(&json, object, "type", "coverage");
    assay_json_put_text(&json, object, "operation", operation->name);
    assay_json_put_count(&json, object, "cases", coverage->cases);
    assay_json_put_count(&json, object, "classes", counts.classes);
    assay_json_put_count(&json, object, "all_classes", counts.all_classes);
    assay_json_put_count(&json, object, "pairs", counts.pairs);
    assay_json_put_count(&json, object, "all_pairs", counts.all_pairs);
    return assay_json_write_line(&json, object);
}

static enum assay_status write_finding(FILE *stream,
                                       const struct assay_campaign_finding *finding)
{
    struct assay_json_output json = { .file = stream };
    json_t *const object = json_object();
    assay_json_put_text(&json, object, "type", "finding");
    assay_json_put_text(&json, object, "signature", finding->signature.text);
    assay_json_put_count(&json, object, "number", finding->number);
    assay_json_put_text(&json, object, "case", finding->line);
    assay_json_put_count(&json, object, "cases", finding->cases);
    assay_json_put_flag(&json, object, "accepted", finding->is_negative);
    return assay_json_write_line(&json, object);
}

static enum assay_status write_tally(FILE *stream,
                                     const struct assay_campaign_tally *tally,
                                     int64_t ran, double seconds)
{
    struct assay_json_output json = { .file = stream };
    json_t *const object = json_object();
    assay_json_put_text(&json, object, "type", "tally");
    assay_json_put_count(&json, object, "findings", tally->findings.count);
    assay_json_put_count(&json, object, "finding_cases", tally->findings.cases);
    assay_json_put_count(&json, object, "dropped", tally->findings.dropped);
    assay_json_put_count(&json, object, "illegal", tally->negatives);
    assay_json_put_count(&json, object, "accepted", tally->accepted);
    assay_json_put_count(&json, object, "refused", tally->refused);
    if (ran > 0 && seconds > 0) {
        assay_json_put_real(&json, object, "seconds", seconds);
        assay_json_put_real(&json, object, "rate", (double)ran / seconds);
    }
    return assay_json_write_line(&json, object);
}

static enum assay_status write_all(FILE *stream, const struct assay_campaign_tally *tally,
                                   int64_t ran, double seconds)
{
    enum assay_status status = ASSAY_RAN;
    for (int i = 0; i < tally->campaign->operations && status == ASSAY_RAN; i++)
        status =
            write_coverage(stream, tally->campaign->operation[i], &tally->coverage[i]);
    for (int64_t i = 0; i < tally->findings.count && status == ASSAY_RAN; i++)
        status = write_finding(stream, &tally->findings.item[i]);
    return status == ASSAY_RAN ? write_tally(stream, tally, ran, seconds) : status;
}

/* --- both ------------------------------------------------------------------------- */

static int exit_code(const struct assay_campaign_tally *tally)
{
    const struct assay_summary *const summary = &tally->summary;
    const int64_t ran = summary->cases - summary->unsupported - tally->negatives;
    if (tally->refused) return ASSAY_EXIT_BAD_INPUT;
    if (summary->contradictions) return ASSAY_EXIT_CONTRADICTION;
    if (summary->broken) return ASSAY_EXIT_BROKEN;
    if (tally->findings.cases) return ASSAY_EXIT_BELOW_REQUIRED;
    return ran > 0 ? ASSAY_EXIT_PASSED : ASSAY_EXIT_NOTHING_SELECTED;
}

static enum assay_status json_failed(const struct assay_campaign_output *output,
                                     struct assay_message *message)
{
    return assay_fail(message, ASSAY_FAILED, "report %s: writing failed: %s",
                      output->json.path, strerror(errno));
}

enum assay_status
assay_campaign_output_open(struct assay_campaign_output *output,
                           const struct assay_campaign_settings *settings,
                           const char *json_path, struct assay_message *message)
{
    const struct assay_run_header header = { .command = "fuzz",
                                             .candidate = settings->candidate };
    *output = (struct assay_campaign_output){ .has_text = !json_path ||
                                                          strcmp(json_path, "-") != 0 };
    if (!json_path) return ASSAY_RAN;
    const enum assay_status status = assay_report_file_open(
        &output->json, &assay_report_json, json_path, &header, message);
    if (status != ASSAY_RAN) return status;
    return write_campaign(output->json.stream, settings) == ASSAY_RAN
               ? ASSAY_RAN
               : json_failed(output, message);
}

enum assay_status
assay_campaign_output_end(struct assay_campaign_output *output,
                          const struct assay_campaign_settings *settings,
                          struct assay_campaign_tally *tally, int64_t ran, double seconds,
                          struct assay_message *message)
{
    tally->summary.exit_code = exit_code(tally);
    if (output->has_text) {
        print_summary(settings, tally);
        print_coverage(tally);
        print_findings(settings, &tally->findings);
        if (ran > 0 && seconds > 0)
            printf("\n%" PRId64 " case%s in %.1f s, %.1f cases/s\n", ran, plural(ran),
                   seconds, (double)ran / seconds);
        if (fflush(stdout) != 0)
            return assay_fail(message, ASSAY_FAILED, "stdout: writing failed: %s",
                              strerror(errno));
    }
    if (!output->json.stream) return ASSAY_RAN;
    if (write_all(output->json.stream, tally, ran, seconds) != ASSAY_RAN)
        return json_failed(output, message);
    return assay_report_file_end(&output->json, &tally->summary, message);
}

void assay_campaign_output_close(struct assay_campaign_output *output)
{
    assay_report_file_close(&output->json);
}
