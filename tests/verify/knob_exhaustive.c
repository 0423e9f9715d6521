/* SPDX-License-Identifier: MIT */
/* Every setting one knob away from the named numerics, of every operation, is found when
 * a live candidate computes with it, and what else is in the answer can't be told from it
 * by a larger sample of cases either. Of each operation a few settings; all of them with
 * ASSAY_EXHAUSTIVE=1 in the environment. */
#include "tests/harness.h"
#include "tests/verify/knob_settings.h"
#include "verify/identify/candidate.h"
#include "verify/identify/knob_identify.h"

#include <time.h>

/* A whole answer may take so much of one processor: 10 s on two. */
enum { LIMIT_SECONDS = 20, SAMPLED_SETTINGS = 3 };

struct subject {
    const char *line;
    const struct assay_named_numerics *usual;
    struct sampled_settings *settings;
    int failures;
    double slowest;
};

static double thread_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void complain(struct subject *subject, const char *truth, const char *what,
                     const char *about)
{
#pragma omp critical
    {
        subject->failures++;
        if (subject->failures <= 5)
            fprintf(stderr, "%s as=%s: %s%s\n", subject->line, truth, what, about);
    }
}

static void sample(struct subject *subject, struct sampled *setting)
{
    for (int i = 0; i < SAMPLE; i++) {
        struct searched drawn = { 0 };
        struct assay_message ignored;
        struct assay_case line;
        assay_case_parse(subject->line, &drawn.the_case, &ignored);
        if (!draw_sample(drawn.the_case.operation, i, subject->usual, &line)) continue;
        drawn.the_case = line;
        if (assay_inputs_open(&drawn.the_case, NULL, 0, drawn.problem, &drawn.tensors,
                              &drawn.buffers, &ignored) == ASSAY_RAN) {
            drawn.observation =
                (struct assay_observation){ .operation = drawn.the_case.operation,
                                            .problem = drawn.problem,
                                            .tensors = &drawn.tensors };
            setting->is_legal[i] =
                assay_observation_open(&drawn.observation) == ASSAY_RAN &&
                sample_bits(&drawn.observation, setting->text, &setting->bits[i]);
            assay_observation_close(&drawn.observation);
        }
        assay_buffers_close(&drawn.buffers);
    }
    setting->is_sampled = true;
}

/* Knobs that show in so few elements that further cases may miss them. Settings that
 * differ in one of them may differ in a few cases of the sample. */
enum { FEW_CASES = 3 };
static const struct {
    const char *knob, *why;
} seldom[] = {
    { "right_factor", "the last bit of an f32 factor, behind a rounding to bf16" },
    { "quotient", "the last bit of f32, behind a rounding to bf16" },
    { "epilogue", "needs an output of -0: 3 of 41 cases of subnormal data have one" },
    { "zero_weight", "needs a split of weight 0 that holds a NaN" },
    { "odd_tail", "needs scores of fully masked keys that are not finite" },
    { "align_bits", "from 25 on only operands of very different exponents show them" },
    { "nan", "needs a row whose sum is NaN" },
    { "start", "needs scores below -1e30" },
};

static bool shows_seldom(const struct assay_operation *operation, const void *a,
                         const void *b)
{
    for (const struct assay_knob *knob = operation->knobs; knob->name; knob++)
        for (size_t i = 0; i < sizeof(seldom) / sizeof(*seldom); i++)
            if (strcmp(knob->name, seldom[i].knob) == 0 &&
                assay_knob_value(knob, a) != assay_knob_value(knob, b))
                return true;
    return false;
}

/* Cases of the sample in which they differ. */
static int differing_cases(const struct sampled *a, const struct sampled *b)
{
    int count = 0;
    for (int i = 0; i < SAMPLE; i++)
        count += a->is_legal[i] && b->is_legal[i] && a->bits[i] != b->bits[i];
    return count;
}

static void check_answer(struct subject *subject, struct sampled *truth,
                         const struct assay_knob_answer *answer)
{
    const struct assay_knob_space *const space = &answer->search->space;
    _Alignas(max_align_t) char true_numerics[ASSAY_MAX_NUMERICS_BYTES];
    struct assay_message ignored;
    /* The answer then says so; on an idle machine it is rare. */
    const bool was_cut_short = answer->search->was_cut_short ||
                               (answer->separation && answer->separation->was_cut_short);
    bool is_there = answer->search->was_cut_short;
    assay_numerics_parse(space->operation, space->problem, truth->text, true_numerics,
                         &ignored);
    if (!truth->is_sampled) sample(subject, truth);
    for (int i = 0; i < answer->count; i++) {
        char text[ASSAY_MAX_NUMERICS_TEXT];
        static _Thread_local struct sampled spare;
        assay_numerics_format(space->operation, space->item[answer->setting[i]].numerics,
                              text, sizeof(text));
        is_there |= strcmp(text, truth->text) == 0;
        struct sampled *other = find_setting(subject->settings, text);
        if (!other) {
            spare = (struct sampled){ .is_sampled = false };
            strcpy(spare.text, text);
            other = &spare;
        }
        if (!other->is_sampled) sample(subject, other);
        const int differ = differing_cases(other, truth);
        const void *const numerics = space->item[answer->setting[i]].numerics;
        if (was_cut_short) continue;
        if (differ >
            (shows_seldom(space->operation, numerics, true_numerics) ? FEW_CASES : 0))
            complain(subject, truth->text, "is not told from ", text);
    }
    if (!is_there)
        complain(subject, truth->text, "is not found",
                 answer->count ? ", but something else" : "");
}

static void identify(struct subject *subject, struct sampled *truth)
{
    struct searched *const searched = calloc(1, sizeof(*searched));
    char candidate[ASSAY_MAX_NUMERICS_TEXT + 8];
    struct assay_message message = { "" };
    const struct assay_backend *backend;
    struct assay_knob_identity identity = { 0 };
    void *state;
    snprintf(candidate, sizeof(candidate), "model:%s", truth->text);
    const double start = thread_seconds();
    assay_case_parse(subject->line, &searched->the_case, &message);
    enum assay_status status =
        assay_backend_open(candidate, NULL, &backend, &state, &message);
    if (status == ASSAY_RAN)
        status = assay_inputs_open(&searched->the_case, NULL, 0, searched->problem,
                                   &searched->tensors, &searched->buffers, &message);
    const struct assay_run_call call = { .the_case = &searched->the_case,
                                         .problem = searched->problem,
                                         .tensors = &searched->tensors };
    if (status == ASSAY_RAN)
        status = assay_candidate_run(backend, state, &call, &searched->buffers, &message);
    searched->observation =
        (struct assay_observation){ .operation = searched->the_case.operation,
                                    .problem = searched->problem,
                                    .tensors = &searched->tensors };
    if (status == ASSAY_RAN) status = assay_observation_open(&searched->observation);
    const struct assay_knob_question question = { .observation = &searched->observation,
                                                  .the_case = &searched->the_case,
                                                  .backend = backend,
                                                  .state = state,
                                                  .plan = { .seconds = 15 } };
    if (status == ASSAY_RAN)
        status = assay_knobs_identify(&question, &identity, &message);
    const double seconds = thread_seconds() - start;
    if (status != ASSAY_RAN) complain(subject, truth->text, "fails: ", message.text);
        /* One after the other: answers share the samples. */
#pragma omp critical(sampling)
    if (status == ASSAY_RAN) check_answer(subject, truth, &identity.answer);
    if (seconds > LIMIT_SECONDS) complain(subject, truth->text, "is slow", "");
#pragma omp critical
    if (seconds > subject->slowest) subject->slowest = seconds;
    assay_knob_identity_close(&identity);
    backend->close(state);
    close_searched(searched);
}

static void check_operation(const char *line)
{
    static struct sampled_settings settings;
    struct searched *const searched = open_searched(line);
    const struct assay_operation *const operation = searched->the_case.operation;
    struct subject subject = { .line = line,
                               .usual = operation->default_numerics(searched->problem),
                               .settings = &settings };
    memset(&settings, 0, sizeof(settings));
    add_all_settings(operation, searched->problem, &settings);
    const bool is_exhaustive = getenv("ASSAY_EXHAUSTIVE") != NULL;
    const int step =
        is_exhaustive ? 1 : (settings.count + SAMPLED_SETTINGS - 1) / SAMPLED_SETTINGS;
    omp_set_num_threads(omp_get_num_procs());
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < settings.count; i += step)
        identify(&subject, &settings.item[i]);
    fprintf(stderr, "%s: %d settings, slowest %.2f s\n", line, settings.count,
            subject.slowest);
    ck_assert_int_eq(subject.failures, 0);
    close_searched(searched);
}

#define LINES(name_, ...)                                                                \
  START_TEST(every_single_knob_of_##name_##_is_found)                                    \
  {                                                                                      \
    static const char *const lines[] = { __VA_ARGS__ };                                  \
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)                          \
      check_operation(lines[i]);                                                         \
  }                                                                                      \
  END_TEST

LINES(gemm, "fp8_gemm_nt m=16 n=16 k=512 recipe=tensor out=f32 seed=3",
      "fp8_gemm_nt m=16 n=16 k=512 seed=3",
      "fp8_gemm_nt m=16 n=16 k=512 recipe=1d1d out=f32 c=1 seed=3",
      "fp8_gemm_nt m=8 n=16 k=256 recipe=mx seed=3")
LINES(grouped_gemm, "m_grouped_fp8_gemm_nt_contiguous n=16 k=512 group_m=3,70 seed=3",
      "m_grouped_fp8_gemm_nt_masked groups=2 m_max=128 n=16 k=512 masked_m=3,70 seed=3",
      "k_grouped_fp8_gemm_nt_contiguous m=128 n=16 ks=128,256 seed=3",
      "k_grouped_fp8_gemm_tn_contiguous m=128 n=16 ks=128,256 seed=3")
LINES(quantisation, "quantise m=4 k=256 seed=3", "scale_layout mn=40 k=1000 seed=3",
      "mla_cache_quantise kv=v32 tokens=64 seed=3",
      "mla_cache_dequantise kv=v32 tokens=64 seed=3")
LINES(units, "wgmma blocks=2 steps=3 n=16 seed=3", "sfu function=ex2 count=1000 seed=3",
      "convert to=e4m3 count=1000 seed=3")
LINES(dense_decode, "mla_dense_decode b=2 h_q=2 s_k=199,130 seed=3")
LINES(sparse_decode,
      "mla_sparse_decode kv=v32 b=1 h_q=64 topk=192 invalid=0.2 sink=1 seed=3")
LINES(sparse_prefill,
      "mla_sparse_prefill s_q=2 h_q=64 s_kv=200 d_qk=576 topk=256 invalid=0.1 seed=3")
LINES(plan_and_combine, "mla_plan b=3 s_k=100,1000,2000 seed=3",
      "mla_combine b=2 h_q=16 splits=3 seed=3")
LINES(absorb, "mla_absorb n=8 s_q=2 seed=3")

int main(void)
{
    const TTest *const tests[] = {
        every_single_knob_of_gemm_is_found,
        every_single_knob_of_grouped_gemm_is_found,
        every_single_knob_of_quantisation_is_found,
        every_single_knob_of_units_is_found,
        every_single_knob_of_dense_decode_is_found,
        every_single_knob_of_sparse_decode_is_found,
        every_single_knob_of_sparse_prefill_is_found,
        every_single_knob_of_plan_and_combine_is_found,
        every_single_knob_of_absorb_is_found,
        NULL,
    };
    return run_tests("knob_exhaustive", tests);
}
