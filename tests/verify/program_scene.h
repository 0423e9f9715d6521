/* SPDX-License-Identifier: MIT */
/* A program that goes wrong as it is told, and a case for it, in a folder of its own. The
 * program is the test itself, run with the word "program", a mode, the number of the case
 * from which on it applies, and what is answered then. */
#ifndef ASSAY_TESTS_VERIFY_PROGRAM_SCENE_H
#define ASSAY_TESTS_VERIFY_PROGRAM_SCENE_H

#include "tests/verify/plugin_call.h"
#include "tests/verify/scratch.h"
#include "verify/data/clock.h"
#include "verify/data/safetensors.h"
#include "verify/worker/process.h"
#include "verify/worker/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

enum { ROWS = 4, COLUMNS = 8, MAX_COMMAND = 600 };
static const char small_case[] = "fp8_gemm_nt m=4 n=8 k=128 seed=1";
static const struct assay_backend_limits ten_seconds = { .seconds = 10,
                                                         .warmup_seconds = 10 };

/* --- the program: this one again, with the word "program" and a mode ---------------- */

static inline void write_outputs(const char *folder, uint16_t value)
{
    struct assay_message message;
    char path[5100];
    uint16_t data[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        data[i] = value;
    const struct assay_safetensors_entry d = { .name = (char *)"d",
                                               .format = ASSAY_BF16,
                                               .rank = 2,
                                               .shape = { ROWS, COLUMNS },
                                               .data = data,
                                               .bytes = sizeof(data) };
    snprintf(path, sizeof(path), "%s/outputs.safetensors", folder);
    if (assay_safetensors_write(path, &d, 1, NULL, 0, &message) != ASSAY_RAN) _exit(3);
}

static inline void say(const char *text)
{
    if (write(STDOUT_FILENO, text, strlen(text)) < 0) _exit(4);
}

static inline void pause_seconds(double seconds)
{
    const struct timespec time = { (time_t)seconds,
                                   (long)(1e9 * (seconds - (double)(time_t)seconds)) };
    nanosleep(&time, NULL);
}

/* 200 MiB, then nothing but chatter. */
_Noreturn static inline void grow_aloud(void)
{
    for (int block = 0;; block++) {
        volatile char *const memory = block < 50 ? malloc(1 << 22) : NULL;
        for (int i = 0; memory && i < 1 << 22; i += 4096)
            memory[i] = 1;
        say("growing\n");
    }
}

_Noreturn static inline void hang_with_a_child(void)
{
    const pid_t child = fork();
    char text[40];
    if (child == 0)
        for (;;)
            pause();
    snprintf(text, sizeof(text), "child %d\n", (int)child);
    say(text);
    for (;;)
        pause();
}

static inline void spoil_inputs(const char *folder)
{
    char path[5100];
    snprintf(path, sizeof(path), "%s/inputs.safetensors", folder);
    if (truncate(path, 3) != 0) _exit(5);
}

static inline void describe_process(void)
{
    char text[60];
    int descriptors = 0;
    for (int fd = 0; fd < 1000; fd++)
        descriptors += fcntl(fd, F_GETFD) >= 0;
    snprintf(text, sizeof(text), "descriptors %d group %d\n", descriptors,
             (int)getpgrp());
    say(text);
}

static inline void chatter_forever(int fd)
{
    static const char text[] = "and on and on\n";
    while (write(fd, text, sizeof(text) - 1) > 0)
        continue;
}

static inline void go_wrong(const char *mode, const char *folder)
{
    if (strcmp(mode, "crash") == 0) {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    }
    if (strcmp(mode, "exit") == 0) _exit(0);
    if (strcmp(mode, "give up") == 0) {
        say("what for\nno more of it\n\n");
        _exit(7);
    }
    if (strcmp(mode, "hang") == 0) hang_with_a_child();
    if (strcmp(mode, "grow") == 0) grow_aloud();
    if (strcmp(mode, "chatter") == 0) chatter_forever(STDOUT_FILENO);
    if (strcmp(mode, "complain") == 0) chatter_forever(STDERR_FILENO);
    if (strcmp(mode, "spoil") == 0) spoil_inputs(folder);
    if (strcmp(mode, "describe") == 0) describe_process();
    if (strcmp(mode, "slow") == 0) pause_seconds(1);
    if (strcmp(mode, "close") == 0) {
        close(STDOUT_FILENO);
        for (;;)
            pause();
    }
}

/* Answers with the words of @answer, a line each; "" is ok with outputs. */
static inline void reply(const char *mode, const char *answer, const char *folder,
                         int count)
{
    if (strcmp(mode, "no file") != 0) write_outputs(folder, (uint16_t)(0x3F80 + count));
    if (!*answer) answer = "assay: ok\n";
    for (const char *at = answer; *at; at++) {
        say((const char[]){ *at, '\0' });
        if (strcmp(mode, "in pieces") == 0) pause_seconds(0.01);
    }
}

/* MODE FROM ANSWER: goes wrong from its case number FROM on. */
static inline int run_program(char **argv)
{
    char folder[5000];
    const char *const mode = argv[0], *const answer = argv[2];
    const int from = atoi(argv[1]);
    if (strcmp(mode, "start slowly") == 0) pause_seconds(1);
    for (int count = 1; fgets(folder, sizeof(folder), stdin); count++) {
        char text[40];
        folder[strcspn(folder, "\n")] = '\0';
        snprintf(text, sizeof(text), "pid %d\n", (int)getpid());
        say(text);
        if (count >= from) go_wrong(mode, folder);
        reply(count >= from ? mode : "", count >= from ? answer : "", folder, count);
    }
    return 0;
}

/* --- the case --------------------------------------------------------------------- */

struct scene {
    struct scratch scratch; /* which is TMPDIR */
    struct plugin_call call;
    struct assay_program *program;
    char command[MAX_COMMAND];
    enum assay_status status;
    struct assay_message message;
    struct assay_backend_notes notes;
    double seconds;
};

static inline void open_scene(struct scene *scene, const char *command,
                              const struct assay_backend_limits *limits)
{
    struct assay_message message;
    *scene = (struct scene){ .status = ASSAY_RAN };
    scratch_open(&scene->scratch);
    setenv("TMPDIR", scene->scratch.folder, 1);
    open_call(&scene->call, small_case);
    snprintf(scene->command, sizeof(scene->command), "%s", command);
    const struct assay_program_plan plan = { scene->command, *limits };
    ck_assert(assay_program_open(&plan, &scene->program, &message) == ASSAY_RAN);
}

/* The program in @mode from its case @from on, with @answer then; "exec": the shell makes
 * room for it. */
static inline void open_mode(struct scene *scene, const char *mode, int from,
                             const char *answer,
                             const struct assay_backend_limits *limits)
{
    char self[256], command[MAX_COMMAND];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    ck_assert_int_gt(length, 0);
    self[length] = '\0';
    snprintf(command, sizeof(command), "exec '%s' program '%s' %d '%s'", self, mode, from,
             answer);
    open_scene(scene, command, limits);
}

static inline void run_case(struct scene *scene)
{
    scene->seconds = assay_clock_seconds();
    assay_buffers_poison(&scene->call.tensors);
    scene->message = (struct assay_message){ "" };
    scene->status = assay_program_run(scene->program, &scene->call.call, &scene->message);
    assay_program_notes(scene->program, &scene->notes);
    scene->seconds = assay_clock_seconds() - scene->seconds;
    ck_assert_int_eq(scratch_count(&scene->scratch), 0);
}

static inline void check_case(struct scene *scene, enum assay_status status,
                              const char *sentence)
{
    run_case(scene);
    ck_assert_msg(scene->status == status, "%s: %s", assay_status_name(scene->status),
                  scene->message.text);
    ck_assert_msg(strstr(scene->message.text, sentence), "%s", scene->message.text);
}

static inline int first_output(const struct scene *scene)
{
    const struct assay_tensor *const d = assay_tensors_find(&scene->call.tensors, "d");
    return (int)assay_tensor_bits(d, 0);
}

/* The process that has just been spoken to. */
static inline int pid_of(const struct scene *scene)
{
    int pid = 0;
    ck_assert_msg(sscanf(scene->notes.output, "pid %d", &pid) == 1, "%s",
                  scene->notes.output);
    return pid;
}

static inline bool is_gone(int pid)
{
    for (int i = 0; i < 2000; i++) {
        if (kill(pid, 0) != 0 && errno == ESRCH) return true;
        usleep(1000);
    }
    return false;
}

static inline void close_scene(struct scene *scene)
{
    assay_program_close(scene->program);
    close_call(&scene->call);
    scratch_close(&scene->scratch);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
}

/* The main function of such a test. */
static inline int run_scenes(int argc, char **argv, const char *name,
                             const TTest *const *tests)
{
    if (argc == 5 && strcmp(argv[1], "program") == 0) return run_program(argv + 2);
    return run_tests(name, tests);
}

#endif
