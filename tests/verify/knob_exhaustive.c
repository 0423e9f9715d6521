/* SPDX-License-Identifier: MIT */
/* For the bits of every setting one knob away from the named numerics, of every
 * operation, identify answers exactly the settings with these bits, none missing and none
 * besides. Of what one case can't tell apart, a live candidate on further cases loses
 * nothing but what differs from it there.
 *
 * A default run takes every so many classes of bits; ASSAY_EXHAUSTIVE=1 in the
 * environment takes all. */
#include "tests/harness.h"
#include "tests/verify/knob_settings.h"
#include "tests/verify/knob_witness.h"
#include "verify/identify/knob_identify.h"
#include "verify/identify/knob_rank.h"

#include <time.h>

#ifndef __has_feature
  #define __has_feature(feature_) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
enum { SLOWER = 8 };
#else
enum { SLOWER = 1 };
#endif

/* An answer may take so much of the processors: 10 s on two. The clock of the search
 * itself, set far above, cuts nothing short. */
enum { LIMIT_SECONDS = 20 * SLOWER, UNLIMITED_SECONDS = 100000 };
/* Further cases may take so long; and how many classes of a case have a candidate. */
enum { LIVE_SECONDS = 1, LIVE_CLASSES = 1, EXHAUSTIVE_LIVE_CLASSES = 6 };

struct subject {
    const char *line;
    struct searched *searched;
    struct known_settings known;
    int searches, candidates, dropped, failures;
    double slowest;
};

static bool is_exhaustive(void)
{
    return getenv("ASSAY_EXHAUSTIVE") != NULL;
}

static double processor_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void complain(struct subject *subject, const char *truth, const char *what,
                     const char *about)
{
    if (++subject->failures <= 10)
        fprintf(stderr, "%s as=%s: %s%s\n", subject->line, truth, what, about);
}

/* Marks the settings of an answer in @is_there, and complains of those that are no known
 * setting, twice there, or in another class than @leader. */
static void mark_answer(struct subject *subject, int leader,
                        const struct assay_knob_space *space, const int *setting,
                        int count, bool *is_there)
{
    const struct known_settings *const known = &subject->known;
    const char *const truth = known->item[leader].text;
    for (int i = 0; i < count; i++) {
        const void *const numerics = space->item[setting[i]].numerics;
        const int place = find_known(known, numerics);
        if (place < 0) {
            complain(subject, truth, "finds what lies further away", "");
        } else {
            const char *const text = known->item[place].text;
            if (is_there[place]) complain(subject, truth, "twice: ", text);
            if (known->item[place].leader != leader)
                complain(subject, truth, "wrong: ", text);
            is_there[place] = true;
        }
    }
}

/* Lets the model write the bits of the last setting of the class. */
static int write_class(struct subject *subject, int leader)
{
    const struct known_settings *const known = &subject->known;
    int last = known->count - 1;
    while (known->item[last].leader != leader)
        last--;
    assay_buffers_poison(&subject->searched->tensors);
    ck_assert(assay_run_model(known->operation, known->problem,
                              known->item[last].numerics,
                              &subject->searched->tensors) == ASSAY_RAN);
    return last;
}

/* As of a recording: the bits are all that is known. */
static void identify_class(struct subject *subject, int leader)
{
    const struct known_settings *const known = &subject->known;
    const struct assay_knob_question question = {
        .observation = &subject->searched->observation,
        .the_case = &subject->searched->the_case,
        .plan = { .seconds = UNLIMITED_SECONDS },
    };
    struct assay_knob_identity identity;
    struct assay_message message;
    bool *const is_there = calloc((size_t)known->count, sizeof(*is_there));
    write_class(subject, leader);
    const double start = processor_seconds();
    ck_assert(assay_knobs_identify(&question, &identity, &message) == ASSAY_RAN);
    const double seconds = processor_seconds() - start;
    const struct assay_knob_answer *const answer = &identity.answer;
    const char *const truth = known->item[leader].text;
    if (identity.search.was_cut_short) complain(subject, truth, "is cut short", "");
    mark_answer(subject, leader, &answer->search->space, answer->setting, answer->count,
                is_there);
    for (int i = leader; i < known->count; i++)
        if (known->item[i].leader == leader && !is_there[i])
            complain(subject, truth, "missing: ", known->item[i].text);
    if (seconds > LIMIT_SECONDS) complain(subject, truth, "is slow", "");
    if (seconds > subject->slowest) subject->slowest = seconds;
    subject->searches++;
    assay_knob_identity_close(&identity);
    free(is_there);
}

static void check_dropped(struct subject *subject, int truth, int other,
                          const struct witness *witness)
{
    const struct known_settings *const known = &subject->known;
    subject->dropped++;
    if (!witness_tells_apart(witness, known->item[truth].numerics,
                             known->item[other].numerics))
        complain(subject, known->item[truth].text,
                 "dropped without cause: ", known->item[other].text);
}

/* A candidate that computes with the last setting of the class, asked again. */
static void separate_class(struct subject *subject, int leader)
{
    const struct known_settings *const known = &subject->known;
    struct searched *const searched = subject->searched;
    struct assay_knob_search search;
    struct assay_separation separation;
    struct assay_message message;
    const int truth = write_class(subject, leader);
    struct witness *const witness = open_witness(known->item[truth].numerics);
    const struct assay_separation_plan plan = {
        .backend = &witness_backend,
        .state = witness,
        .the_case = &searched->the_case,
        .usual = known->operation->default_numerics(known->problem),
        .seconds = LIVE_SECONDS,
    };
    bool *const is_there = calloc((size_t)known->count, sizeof(*is_there));
    search_case(searched, false, &search);
    int *const setting = calloc((size_t)search.space.count + 1, sizeof(*setting));
    int count = assay_settings_in_state(&search.space, ASSAY_SETTING_FITS, setting);
    ck_assert(assay_knobs_separate(&plan, &search.space, setting, &count, &separation,
                                   &message) == ASSAY_RAN);
    ck_assert_int_eq(separation.runs, witness->count);
    mark_answer(subject, leader, &search.space, setting, count, is_there);
    if (!is_there[truth])
        complain(subject, known->item[truth].text, "is not in the answer", "");
    for (int i = leader; i < known->count; i++)
        if (known->item[i].leader == leader && !is_there[i])
            check_dropped(subject, truth, i, witness);
    subject->candidates++;
    assay_knob_search_close(&search);
    close_witness(witness);
    free(setting);
    free(is_there);
}

/* What the operation says can't show does not: settings that agree but for it have the
 * same bits. */
static void check_settled(struct subject *subject)
{
    struct known_settings *const known = &subject->known;
    ck_assert_int_gt(known->count, 0);
    char(*const settled)[ASSAY_MAX_NUMERICS_BYTES] =
        calloc((size_t)known->count, sizeof(*settled));
    for (int i = 0; i < known->count; i++) {
        assay_knobs_settle(known->operation, known->problem, known->item[i].numerics,
                           settled[i]);
        int first = 0;
        while (!assay_knobs_are_equal(known->operation, settled[first], settled[i]))
            first++;
        if (known->item[first].bits != known->item[i].bits)
            complain(subject, known->item[first].text,
                     "declared equal: ", known->item[i].text);
    }
    free(settled);
}

/* Classes, every @step-th of them. */
static void check_case(const char *line, int step, int least_classes)
{
    struct subject subject = { .line = line, .searched = open_searched(line) };
    struct known_settings *const known = &subject.known;
    open_known(subject.searched, known);
    check_settled(&subject);
    const int classes_apart = is_exhaustive() ? 1 : step;
    const int live = is_exhaustive() ? EXHAUSTIVE_LIVE_CLASSES : LIVE_CLASSES;
    for (int i = 0, class = 0; i < known->count; i++) {
        if (known->item[i].leader != i) continue;
        if (class % classes_apart == 0) identify_class(&subject, i);
        if (class == 0 ||
            class * live / known->classes != (class - 1) * live / known->classes)
            separate_class(&subject, i);
        class ++;
    }
    fprintf(stderr,
            "%s: %d settings, %d classes, %d searches, slowest %.2f s; %d candidates, %d "
            "settings dropped\n",
            line, known->count, known->classes, subject.searches, subject.slowest,
            subject.candidates, subject.dropped);
    ck_assert_msg(known->classes >= least_classes, "%s: %d classes", line,
                  known->classes);
    ck_assert_msg(subject.failures == 0, "%s: %d failures", line, subject.failures);
    close_known(known);
    close_searched(subject.searched);
}

/* Few rows, so that thousands of searches are quick; some with enough of them that the
 * search takes a few out first. A default run looks at every @step-th class. */
static const struct {
    const char *line;
    int step, least_classes;
} cases[] = {
    { "fp8_gemm_nt m=8 n=8 k=512 recipe=tensor out=f32 seed=3", 16, 128 },
    { "fp8_gemm_nt m=16 n=24 k=256 seed=3", 16, 36 },
    { "fp8_gemm_nt m=8 n=8 k=512 recipe=1d1d out=f32 c=1 seed=3", 16, 45 },
    { "fp8_gemm_nt m=8 n=16 k=256 recipe=mx seed=3", 8, 33 },
    { "fp8_gemm_nt m=8 n=8 k=256 recipe=tensor data=special seed=3", 8, 72 },
    { "m_grouped_fp8_gemm_nt_contiguous n=24 k=256 group_m=3,10 seed=3", 8, 35 },
    { "m_grouped_fp8_gemm_nt_masked groups=2 m_max=128 n=24 k=256 masked_m=3,10 seed=3",
      8, 35 },
    { "k_grouped_fp8_gemm_nt_contiguous m=128 n=8 ks=128,256 seed=3", 8, 45 },
    { "k_grouped_fp8_gemm_tn_contiguous m=128 n=8 ks=128,256 seed=3", 8, 45 },
    { "quantise m=16 k=512 data=special seed=3", 1, 5 },
    { "quantise m=16 k=512 data=ties seed=3", 1, 1 },
    { "quantise m=16 k=512 data=subnormal seed=3", 1, 4 },
    { "quantise m=16 k=512 data=wide seed=3", 1, 3 },
    { "scale_layout mn=40 k=1000 seed=3", 1, 1 },
    { "scale_layout mn=40 k=1000 to=packed_ue8m0 seed=3", 1, 2 },
    { "mla_cache_quantise kv=v32 tokens=64 data=wide seed=3", 1, 2 },
    { "mla_cache_quantise kv=v32 tokens=64 data=special seed=3", 1, 2 },
    { "mla_cache_quantise kv=v41_fp4 tokens=64 data=ties seed=3", 1, 1 },
    { "mla_cache_dequantise kv=v32 tokens=64 seed=3", 1, 1 },
    { "mla_cache_dequantise kv=v32 tokens=64 data=wide seed=3", 1, 1 },
    { "wgmma blocks=2 steps=3 n=16 seed=3", 4, 85 },
    { "sfu function=ex2 count=1000 seed=3", 1, 1 },
    { "convert to=e4m3 count=1000 data=special seed=3", 1, 3 },
    { "convert to=bf16 count=1000 data=special seed=3", 1, 3 },
    { "mla_plan b=3 s_k=100,1000,2000 seed=3", 16, 120 },
    { "mla_combine b=2 h_q=4 splits=3 seed=3", 1, 2 },
    { "mla_combine b=2 h_q=4 splits=3 sink=1 data=special seed=3", 1, 4 },
    { "mla_combine b=2 h_q=4 splits=3 sink=1 data=wide seed=3", 1, 3 },
    { "mla_absorb n=8 s_q=2 seed=3", 4, 18 },
    { "mla_dense_decode b=1 h_q=2 s_k=199 seed=3", 48, 89 },
    { "mla_dense_decode b=1 h_q=1 s_k=130 data=special seed=3", 48, 69 },
    { "mla_sparse_decode kv=v32 b=1 h_q=64 topk=128 invalid=0.2 sink=1 seed=3", 48, 83 },
    { "mla_sparse_prefill s_q=1 h_q=64 s_kv=100 d_qk=576 topk=128 invalid=0.1 seed=3", 48,
      147 },
};
enum { CASES = sizeof(cases) / sizeof(*cases) };

static bool is_of(const char *line, const char *operation)
{
    const size_t length = strlen(operation);
    return strncmp(line, operation, length) == 0 && line[length] == ' ';
}

static void check_operation(const char *operation)
{
    for (int i = 0; i < CASES; i++)
        if (is_of(cases[i].line, operation))
            check_case(cases[i].line, cases[i].step, cases[i].least_classes);
}

#define OPERATION(name_)                                                                 \
  START_TEST(all_settings_of_##name_##_are_told_apart_as_far_as_their_bits_differ)       \
  {                                                                                      \
    check_operation(#name_);                                                             \
  }                                                                                      \
  END_TEST

OPERATION(fp8_gemm_nt)
OPERATION(m_grouped_fp8_gemm_nt_contiguous)
OPERATION(m_grouped_fp8_gemm_nt_masked)
OPERATION(k_grouped_fp8_gemm_nt_contiguous)
OPERATION(k_grouped_fp8_gemm_tn_contiguous)
OPERATION(quantise)
OPERATION(scale_layout)
OPERATION(mla_cache_quantise)
OPERATION(mla_cache_dequantise)
OPERATION(wgmma)
OPERATION(sfu)
OPERATION(convert)
OPERATION(mla_plan)
OPERATION(mla_combine)
OPERATION(mla_absorb)
OPERATION(mla_dense_decode)
OPERATION(mla_sparse_decode)
OPERATION(mla_sparse_prefill)

START_TEST(every_operation_has_a_case_here)
{
    for (int i = 0; assay_operations[i]; i++) {
        bool has_case = false;
        for (int j = 0; j < CASES && !has_case; j++)
            has_case = is_of(cases[j].line, assay_operations[i]->name);
        ck_assert_msg(has_case, "%s", assay_operations[i]->name);
    }
}
END_TEST

#define TEST_OF(name_)                                                                   \
  all_settings_of_##name_##_are_told_apart_as_far_as_their_bits_differ

int main(void)
{
    const TTest *const tests[] = {
        every_operation_has_a_case_here,
        TEST_OF(fp8_gemm_nt),
        TEST_OF(m_grouped_fp8_gemm_nt_contiguous),
        TEST_OF(m_grouped_fp8_gemm_nt_masked),
        TEST_OF(k_grouped_fp8_gemm_nt_contiguous),
        TEST_OF(k_grouped_fp8_gemm_tn_contiguous),
        TEST_OF(quantise),
        TEST_OF(scale_layout),
        TEST_OF(mla_cache_quantise),
        TEST_OF(mla_cache_dequantise),
        TEST_OF(wgmma),
        TEST_OF(sfu),
        TEST_OF(convert),
        TEST_OF(mla_plan),
        TEST_OF(mla_combine),
        TEST_OF(mla_absorb),
        TEST_OF(mla_dense_decode),
        TEST_OF(mla_sparse_decode),
        TEST_OF(mla_sparse_prefill),
        NULL,
    };
    return run_tests("knob_exhaustive", tests);
}
