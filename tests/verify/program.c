/* SPDX-License-Identifier: MIT */
/* Programs that crash, hang and grow, seen from the process that gives them cases. */
#include "tests/verify/program_scene.h"
#include "verify/data/clock.h"

START_TEST(one_process_computes_case_after_case)
{
    struct scene scene;
    open_mode(&scene, "", 1, "", &ten_seconds);
    check_case(&scene, ASSAY_RAN, "");
    const int pid = pid_of(&scene);
    for (int i = 2; i < 50; i++) {
        check_case(&scene, ASSAY_RAN, "");
        ck_assert_int_eq(first_output(&scene), 0x3F80 + i);
        ck_assert_int_eq(pid_of(&scene), pid);
        ck_assert_int_eq(scene.notes.output_bytes, (int64_t)strlen(scene.notes.output));
        ck_assert_ptr_null(strstr(scene.notes.output + 1, "pid"));
        ck_assert(scene.notes.launch_seconds == 0);
        ck_assert(!scene.notes.has_changed_inputs);
    }
    close_scene(&scene);
    ck_assert(is_gone(pid));
}
END_TEST

START_TEST(a_fresh_one_is_started_for_every_case_when_asked)
{
    static const struct assay_backend_limits fresh = { .seconds = 10,
                                                       .warmup_seconds = 10,
                                                       .is_fresh = true };
    struct scene scene;
    int last = 0;
    open_mode(&scene, "", 1, "", &fresh);
    for (int i = 0; i < 5; i++) {
        check_case(&scene, ASSAY_RAN, "");
        ck_assert_int_eq(first_output(&scene), 0x3F81);
        ck_assert_int_ne(pid_of(&scene), last);
        last = pid_of(&scene);
        ck_assert(is_gone(last));
    }
    close_scene(&scene);
}
END_TEST

START_TEST(what_ends_costs_one_case_and_another_one_is_started)
{
    static const char *const modes[] = { "crash", "exit", "close", "give up" };
    static const char *const sentences[] = { "was killed by signal 11 (SIGSEGV)",
                                             "exited with status 0; it has to answer",
                                             "closed its standard output",
                                             "exited with status 7: no more of it" };
    for (int i = 0; i < 4; i++) {
        struct scene scene;
        open_mode(&scene, modes[i], 3, "", &ten_seconds);
        check_case(&scene, ASSAY_RAN, "");
        check_case(&scene, ASSAY_RAN, "");
        const int pid = pid_of(&scene);
        check_case(&scene, ASSAY_CRASHED, sentences[i]);
        ck_assert_int_eq(pid_of(&scene), pid);
        ck_assert_int_eq(first_output(&scene), 0xDBDB);
        ck_assert(scene.seconds < 5);
        check_case(&scene, ASSAY_RAN, "");
        ck_assert_int_ne(pid_of(&scene), pid);
        close_scene(&scene);
    }
}
END_TEST

START_TEST(a_hang_ends_in_time_together_with_its_children)
{
    static const struct assay_backend_limits short_time = { .seconds = 0.5,
                                                            .warmup_seconds = 10 };
    struct scene scene;
    int child = 0;
    open_mode(&scene, "hang", 2, "", &short_time);
    check_case(&scene, ASSAY_RAN, "");
    check_case(&scene, ASSAY_HUNG, "gave no answer within 0.5 s; --timeout allows");
    ck_assert(scene.seconds >= 0.5 && scene.seconds < 5);
    ck_assert_int_eq(sscanf(strchr(scene.notes.output, '\n') + 1, "child %d", &child), 1);
    ck_assert(is_gone(child));
    close_scene(&scene);
}
END_TEST

START_TEST(the_first_answer_has_a_time_of_its_own)
{
    static const struct assay_backend_limits slow_start = { .seconds = 0.3,
                                                            .warmup_seconds = 10 };
    static const struct assay_backend_limits fast_start = { .seconds = 10,
                                                            .warmup_seconds = 0.3 };
    struct scene scene;
    open_mode(&scene, "start slowly", 1, "", &slow_start);
    check_case(&scene, ASSAY_RAN, "");
    check_case(&scene, ASSAY_RAN, "");
    close_scene(&scene);
    open_mode(&scene, "start slowly", 1, "", &fast_start);
    check_case(&scene, ASSAY_HUNG, "no first answer within 0.3 s; --warmup-timeout");
    ck_assert(scene.seconds < 5);
    close_scene(&scene);
    open_mode(&scene, "slow", 2, "", &slow_start);
    check_case(&scene, ASSAY_RAN, "");
    check_case(&scene, ASSAY_HUNG, "gave no answer within 0.3 s");
    close_scene(&scene);
}
END_TEST

START_TEST(memory_is_watched_in_children_and_while_there_is_noise)
{
    static const struct assay_backend_limits little = { .seconds = 20,
                                                        .warmup_seconds = 20,
                                                        .memory_bytes = 100 << 20 };
    struct scene scene;
    open_mode(&scene, "grow", 1, "", &little);
    memmove(scene.command, scene.command + strlen("exec "),
            strlen(scene.command) - strlen("exec ") + 1);
    strcat(scene.command, "; true");
    check_case(&scene, ASSAY_OUT_OF_MEMORY, "took more than 100 MiB of memory");
    ck_assert(scene.seconds < 10);
    close_scene(&scene);
}
END_TEST

START_TEST(inputs_that_the_program_spoils_stay_as_they_are)
{
    struct scene scene;
    open_mode(&scene, "spoil", 1, "", &ten_seconds);
    const uint64_t before = assay_inputs_hash(&scene.call.tensors);
    check_case(&scene, ASSAY_RAN, "");
    check_case(&scene, ASSAY_RAN, "");
    ck_assert_uint_eq(assay_inputs_hash(&scene.call.tensors), before);
    close_scene(&scene);
}
END_TEST

/* A death while the program has nothing to do costs the next case, unless a stranger's
 * signal was all it was. */
START_TEST(a_death_between_cases_is_not_passed_over)
{
    struct scene scene;
    open_mode(&scene, "", 1, "", &ten_seconds);
    check_case(&scene, ASSAY_RAN, "");
    ck_assert_int_eq(kill(pid_of(&scene), SIGUSR1), 0);
    check_case(&scene, ASSAY_CRASHED, "was killed by signal 10 (SIGUSR1)");
    check_case(&scene, ASSAY_RAN, "");
    for (int i = 0; i < 4; i++) {
        static const int strangers[] = { SIGKILL, SIGTERM, SIGINT, SIGHUP };
        ck_assert_int_eq(kill(pid_of(&scene), strangers[i]), 0);
        check_case(&scene, ASSAY_RAN, "");
    }
    close_scene(&scene);
}
END_TEST

/* Whoever is interrupted still removes the folder and the program. */
START_TEST(an_interrupt_leaves_nothing_behind)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
    for (int i = 0; i < 3; i++) {
        struct scene scene;
        int status, pid = 0;
        char log[100], command[MAX_COMMAND];
        struct scratch place;
        scratch_open(&place);
        snprintf(log, sizeof(log), "%.80s", scratch_name(&place, "log"));
        snprintf(command, sizeof(command), "read folder; echo $$ >%s; sleep 100", log);
        open_scene(&scene, command, &ten_seconds);
        const pid_t supervisor = fork();
        if (supervisor == 0) {
            for (int j = 0; j < 3; j++)
                signal(signals[j], SIG_DFL);
            run_case(&scene);
            _exit(1);
        }
        for (int wait = 0; wait < 5000 && pid == 0; wait++) {
            FILE *const file = fopen(log, "r");
            if (file && fscanf(file, "%d\n", &pid) != 1) pid = 0;
            if (file) fclose(file);
            usleep(1000);
        }
        ck_assert_int_ne(pid, 0);
        ck_assert_int_eq(scratch_count(&scene.scratch), 1);
        const double start = assay_clock_seconds();
        kill(supervisor, signals[i]);
        ck_assert_int_eq(waitpid(supervisor, &status, 0), supervisor);
        ck_assert(assay_clock_seconds() - start < 5);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
        ck_assert_int_eq(scratch_count(&scene.scratch), 0);
        ck_assert(is_gone(pid));
        close_scene(&scene);
        scratch_close(&place);
    }
}
END_TEST

static int count_descriptors(void)
{
    DIR *const folder = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

START_TEST(fifty_crashes_leave_no_descriptor_and_no_process)
{
    struct scene scene;
    open_mode(&scene, "crash", 1, "", &ten_seconds);
    const int before = count_descriptors();
    for (int i = 0; i < 50; i++)
        check_case(&scene, ASSAY_CRASHED, "SIGSEGV");
    ck_assert_int_eq(count_descriptors(), before);
    close_scene(&scene);
}
END_TEST

START_TEST(a_program_has_three_descriptors_and_a_group_of_its_own)
{
    struct scene scene;
    const int ours = open("/dev/null", O_RDONLY);
    int descriptors, group;
    open_mode(&scene, "describe", 1, "", &ten_seconds);
    check_case(&scene, ASSAY_RAN, "");
    ck_assert_int_eq(sscanf(scene.notes.output, "pid %*d\ndescriptors %d group %d",
                            &descriptors, &group),
                     2);
    ck_assert_int_eq(descriptors, 3);
    ck_assert_int_eq(group, pid_of(&scene));
    close(ours);
    close_scene(&scene);
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *const tests[] = {
        one_process_computes_case_after_case,
        a_fresh_one_is_started_for_every_case_when_asked,
        what_ends_costs_one_case_and_another_one_is_started,
        a_hang_ends_in_time_together_with_its_children,
        the_first_answer_has_a_time_of_its_own,
        memory_is_watched_in_children_and_while_there_is_noise,
        inputs_that_the_program_spoils_stay_as_they_are,
        a_death_between_cases_is_not_passed_over,
        an_interrupt_leaves_nothing_behind,
        fifty_crashes_leave_no_descriptor_and_no_process,
        a_program_has_three_descriptors_and_a_group_of_its_own,
        NULL,
    };
    return run_scenes(argc, argv, "program", tests);
}
