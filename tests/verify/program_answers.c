/* SPDX-License-Identifier: MIT */
/* What programs say: answers, noise, and what is neither. */
#include "tests/verify/program_scene.h"

/* One case in the mode, which must end so. */
static void check_mode(const char *mode, const char *answer, enum assay_status status,
                       const char *sentence)
{
    struct scene scene;
    open_mode(&scene, mode, 1, answer, &ten_seconds);
    check_case(&scene, status, sentence);
    close_scene(&scene);
}

START_TEST(a_shell_s_word_for_a_signal_is_translated)
{
    struct scene scene;
    open_scene(&scene, "read folder; sh -c 'kill -SEGV $$'; exit $?", &ten_seconds);
    check_case(&scene, ASSAY_CRASHED,
               "exited with status 139, a shell's word for SIGSEGV before its first");
    close_scene(&scene);
}
END_TEST

START_TEST(endless_output_is_cut_and_ends_in_time)
{
    static const struct assay_backend_limits short_time = { .seconds = 0.5,
                                                            .warmup_seconds = 0.5 };
    static const char *const modes[] = { "chatter", "complain" };
    for (int i = 0; i < 2; i++) {
        struct scene scene;
        open_mode(&scene, modes[i], 1, "", &short_time);
        check_case(&scene, ASSAY_HUNG, "gave no first answer within 0.5 s");
        ck_assert(scene.seconds < 5);
        ck_assert_int_eq(scene.notes.output_bytes, ASSAY_PROCESS_OUTPUT_BYTES);
        ck_assert_uint_eq(strlen(scene.notes.output), 4096);
        close_scene(&scene);
    }
}
END_TEST

START_TEST(a_command_that_cannot_be_run_is_told_in_the_shell_s_words)
{
    struct scene scene;
    open_scene(&scene, "no-such-command --fast", &ten_seconds);
    check_case(&scene, ASSAY_FAILED,
               "the command 'no-such-command --fast' cannot be run");
    ck_assert_msg(strstr(scene.message.text, "not found"), "%s", scene.message.text);
    check_case(&scene, ASSAY_FAILED, "cannot be run");
    close_scene(&scene);
    open_scene(&scene, "/tmp", &ten_seconds);
    check_case(&scene, ASSAY_FAILED, "the command '/tmp' cannot be run: ");
    close_scene(&scene);
    open_scene(&scene, "echo reason >&2; exit 2", &ten_seconds);
    check_case(&scene, ASSAY_CRASHED,
               "exited with status 2 before its first answer: reason");
    close_scene(&scene);
    open_scene(&scene, "true", &ten_seconds);
    check_case(&scene, ASSAY_CRASHED, "exited with status 0 before its first answer");
    close_scene(&scene);
}
END_TEST

START_TEST(answers_become_statuses)
{
    check_mode("", "assay: unsupported only bf16\n", ASSAY_UNSUPPORTED, "': only bf16");
    check_mode("", "assay: failed error 700\n", ASSAY_FAILED, "': error 700");
    check_mode("", "assay: failed\n", ASSAY_FAILED, "for no stated reason");
    check_mode("", "assay: out of memory\n", ASSAY_OUT_OF_MEMORY, "': out of memory");
    check_mode("", "assay: okay\n", ASSAY_FAILED, "answered 'assay: okay'; an answer is");
    check_mode("", "assay: \n", ASSAY_FAILED, "answered 'assay: '; an answer is");
    check_mode("", "assay: ok seconds=-1\n", ASSAY_FAILED, "answered 'assay: ok sec");
    check_mode("", "assay: ok seconds=nan\n", ASSAY_FAILED, "answered 'assay: ok sec");
    check_mode("", "assay: ok seconds=\n", ASSAY_FAILED, "answered 'assay: ok sec");
    check_mode("", "assay: ok seconds=1 s\n", ASSAY_FAILED, "answered 'assay: ok sec");
    check_mode("", "assay: ok then\n", ASSAY_FAILED, "answered 'assay: ok then'");
    check_mode("", "assay: ok\r\n", ASSAY_RAN, "");
    check_mode("in pieces", "noise\nassay: ok\n", ASSAY_RAN, "");
    check_mode("no file", "", ASSAY_FAILED, "there is no outputs.safetensors");
    check_mode("", "assay: failed \xff\x1b[31m\n", ASSAY_FAILED, "': ??[31m");
}
END_TEST

START_TEST(a_program_says_how_long_its_launches_took)
{
    struct scene scene;
    open_mode(&scene, "", 2, "assay: ok seconds=0.0012\n", &ten_seconds);
    check_case(&scene, ASSAY_RAN, "");
    ck_assert(scene.notes.launch_seconds == 0);
    check_case(&scene, ASSAY_RAN, "");
    ck_assert(scene.notes.launch_seconds == 0.0012);
    close_scene(&scene);
}
END_TEST

START_TEST(noise_is_kept_and_answers_nothing)
{
    static const char noise[] = "a assay: ok\nASSAY: ok\n assay: ok\nassay:ok\n";
    struct scene scene;
    char answer[200], expected[200];
    snprintf(answer, sizeof(answer), "%sassay: unsupported\n", noise);
    open_mode(&scene, "", 1, answer, &ten_seconds);
    check_case(&scene, ASSAY_UNSUPPORTED, "");
    snprintf(expected, sizeof(expected), "pid %d\n%s", pid_of(&scene), noise);
    ck_assert_str_eq(scene.notes.output, expected);
    ck_assert_int_eq(scene.notes.output_bytes, (int64_t)strlen(expected));
    close_scene(&scene);
}
END_TEST

START_TEST(a_long_line_is_noise_to_its_end)
{
    struct scene scene;
    open_scene(&scene,
               "read folder; printf '%4096s' ''; echo 'assay: ok'; "
               "echo 'assay: unsupported as yet'; read folder",
               &ten_seconds);
    check_case(&scene, ASSAY_UNSUPPORTED, "': as yet");
    close_scene(&scene);
}
END_TEST

/* The second answer came before the second case: it is noise then. */
START_TEST(an_answer_that_came_too_early_is_none)
{
    struct scene scene;
    open_scene(&scene,
               "read folder; echo 'assay: unsupported one'; echo 'assay: ok'; "
               "read folder; sleep 0.2; echo 'assay: unsupported two'; read folder",
               &ten_seconds);
    check_case(&scene, ASSAY_UNSUPPORTED, "': one");
    pause_seconds(0.2);
    check_case(&scene, ASSAY_UNSUPPORTED, "': two");
    ck_assert_str_eq(scene.notes.output, "assay: ok\n");
    close_scene(&scene);
}
END_TEST

START_TEST(who_reads_nothing_is_found_out)
{
    struct scene scene;
    open_scene(&scene, "while sleep 0.001; do echo 'assay: unsupported'; done",
               &ten_seconds);
    bool is_found = false;
    for (int i = 0; i < 5000 && !is_found; i++) {
        run_case(&scene);
        is_found = scene.status == ASSAY_FAILED;
    }
    ck_assert_msg(strstr(scene.message.text, "does not read its standard input"), "%s",
                  scene.message.text);
    close_scene(&scene);
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *const tests[] = {
        a_shell_s_word_for_a_signal_is_translated,
        endless_output_is_cut_and_ends_in_time,
        a_command_that_cannot_be_run_is_told_in_the_shell_s_words,
        answers_become_statuses,
        a_program_says_how_long_its_launches_took,
        noise_is_kept_and_answers_nothing,
        a_long_line_is_noise_to_its_end,
        an_answer_that_came_too_early_is_none,
        who_reads_nothing_is_found_out,
        NULL,
    };
    return run_scenes(argc, argv, "program_answers", tests);
}
