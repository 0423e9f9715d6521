/* SPDX-License-Identifier: MIT */
#include "verify/check/criteria.h"

#include "verify/case/names.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Below it FlashMLA calls a reference zero and does not ask for the cosine. */
#define NO_REFERENCE_SQUARES 1e-12

#define GROUPED                                                                          \
  "m_grouped_fp8_gemm_nt_contiguous m_grouped_fp8_gemm_nt_masked "                       \
  "k_grouped_fp8_gemm_nt_contiguous k_grouped_fp8_gemm_tn_contiguous"

#define DEEPGEMM(OPERATIONS, E2M1_INPUTS, LIMIT)                                         \
  .name = "deepgemm", .operations = (OPERATIONS), .e2m1_inputs = (E2M1_INPUTS),          \
  .calc_diff_limit = (LIMIT), .specials = ASSAY_SPECIALS_CALCULATED,                     \
  .source = "DeepGEMM deep_gemm/testing/numeric.py calc_diff, limits of "                \
            "tests/generators.py and tests/test_fp8_fp4.py"

#define FLASHMLA(OPERATION, OUTPUT, ABSOLUTE, RELATIVE, COSINE, TEST)                    \
  .name = "flashmla", .operations = (OPERATION), .output = (OUTPUT),                     \
  .rule = ASSAY_EITHER_BELOW, .absolute = (ABSOLUTE), .relative = (RELATIVE),            \
  .floor = 1e-6, .cosine_limit = (COSINE), .specials = ASSAY_SPECIALS_IN_PLACE,          \
  .source = "FlashMLA tests/kernelkit/compare.py check_is_allclose, limits of " TEST
#define DENSE   "tests/test_flash_mla_dense_decoding.py"
#define SPARSE  "tests/test_flash_mla_sparse_decoding.py"
#define PREFILL "tests/test_flash_mla_sparse_prefill.py"

#define TORCH(FORMAT, ABSOLUTE, RELATIVE)                                                \
  .name = "torch", .format = (FORMAT), .rule = ASSAY_WITHIN_SUM, .absolute = (ABSOLUTE), \
  .relative = (RELATIVE), .specials = ASSAY_SPECIALS_CALCULATED,                         \
  .source = "torch.testing.assert_close, default rtol and atol of the format"

const struct assay_criterion assay_criteria_table[] = {
    { DEEPGEMM("fp8_gemm_nt", 2, 2e-2) },
    { DEEPGEMM("fp8_gemm_nt", 1, 1e-2) },
    { DEEPGEMM("fp8_gemm_nt " GROUPED, 0, 1e-3) },
    { FLASHMLA("mla_dense_decode", "out", 8e-4, 2.01 / 128, 5e-6, DENSE) },
    { FLASHMLA("mla_dense_decode", "lse", 1e-6, 8.01 / 65536, 1e-7, DENSE) },
    { FLASHMLA("mla_sparse_decode", "out", 1e-3, 2.01 / 128, 5e-6, SPARSE) },
    { FLASHMLA("mla_sparse_decode", "lse", 1e-6, 8.01 / 65536, 1e-7, SPARSE) },
    { FLASHMLA("mla_sparse_prefill", "out", 8e-4, 3.01 / 128, 7e-6, PREFILL) },
    { FLASHMLA("mla_sparse_prefill", "max_logits", 1e-6, 2.01 / 65536, 1e-7, PREFILL) },
    { FLASHMLA("mla_sparse_prefill", "lse", 1e-6, 2.01 / 65536, 1e-7, PREFILL) },
    { TORCH(ASSAY_BF16, 1e-5, 1.6e-2) },
    { TORCH(ASSAY_F16, 1e-5, 1e-3) },
    { TORCH(ASSAY_F32, 1e-5, 1.3e-6) },
    { TORCH(ASSAY_I32, 0, 0) },
    { TORCH(ASSAY_U8, 0, 0) },
    { .name = "cutlass",
      .operations = "fp8_gemm_nt " GROUPED,
      .rule = ASSAY_BELOW_SHARE,
      .relative = 0.05,
      .floor = 1.0 / 256,
      .specials = ASSAY_SPECIALS_CALCULATED,
      .source = "cutlass_profiler --epsilon and --nonzero-floor, defaults of "
                "tools/profiler/src/options.cu; include/cutlass/relatively_equal.h of "
                "CUTLASS 4 (until 3, the error itself was held against the floor)" },
    { .name = "flashinfer",
      .rule = ASSAY_NOT_BOTH_ABOVE,
      .absolute = 1e-2,
      .relative = 1e-2,
      .floor = 1e-8,
      .specials = ASSAY_SPECIALS_REFUSED,
      .source = "flashinfer-bench flashinfer_bench/bench/utils.py compute_error_stats "
                "and evaluators/default.py, defaults of config.py" },
    { .name = NULL },
};

static bool is_among(const char *names, const char *name)
{
    const size_t length = strlen(name);
    for (const char *word = names; *word; word += strspn(word, " ")) {
        const size_t word_length = strcspn(word, " ");
        if (word_length == length && strncmp(word, name, length) == 0) return true;
        word += word_length;
    }
    return false;
}

static int count_e2m1_inputs(const struct assay_tensors *tensors)
{
    int count = 0;
    for (int i = 0; i < tensors->count; i++)
        count += !tensors->item[i].is_output && tensors->item[i].format == ASSAY_E2M1;
    return count;
}

const struct assay_criterion *assay_criterion_find(const char *name,
                                                   const char *operation,
                                                   const struct assay_tensors *tensors,
                                                   int output)
{
    const struct assay_tensor *const tensor = &tensors->item[output];
    const int e2m1_inputs = count_e2m1_inputs(tensors);
    for (const struct assay_criterion *row = assay_criteria_table; row->name; row++) {
        if (strcmp(row->name, name) != 0) continue;
        if (row->operations && !is_among(row->operations, operation)) continue;
        if (row->output && strcmp(row->output, tensor->name) != 0) continue;
        if (row->format && row->format != tensor->format) continue;
        if (e2m1_inputs >= row->e2m1_inputs) return row;
    }
    return NULL;
}

static enum assay_status add_name(const char *word, struct assay_criteria *criteria,
                                  struct assay_message *message)
{
    struct assay_names names = { 0 };
    for (const struct assay_criterion *row = assay_criteria_table; row->name; row++) {
        if (names.count == 0 || strcmp(names.name[names.count - 1], row->name) != 0)
            assay_names_add(&names, row->name);
        if (strcmp(row->name, word) != 0) continue;
        for (int i = 0; i < criteria->count; i++)
            if (strcmp(criteria->name[i], word) == 0) return ASSAY_RAN;
        criteria->name[criteria->count++] = row->name;
        return ASSAY_RAN;
    }
    return assay_fail(message, ASSAY_REFUSED,
                      "--criteria names '%s', which is no criterion%s",
                      assay_excerpt(word).text, assay_names_hint(&names, word).text);
}

enum assay_status assay_criteria_parse(const char *list, struct assay_criteria *criteria,
                                       struct assay_message *message)
{
    *criteria = (struct assay_criteria){ 0 };
    for (;;) {
        char word[64];
        struct assay_text text = assay_text_open(word, sizeof(word));
        const size_t length = strcspn(list, ",");
        assay_text_add(&text, "%.*s", length < 64 ? (int)length : 64, list);
        assay_text_mark_cut(&text);
        const enum assay_status status = add_name(word, criteria, message);
        if (status != ASSAY_RAN || list[length] == '\0') return status;
        list += length + 1;
    }
}

static bool is_beyond(const struct assay_criterion *criterion, double candidate,
                      double reference)
{
    const double absolute = criterion->absolute, relative = criterion->relative;
    const double error = fabs(candidate - reference);
    const double ratio = error / (fabs(reference) + criterion->floor);
    const double sum = fabs(candidate) + fabs(reference);
    switch (criterion->rule) {
    case ASSAY_NO_ELEMENT_RULE: return false;
    case ASSAY_EITHER_BELOW: return !(error < absolute || ratio < relative);
    case ASSAY_NOT_BOTH_ABOVE: return error > absolute && ratio > relative;
    case ASSAY_WITHIN_SUM:
        return candidate != reference &&
               !(isfinite(error) && error <= absolute + relative * fabs(reference));
    case ASSAY_BELOW_SHARE:
        return candidate != reference &&
               !(error < relative * fmax(sum, criterion->floor));
    }
    return true;
}

static bool is_same(double candidate, double reference)
{
    return candidate == reference || (isnan(candidate) && isnan(reference));
}

void assay_criterion_add(const struct assay_criterion *criterion, double candidate,
                         double reference, struct assay_criterion_tally *tally)
{
    const bool is_special = !isfinite(candidate) || !isfinite(reference);
    tally->elements++;
    if (criterion->specials == ASSAY_SPECIALS_IN_PLACE && is_special) {
        tally->specials += !is_same(candidate, reference);
        return;
    }
    if (criterion->specials == ASSAY_SPECIALS_REFUSED && !isfinite(candidate)) {
        tally->specials++;
        return;
    }
    tally->beyond += is_beyond(criterion, candidate, reference);
    tally->candidate_squares += candidate * candidate;
    tally->products += candidate * reference;
    tally->reference_squares += reference * reference;
}

void assay_criterion_merge(const struct assay_criterion_tally *tally,
                           struct assay_criterion_tally *into)
{
    into->elements += tally->elements;
    into->beyond += tally->beyond;
    into->specials += tally->specials;
    into->candidate_squares += tally->candidate_squares;
    into->products += tally->products;
    into->reference_squares += tally->reference_squares;
}

struct assay_criterion_result
assay_criterion_conclude(const struct assay_criterion *criterion,
                         const struct assay_criterion_tally *tally)
{
    const double squares = tally->candidate_squares + tally->reference_squares;
    const bool has_cosine = criterion->cosine_limit > 0;
    double difference = squares == 0 ? 0 : 1 - 2 * tally->products / squares;
    if (has_cosine && tally->reference_squares < NO_REFERENCE_SQUARES) difference = 0;
    const bool is_near =
        (!has_cosine || fabs(difference) <= criterion->cosine_limit) &&
        (criterion->calc_diff_limit == 0 || difference < criterion->calc_diff_limit);
    return (struct assay_criterion_result){
        .criterion = criterion,
        .passes = is_near && tally->beyond == 0 && tally->specials == 0,
        .elements = tally->elements,
        .beyond = tally->beyond,
        .specials = tally->specials,
        .difference = difference,
    };
}

static void describe_rule(const struct assay_criterion *criterion,
                          struct assay_text *text)
{
    const double absolute = criterion->absolute, relative = criterion->relative;
    switch (criterion->rule) {
    case ASSAY_NO_ELEMENT_RULE: break;
    case ASSAY_EITHER_BELOW:
        assay_text_add(text, "error < %.4g or error / (|oracle| + %.4g) < %.4g", absolute,
                       criterion->floor, relative);
        break;
    case ASSAY_NOT_BOTH_ABOVE:
        assay_text_add(text, "error <= %.4g or error / (|oracle| + %.4g) <= %.4g",
                       absolute, criterion->floor, relative);
        break;
    case ASSAY_WITHIN_SUM:
        if (absolute == 0 && relative == 0)
            assay_text_add(text, "equal values");
        else
            assay_text_add(text, "error <= %.4g + %.4g |oracle|", absolute, relative);
        break;
    case ASSAY_BELOW_SHARE:
        assay_text_add(text,
                       "error < %.4g (|candidate| + |oracle|), near 0: error < %.4g",
                       relative, relative * criterion->floor);
        break;
    }
}

void assay_criterion_describe(const struct assay_criterion *criterion,
                              struct assay_text *text)
{
    static const char *const specials[] = {
        [ASSAY_SPECIALS_CALCULATED] = "go through the formula",
        [ASSAY_SPECIALS_IN_PLACE] = "in the same places",
        [ASSAY_SPECIALS_REFUSED] = "refused",
    };
    describe_rule(criterion, text);
    const char *const before = criterion->rule ? "; " : "";
    if (criterion->calc_diff_limit > 0)
        assay_text_add(text, "%scalc_diff < %.4g", before, criterion->calc_diff_limit);
    if (criterion->cosine_limit > 0)
        assay_text_add(text, "%scosine difference <= %.4g", before,
                       criterion->cosine_limit);
    assay_text_add(text, "; NaN and infinities %s", specials[criterion->specials]);
}

void assay_criterion_describe_result(const struct assay_criterion_result *result,
                                     struct assay_text *text)
{
    const struct assay_criterion *const criterion = result->criterion;
    const char *before = "";
    if (criterion->rule) {
        assay_text_add(text, "%" PRId64 " of %" PRId64 " elements break ", result->beyond,
                       result->elements);
        describe_rule(criterion, text);
        before = "; ";
    }
    if (criterion->calc_diff_limit > 0)
        assay_text_add(text, "%scalc_diff %.3g, limit %.4g", before, result->difference,
                       criterion->calc_diff_limit);
    if (criterion->cosine_limit > 0)
        assay_text_add(text, "%scosine difference %.3g, limit %.4g", before,
                       result->difference, criterion->cosine_limit);
    if (result->specials > 0)
        assay_text_add(text, "; %" PRId64 " NaN or infinite where it may not be",
                       result->specials);
}
