/* SPDX-License-Identifier: MIT */
/* The recorded files of the corpus hold what came from the GPU, under canonical lines. */
#include "tests/harness.h"
#include "tests/verify/shaped_case.h"
#include "verify/check/inputs.h"
#include "verify/data/recording.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static uint64_t weighted_sum(const struct assay_tensor *tensor)
{
    const unsigned char *const bytes = tensor->data;
    uint64_t sum = 0;
    for (int64_t i = 0; i < assay_tensor_bytes(tensor); i++)
        sum += (uint64_t)(i + 1) * bytes[i];
    return sum;
}

/* Sums, modulo 2^64, of position (from 1) times byte over the arrays as they came from
 * the H200, by case and tensor; where an array was transposed, narrowed or repeated, over
 * its expected result. */
static const struct {
    const char *file;
    int index;
    uint64_t a, b, sfa, sfb, c, d;
} recorded_sums[] = {
    { "deepgemm_n192_normal", 0, 0x1567e85acae, 0x2ede2b4bfa6, 0x3b56155c, 0x2d891, 0,
      0x22ac1159b1 },
    { "deepgemm_n192_normal", 1, 0x1567e85acae, 0x2ede2b4bfa6, 0x3b56155c, 0x65b6bf80, 0,
      0x8cfa21e9a5 },
    { "deepgemm_n192_normal", 2, 0x1567e85acae, 0x300afa28570, 0x3b56155c, 0x828b6740, 0,
      0x8d2db75c9d },
    { "deepgemm_n192_wide", 0, 0xf67392c643, 0x1a8164f78db, 0x3305fd51, 0x335fd, 0,
      0x24a70c5cf9 },
    { "deepgemm_n192_wide", 1, 0xf67392c643, 0x1a8164f78db, 0x3305fd51, 0x7d6bbfc0, 0,
      0x91085b5cb1 },
    { "deepgemm_n192_wide", 2, 0xf67392c643, 0x228ec84497d, 0x3305fd51, 0x731efe6f, 0,
      0x909918b51c },
    { "deepgemm_n256_normal", 0, 0x1557063fc66, 0x535df31c2bb, 0x397a66ff, 0x25dfa, 0,
      0x3d60c9d8eb },
    { "deepgemm_n256_normal", 1, 0x1557063fc66, 0x535df31c2bb, 0x397a66ff, 0x9291ed00, 0,
      0xfaf88d49d9 },
    { "deepgemm_n256_normal", 2, 0x1557063fc66, 0x556de6ffb97, 0x397a66ff, 0xea6165d1, 0,
      0xfa2f650404 },
    { "deepgemm_n256_wide", 0, 0xf449da4a5f, 0x2d932ae8f4a, 0x321be486, 0x293af, 0,
      0x406f837d1b },
    { "deepgemm_n256_wide", 1, 0xf449da4a5f, 0x2d932ae8f4a, 0x321be486, 0xad570780, 0,
      0xffd265373b },
    { "deepgemm_n256_wide", 2, 0xf449da4a5f, 0x3d62b7689dc, 0x321be486, 0xc8116d53, 0,
      0xff97dd1543 },
    { "deepgemm_many_a", 0, 0x9547f1771, 0x69bdefdf73, 0x19b67f8, 0x105b3, 0,
      0x17a4d616c },
    { "deepgemm_many_a", 1, 0x9547f1771, 0x7cb9c94211, 0x19b67f8, 0x166d9c10, 0x5e3abd057,
      0x5ee648cec },
    { "deepgemm_many_b", 0, 0x48c7a53c1fe, 0x172638c90383, 0xcd806bbe, 0x1c98ac, 0,
      0x65f8c0143e },
    { "deepgemm_many_b", 1, 0x48c7a53c1fe, 0x1ba37c42fcdf, 0xcd806bbe, 0x4e3668a87,
      0x19498c002e2, 0x199499cca79 },
    { "deepgemm_many_c", 0, 0xa2ca88, 0x2a7f50ae6e8, 0x207b, 0x28ad8, 0, 0x4e1a3c4 },
    { "cublaslt_fp8_64x64x1024", 0, 0x38005989bf, 0x37eb5aacae, 0x27c, 0x27c, 0,
      0x2f16b846f },
    { "cublaslt_fp8_64x64x1024", 1, 0x38005989bf, 0x37eb5aacae, 0x27c, 0x27c, 0,
      0xfc792fcf },
    { "cublaslt_fp8_64x64x1024", 2, 0x38005989bf, 0x37eb5aacae, 0x27c, 0x27c, 0,
      0x35e0a469e },
    { "cublaslt_fp8_64x64x1024", 3, 0x38005989bf, 0x37eb5aacae, 0x27c, 0x27c, 0,
      0xfc497d6f },
    { "cublaslt_fp8_128x256x2048", 0, 0x3800ff18d7d, 0xe0df96e1997, 0x27c, 0x27c, 0,
      0xba952123b6 },
    { "cublaslt_fp8_128x256x2048", 1, 0x3800ff18d7d, 0xe0df96e1997, 0x27c, 0x27c, 0,
      0x3e277f233d },
    { "cublaslt_fp8_128x256x2048", 2, 0x3800ff18d7d, 0xe0df96e1997, 0x27c, 0x27c, 0,
      0xe121ef94fc },
    { "cublaslt_fp8_128x256x2048", 3, 0x3800ff18d7d, 0xe0df96e1997, 0x27c, 0x27c, 0,
      0x3e2e11f18d },
    { "cublaslt_fp8_128x256x2048", 4, 0x3800ff18d7d, 0xe0df96e1997, 0xd76e0aa3, 0xe1161,
      0, 0xfaff34b653 },
    { "cublaslt_fp8_128x256x2048", 5, 0x3800ff18d7d, 0xe0df96e1997, 0xd76e0aa3, 0xe1161,
      0, 0x3dd12b5908 },
};

static void check_sum(const struct assay_tensors *tensors, const char *name,
                      uint64_t expected)
{
    const struct assay_tensor *const tensor = assay_tensors_find(tensors, name);
    if (!tensor) ck_assert_uint_eq(expected, 0);
    if (tensor) ck_assert_uint_eq(weighted_sum(tensor), expected);
}

START_TEST(tensors_of_the_corpus_hold_what_the_gpu_gave)
{
    for (size_t i = 0; i < sizeof recorded_sums / sizeof *recorded_sums; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/recorded/%s.safetensors.zst", corpus_folder(),
                 recorded_sums[i].file);
        struct assay_recording recording;
        struct assay_message message = { "" };
        struct assay_tensors tensors;
        ck_assert_msg(assay_recording_open(&recording, path, &message) == ASSAY_RAN, "%s",
                      message.text);
        const int index = recorded_sums[i].index;
        ck_assert_int_lt(index, recording.count);
        shape_case(&recording.cases[index], &tensors);
        ck_assert_msg(assay_recording_bind(&recording, index, &tensors, &message) ==
                          ASSAY_RAN,
                      "%s", message.text);
        check_sum(&tensors, "a", recorded_sums[i].a);
        check_sum(&tensors, "b", recorded_sums[i].b);
        check_sum(&tensors, "sfa", recorded_sums[i].sfa);
        check_sum(&tensors, "sfb", recorded_sums[i].sfb);
        check_sum(&tensors, "c", recorded_sums[i].c);
        check_sum(&tensors, "d", recorded_sums[i].d);
        assay_recording_close(&recording);
    }
}
END_TEST

/* Inputs that the line generates are the recorded ones. */
static void check_inputs(struct assay_recording *recording, int index)
{
    const struct assay_case *const the_case = &recording->cases[index];
    if (the_case->data == ASSAY_DATA_RECORDED) return;
    struct assay_tensors recorded, generated;
    struct assay_buffers buffers;
    struct assay_message message = { "" };
    shape_case(the_case, &recorded);
    ck_assert_msg(assay_recording_bind(recording, index, &recorded, &message) ==
                      ASSAY_RAN,
                  "%s", message.text);
    generate_case(the_case, &generated, &buffers);
    ck_assert_msg(assay_inputs_hash(&recorded) == assay_inputs_hash(&generated),
                  "%s, case %d", recording->path, index);
    assay_buffers_close(&buffers);
}

static int check_corpus_file(const char *path)
{
    struct assay_recording recording;
    struct assay_message message = { "" };
    ck_assert_msg(assay_recording_open(&recording, path, &message) == ASSAY_RAN, "%s",
                  message.text);
    char line[ASSAY_MAX_CASE_LINE];
    char *const lines = strdup(assay_safetensors_metadata(&recording.file, "cases"));
    char *rest = NULL, *stored = strtok_r(lines, "\n", &rest);
    for (int i = 0; i < recording.count; i++) {
        ck_assert_ptr_nonnull(stored);
        assay_case_format(&recording.cases[i], line, sizeof line);
        ck_assert_str_eq(line, stored);
        check_inputs(&recording, i);
        stored = strtok_r(NULL, "\n", &rest);
    }
    ck_assert_ptr_null(stored);
    free(lines);
    const int count = recording.count;
    assay_recording_close(&recording);
    return count;
}

START_TEST(case_lines_of_the_corpus_are_canonical_and_generate_its_inputs)
{
    char path[800], folder[512];
    snprintf(folder, sizeof folder, "%s/recorded", corpus_folder());
    DIR *const directory = opendir(folder);
    ck_assert_ptr_nonnull(directory);
    int cases = 0;
    for (const struct dirent *file; (file = readdir(directory));) {
        if (!strstr(file->d_name, ".safetensors")) continue;
        snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
        cases += check_corpus_file(path);
    }
    closedir(directory);
    ck_assert_int_ge(cases, 227);
}
END_TEST

/* A program may return another plan, and bits= changes elements. */
START_TEST(a_run_that_writes_its_inputs_leaves_the_file_as_it_was)
{
    char path[800];
    struct assay_recording recording;
    struct assay_message message = { "" };
    snprintf(path, sizeof path, "%s/recorded/flashmla_dense.safetensors.zst",
             corpus_folder());
    ck_assert_int_eq(assay_recording_open(&recording, path, &message), ASSAY_RAN);
    uint64_t hash[2];
    for (int run = 0; run < 2; run++) {
        struct assay_case the_case = recording.cases[0];
        static _Alignas(16) unsigned char problem[ASSAY_MAX_PROBLEM_BYTES];
        struct assay_tensors tensors;
        struct assay_buffers buffers = { 0 };
        the_case.explicit_bits_count = 1 - run;
        the_case.explicit_bits[0] = (struct assay_explicit_bits){
            .tensor = "q", .rank = 4, .index = { 0 }, .bits = 0x1234
        };
        ck_assert_int_eq(assay_inputs_open(&the_case, &recording, 0, problem, &tensors,
                                           &buffers, &message),
                         ASSAY_RAN);
        const struct assay_tensor *const q = assay_tensors_find(&tensors, "q");
        const struct assay_tensor *const plan =
            assay_tensors_find(&tensors, "tile_scheduler_metadata");
        ck_assert((assay_tensor_bits(q, 0) == 0x1234) == (run == 0));
        hash[run] = assay_tensor_hash(plan);
        memset(plan->data, 0x5A, (size_t)assay_tensor_bytes(plan));
        assay_buffers_close(&buffers);
    }
    ck_assert_uint_eq(hash[0], hash[1]);
    assay_recording_close(&recording);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        tensors_of_the_corpus_hold_what_the_gpu_gave,
        case_lines_of_the_corpus_are_canonical_and_generate_its_inputs,
        a_run_that_writes_its_inputs_leaves_the_file_as_it_was,
        NULL,
    };
    return run_tests("recording_corpus", tests);
}
