/* SPDX-License-Identifier: MIT */
/* Relations between two runs of the attention operations: the model keeps to them under
 * every named numerics, whatever the data, recorded ones too. attention_mistakes.c shows
 * that wrong kernels do not. */
#include "tests/harness.h"
#include "tests/verify/related_case.h"
#include "verify/data/recording.h"

/* --- what keeps to them ------------------------------------------------------------- */

static bool is_listed(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

/* Relations that say nothing about the case, and those of bits that know few of them. */
static const struct {
    const char *line, *absent, *unknown;
} lines[] = {
    { "mla_dense_decode b=3 h_q=9 s_q=2 s_k=70,300,1 causal=1 sms=8 seed=3",
      "plan_scheduler", "" },
    { "mla_dense_decode b=2 h_q=4 h_k=2 s_k=0,300 format=f16 table_columns=6 plan=whole "
      "seed=4",
      "scaled_keys scaled_tail plan_whole", "" },
    { "mla_dense_decode b=2 h_q=4 s_k=64,128 data=exact plan=whole seed=5", "plan_whole",
      "" },
    { "mla_dense_decode b=2 h_q=4 s_q=2 s_k=65,129 data=special as=naive plan=random "
      "seed=6",
      "scaled_keys plan_random", "" },
    { "mla_dense_decode b=2 h_q=4 s_k=64,190 data=needle as=flash plan=blocks seed=7",
      "scaled_keys plan_blocks", "" },
    { "mla_dense_decode b=2 h_q=4 s_k=1,190 sms=16 data=uniform lse=base2 "
      "as=flashmla-sparse-decode seed=8",
      "plan_scheduler", "" },
    { "mla_dense_decode b=1 h_q=1 s_k=190 data=wide as=flashmla-sparse-prefill seed=9",
      "other_requests other_rows rotated_requests plan_scheduler", "" },
    { "mla_sparse_decode kv=v32 b=2 h_q=64 s_q=2 topk=128 s_kv=150 invalid=0.2 sink=1 "
      "sms=16 seed=9",
      "plan_scheduler", "longer_lists" },
    { "mla_sparse_decode kv=v32 b=1 h_q=64 topk=64 s_kv=60 scales=any as=flash "
      "plan=whole seed=1",
      "moved_padding other_requests rotated_requests plan_whole", "" },
    { "mla_sparse_decode kv=model1 b=2 h_q=64 topk=64 topk_length=0,50 extra_topk=64 "
      "extra_topk_length=64,3 invalid=0.2 sink=1 tables=1 page_size=7 page_padding=16 "
      "plan=whole seed=2",
      "scaled_tail plan_whole", "" },
    { "mla_sparse_decode kv=v41 b=2 h_q=64 topk=64 topk_length=40 extra_topk=64 "
      "extra_kv=v41_fp4 invalid=0.3 sms=2 as=naive seed=3",
      "scaled_tail plan_scheduler", "" },
    { "mla_sparse_decode kv=model1 b=2 h_q=64 topk=64 s_kv=50 data=subnormal sms=2 "
      "seed=4",
      "moved_padding scaled_keys scaled_tail plan_scheduler", "" },
    { "mla_sparse_decode kv=model1 b=2 h_q=64 topk=64 invalid=1 sms=2 seed=5",
      "moved_padding scaled_tail plan_scheduler", "" },
    { "mla_sparse_prefill s_q=3 h_q=64 s_kv=300 topk=128 topk_length=100,0,128 "
      "invalid=0.2 sink=1 seed=4",
      "", "" },
    { "mla_sparse_prefill s_q=2 h_q=64 s_kv=140 topk=128 d_qk=512 kv_stride=520 as=flash "
      "seed=5",
      "moved_padding scaled_tail", "" },
    { "mla_sparse_prefill s_q=2 h_q=64 s_kv=90 topk=128 topk_length=65 data=special "
      "invalid=0.1 as=naive seed=6",
      "scaled_keys scaled_tail", "" },
    { "mla_combine b=3 s_q=2 h_q=5 splits=2,1,4 sink=1 empty=0.2 seed=4", "",
      "doubled_partials" },
    { "mla_combine b=2 s_q=2 h_q=5 splits=2,9 data=wide format=f16 seed=4",
      "unused_memory", "doubled_partials" },
    { "mla_combine b=2 h_q=3 splits=160,33 as=exact-functions seed=4", "unused_memory",
      "" },
    { "mla_combine b=2 h_q=3 splits=3 data=special seed=5", "unused_memory", "" },
    { "mla_plan b=4 s_k=1,70,0,640 sms=6 seed=1", "", "" },
    { "mla_plan b=2 s_k=64,0 seed=1", "rounded_lengths", "" },
    { "mla_plan attention=sparse b=3 topk=128 topk_length=1,0,128 extra_topk=64 "
      "extra_topk_length=64,0,3 seed=1",
      "", "" },
};

static void keep_to_all(const char *line, const char *absent, const char *unknown)
{
    const struct assay_case the_case = parsed(line);
    for (const struct assay_property *p = the_case.operation->properties; p->name; p++) {
        struct related_case *const related = open_related(line, p->name, NULL);
        ck_assert_msg((related == NULL) == is_listed(absent, p->name), "%s: %s %s", line,
                      p->name, related ? "applies" : "does not apply");
        if (!related) continue;
        const struct related_verdict verdict = judge_related(related, NULL);
        ck_assert_msg(verdict.wrong == 0 && verdict.outside == 0 && verdict.touched == 0,
                      "%s: %s: %lld wrong (output %d, element %lld: %x, not %x), %lld "
                      "outside, %lld touched",
                      line, p->name, (long long)verdict.wrong, verdict.output,
                      (long long)verdict.element, verdict.found, verdict.wanted,
                      (long long)verdict.outside, (long long)verdict.touched);
        ck_assert(verdict.defined > 0);
        if (p->expect && !is_listed(unknown, p->name))
            ck_assert_msg(3 * verdict.judged >= verdict.defined, "%s: %s judges %lld",
                          line, p->name, (long long)verdict.judged);
        close_related(related);
    }
}

START_TEST(the_model_keeps_to_every_relation_under_all_numerics)
{
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        keep_to_all(lines[i].line, lines[i].absent, lines[i].unknown);
}
END_TEST

/* out has 512 elements a row, lse one. */
START_TEST(relations_of_bits_know_all_that_they_promise)
{
    const char *const dense = "mla_dense_decode b=2 h_q=4 s_k=100 sms=4 seed=1";
    const struct related_verdict half = relate(dense, "other_requests", NULL);
    const struct related_verdict all = relate(dense, "moved_pages", NULL);
    const struct related_verdict scaled = relate(dense, "scaled_keys", NULL);
    ck_assert_int_eq(half.judged, 4 * 513);
    ck_assert_int_eq(all.judged, 2 * 4 * 513);
    ck_assert_int_eq(scaled.judged, 2 * 4 * 513);
}
END_TEST

/* Rotating lengths makes other splits of them. */
START_TEST(bits_are_known_where_requests_are_split_alike_and_nowhere_else)
{
    const char *const split = "mla_dense_decode b=2 h_q=4 s_k=640,64 sms=3 seed=1";
    const char *const whole = "mla_dense_decode b=2 h_q=4 s_k=640,64 plan=whole seed=1";
    const struct related_verdict some = relate(split, "rotated_requests", NULL);
    const struct related_verdict all = relate(whole, "rotated_requests", NULL);
    ck_assert_int_eq(some.judged, 4 * 513);
    ck_assert_int_eq(all.judged, 2 * 4 * 513);
}
END_TEST

START_TEST(unsafe_cases_have_no_relations)
{
    static const char *const unsafe[] = {
        "mla_dense_decode b=2 h_q=4 s_k=100 sms=4 unsafe=1 seed=1",
        "mla_sparse_decode kv=model1 b=2 h_q=64 topk=64 invalid=0.5 sms=2 unsafe=1",
        "mla_sparse_prefill s_q=2 h_q=64 s_kv=90 topk=128 invalid=0.5 unsafe=1",
        "mla_combine b=2 h_q=3 splits=3 unsafe=1",
        "mla_plan b=2 s_k=70 unsafe=1",
    };
    for (size_t i = 0; i < sizeof(unsafe) / sizeof(unsafe[0]); i++) {
        const struct assay_case the_case = parsed(unsafe[i]);
        for (const struct assay_property *p = the_case.operation->properties; p->name;
             p++)
            ck_assert_ptr_null(open_related(unsafe[i], p->name, NULL));
    }
}
END_TEST

/* --- recorded inputs ---------------------------------------------------------------- */

/* Case 0 of a recorded file and what the relation makes of it; NULL as open_related. */
static struct related_case *open_recorded(const char *file,
                                          const struct assay_property *property)
{
    char path[512];
    struct assay_recording recording;
    struct assay_message message = { "" };
    struct related_case *const related = calloc(1, sizeof(*related));
    struct related_run *const first = &related->first, *const second = &related->second;
    snprintf(path, sizeof(path), "%s/recorded/%s.safetensors.zst", corpus_folder(), file);
    ck_assert_msg(assay_recording_open(&recording, path, &message) == ASSAY_RAN, "%s",
                  message.text);
    first->the_case = recording.cases[0];
    open_related_run(first);
    struct assay_tensors recorded = first->tensors;
    ck_assert(assay_recording_bind(&recording, 0, &recorded, &message) == ASSAY_RAN);
    for (int i = 0; i < recorded.count; i++)
        if (!recorded.item[i].is_output)
            memcpy(first->tensors.item[i].data, recorded.item[i].data,
                   (size_t)assay_tensor_bytes(&recorded.item[i]));
    assay_recording_close(&recording);
    related->property = property;
    second->the_case = first->the_case;
    if (!property->derive || property->derive(&first->view, &second->the_case)) {
        open_related_run(second);
        if (transform_inputs(related)) return related;
    }
    close_related(related);
    return NULL;
}

static const struct {
    const char *file, *operation, *absent, *judged;
} recordings[] = {
    /* Requests share pages. Scores of v32b are huge. */
    { "flashmla_dense_many_c", "mla_dense_decode", "", "unused_memory other_requests" },
    { "flashmla_dense_many_d", "mla_dense_decode", "", "" },
    { "flashmla_sparse_decode_many_v32b", "mla_sparse_decode", "scaled_keys", "" },
    { "flashmla_sparse_decode_many_m1x", "mla_sparse_decode", "scaled_tail",
      "unused_memory other_requests scaled_keys" },
    { "flashmla_sparse_prefill_many_a", "mla_sparse_prefill", "",
      "unused_memory other_tokens" },
};

START_TEST(recorded_inputs_have_the_same_relations)
{
    for (size_t i = 0; i < sizeof(recordings) / sizeof(recordings[0]); i++) {
        const struct assay_operation *const operation =
            assay_operation_find(recordings[i].operation);
        for (const struct assay_property *p = operation->properties; p->name; p++) {
            struct related_case *const related = open_recorded(recordings[i].file, p);
            ck_assert_msg((related == NULL) == is_listed(recordings[i].absent, p->name),
                          "%s: %s %s", recordings[i].file, p->name,
                          related ? "applies" : "does not apply");
            if (related && is_listed(recordings[i].judged, p->name)) {
                const struct related_verdict verdict = judge_related(related, NULL);
                ck_assert_msg(verdict.wrong == 0 && verdict.outside == 0, "%s: %s",
                              recordings[i].file, p->name);
                ck_assert(3 * verdict.judged >= verdict.defined);
            }
            close_related(related);
        }
    }
}
END_TEST

/* --- memory that nobody may look at ------------------------------------------------- */

static int64_t used_elements(const struct related_run *run, const char *name)
{
    for (int i = 0; i < run->tensors.count; i++) {
        const int64_t elements = assay_tensor_elements(&run->tensors.item[i]);
        if (strcmp(run->tensors.item[i].name, name) != 0) continue;
        uint8_t *const map = malloc((size_t)elements);
        int64_t used = 0;
        run->the_case.operation->used(&run->problem, &run->tensors, i, map);
        for (int64_t at = 0; at < elements; at++)
            used += map[at];
        free(map);
        return used;
    }
    ck_abort_msg("%s", name);
    return 0;
}

/* Of sparse caches one token a request, as others may be repeated. */
static const struct {
    const char *line, *tensor;
    int64_t used;
} used[] = {
    { "mla_dense_decode b=3 h_q=4 h_k=2 s_k=0,65,100 sms=4", "k_cache", 165 * 2 * 576 },
    { "mla_dense_decode b=3 h_q=4 h_k=2 s_k=0,65,100 sms=4", "block_table", 0 + 2 + 2 },
    { "mla_dense_decode b=3 h_q=4 h_k=2 s_k=0,65,100 sms=4", "cache_seqlens", 3 },
    { "mla_dense_decode b=3 h_q=4 h_k=2 s_k=0,65,100 sms=4", "q", 3 * 4 * 576 },
    /* One part at work, whose pad is nobody's; two fields of each of two idle ones. */
    { "mla_dense_decode b=1 h_q=4 s_k=64 sms=3", "tile_scheduler_metadata", 7 + 2 + 2 },
    { "mla_dense_decode b=1 h_q=4 s_k=64 sms=3 unsafe=1", "tile_scheduler_metadata",
      3 * 8 },
    { "mla_dense_decode b=2 h_q=4 s_k=0,0 sms=2 unsafe=1", "k_cache", 3 * 64 * 576 },
    { "mla_sparse_decode kv=v32 b=2 h_q=64 topk=64 s_kv=1", "k_cache", 2 * 656 },
    { "mla_sparse_decode kv=model1 b=2 h_q=64 topk=64 topk_length=0,1", "k_cache", 583 },
    { "mla_sparse_decode kv=model1 b=2 h_q=64 s_q=3 topk=64 topk_length=0,33 sms=3",
      "indices", 3 * 33 },
    { "mla_sparse_decode kv=v41 b=1 h_q=64 topk=64 topk_length=0 extra_topk=64 "
      "extra_kv=v41_fp4 extra_topk_length=1",
      "extra_k_cache", 288 },
    { "mla_sparse_decode kv=v41 b=1 h_q=64 topk=64 extra_topk=64 extra_topk_length=10",
      "extra_indices_in_kvcache", 10 },
    { "mla_sparse_decode kv=v32 b=2 h_q=64 topk=64 tables=1", "block_table", 0 },
    { "mla_sparse_decode kv=v32 b=2 h_q=64 topk=64 tables=1", "cache_seqlens", 0 },
    { "mla_sparse_decode kv=v32 b=2 h_q=64 topk=64 tables=1 unsafe=1", "block_table", 2 },
    { "mla_sparse_prefill s_q=1 h_q=64 s_kv=128 topk=128 topk_length=1", "kv", 576 },
    { "mla_sparse_prefill s_q=2 h_q=64 s_kv=128 topk=128 invalid=1", "kv", 0 },
    { "mla_sparse_prefill s_q=2 h_q=64 s_kv=128 topk=128 topk_length=5,0", "indices", 5 },
    { "mla_combine b=3 s_q=2 h_q=4 splits=3,1,2", "oaccum", 5 * 2 * 4 * 512 },
    { "mla_combine b=3 s_q=2 h_q=4 splits=3,1,2", "lseaccum", 5 * 2 * 4 },
    { "mla_combine b=3 s_q=2 h_q=4 splits=3,1,2", "num_splits", 4 },
};

START_TEST(what_a_kernel_may_look_at_is_what_the_case_needs)
{
    for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++) {
        struct related_run *const run = calloc(1, sizeof(*run));
        run->the_case = parsed(used[i].line);
        open_related_run(run);
        run->the_case.operation->fill(&run->problem, run->the_case.data,
                                      run->the_case.seed, &run->tensors);
        ck_assert_msg(used_elements(run, used[i].tensor) == used[i].used, "%s: %s: %lld",
                      used[i].line, used[i].tensor,
                      (long long)used_elements(run, used[i].tensor));
        assay_buffers_close(&run->buffers);
        free(run);
    }
}
END_TEST

START_TEST(under_splits_that_cannot_be_everything_may_be_looked_at)
{
    struct related_run *const run = calloc(1, sizeof(*run));
    run->the_case = parsed("mla_combine b=3 s_q=2 h_q=4 splits=3,1,2 unsafe=1");
    open_related_run(run);
    run->the_case.operation->fill(&run->problem, run->the_case.data, run->the_case.seed,
                                  &run->tensors);
    ck_assert_int_eq(used_elements(run, "lseaccum"), 5 * 2 * 4);
    assay_tensor_set_bits(assay_tensors_find(&run->tensors, "num_splits"), 1, 5);
    ck_assert_int_eq(used_elements(run, "lseaccum"), 6 * 2 * 4);
    assay_buffers_close(&run->buffers);
    free(run);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_model_keeps_to_every_relation_under_all_numerics,
        relations_of_bits_know_all_that_they_promise,
        bits_are_known_where_requests_are_split_alike_and_nowhere_else,
        unsafe_cases_have_no_relations,
        recorded_inputs_have_the_same_relations,
        what_a_kernel_may_look_at_is_what_the_case_needs,
        under_splits_that_cannot_be_everything_may_be_looked_at,
        NULL,
    };
    return run_tests("attention_relations", tests);
}
