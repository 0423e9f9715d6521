/* SPDX-License-Identifier: MIT */
/* Runs of several jobs: order, deaths, and what a job is given. The program starts itself
 * as the job; a case says what is to become of it. */
#include "tests/verify/plugin_call.h"
#include "tests/verify/scratch.h"
#include "verify/case/text.h"
#include "verify/data/clock.h"
#include "verify/run/job.h"
#include "verify/run/lines.h"
#include "verify/worker/process.h"
#include "verify/worker/serve.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <omp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { MAX_CASES = 500 };

/* What a run is made of and what came of it. */
struct told {
    const char *lines[MAX_CASES + 1]; /* NULL-terminated */
    int64_t taken;
    char *result[MAX_CASES]; /* as the json report has it */
    struct assay_message message;
};

static struct scratch scratch;

static void log_line(const char *path, const char *line)
{
    FILE *const file = fopen(path, "a");
    if (file && fprintf(file, "%s\n", line) > 0) fclose(file);
}

/* True the first time. */
static bool is_new(const char *path)
{
    const bool is_there = access(path, F_OK) == 0;
    log_line(path, "here");
    return !is_there;
}

static void fill_in_much(struct assay_result *result)
{
    result->output_count = 4;
    result->output = calloc(4, sizeof(*result->output));
    for (int i = 0; result->output && i < 4; i++) {
        struct assay_output_result *const output = &result->output[i];
        output->name = "d";
        output->tensor = (struct assay_tensor){ .format = ASSAY_BF16,
                                                .rank = 1,
                                                .shape = { ASSAY_MAX_DIFFERENCES } };
        output->elements = output->defined = ASSAY_MAX_DIFFERENCES;
        output->has_bits = true;
        output->differ = output->difference_count = ASSAY_MAX_DIFFERENCES;
        for (int at = 0; at < ASSAY_MAX_DIFFERENCES; at++)
            output->difference[at].index = at;
    }
}

/* All that the environment says about threads. */
static void tell_threads(struct assay_result *result)
{
    struct assay_text text = assay_text_open(result->warning, sizeof(result->warning));
    for (char **variable = environ; *variable; variable++)
        if (strncmp(*variable, "OMP_NUM_THREADS=", 16) == 0)
            assay_text_add(&text, "<%s>", *variable + 16);
}

/* "OK [SECONDS [LOG]]", "signal N", "signal-once N MARK", "exit N", "much", "threads",
 * "end". */
static enum assay_status run_told(void *context, const struct assay_run_case *the_case,
                                  struct assay_result *result,
                                  struct assay_message *message)
{
    char word[32] = "", path[300] = "";
    double value = 0;
    (void)context;
    *result =
        (struct assay_result){ .has_passed = true, .model_max_error_over_bound = -1 };
    snprintf(result->case_line, sizeof(result->case_line), "%s", the_case->line);
    sscanf(the_case->line, "%31s %lf %299s", word, &value, path);
    if (strcmp(word, "signal") == 0) raise((int)value);
    if (strcmp(word, "signal-once") == 0 && is_new(path)) raise((int)value);
    if (strcmp(word, "exit") == 0) _exit((int)value);
    if (strcmp(word, "much") == 0) fill_in_much(result);
    if (value > 0 && strcmp(word, "OK") == 0) usleep((useconds_t)(value * 1e6));
    if (*path && strcmp(word, "signal-once") != 0) log_line(path, the_case->line);
    if (strcmp(word, "threads") == 0) tell_threads(result);
    return strcmp(word, "end") == 0
               ? assay_fail(message, ASSAY_DEVICE_LOST, "told to end")
               : ASSAY_RAN;
}

static bool find_told(void *context, struct assay_run_case *the_case)
{
    const struct told *const told = context;
    the_case->line = told->lines[the_case->number];
    return the_case->line != NULL;
}

static enum assay_status name_told(void *context, const struct assay_run_case *the_case,
                                   struct assay_result *result,
                                   struct assay_message *message)
{
    (void)context, (void)message;
    snprintf(result->case_line, sizeof(result->case_line), "%s", the_case->line);
    return ASSAY_RAN;
}

static enum assay_status take_told(void *context, const struct assay_result *result,
                                   struct assay_message *message)
{
    (void)message;
    struct told *const told = context;
    told->result[told->taken++] = assay_job_result(result);
    return ASSAY_RAN;
}

static enum assay_status run_jobs(struct told *told, int jobs, const char *folder)
{
    static char *words[] = { (char *)"assay", (char *)"job", NULL };
    const struct assay_run_plan plan = {
        .context = told,
        .find = find_told,
        .run = run_told,
        .name = name_told,
        .take = take_told,
        .jobs = jobs,
        .job_words = words,
        .folder = folder,
        .header = { .command = "test" },
    };
    return assay_run(&plan, &told->message);
}

static void forget(struct told *told)
{
    for (int64_t i = 0; i < told->taken; i++)
        free(told->result[i]);
    told->taken = 0;
}

static void check_told(struct told *told, int jobs, const char *folder)
{
    ck_assert_msg(run_jobs(told, jobs, folder) == ASSAY_RAN, "%s", told->message.text);
}

static void check_result(const struct told *told, int number, const char *part)
{
    ck_assert_int_lt(number, told->taken);
    ck_assert_msg(strstr(told->result[number], part), "%s", told->result[number]);
}

START_TEST(results_come_in_order_whatever_the_number_of_jobs)
{
    static const int jobs[] = { 1, 2, 5, ASSAY_MAX_JOBS };
    static char line[40][32];
    struct told told = { .taken = 0 };
    for (int i = 0; i < 40; i++) {
        snprintf(line[i], sizeof(line[i]), "OK 0.0%02d", i * 7 % 40);
        told.lines[i] = line[i];
    }
    for (int i = 0; i < 4; i++) {
        check_told(&told, jobs[i], NULL);
        ck_assert_int_eq(told.taken, 40);
        for (int at = 0; at < 40; at++)
            check_result(&told, at, line[at]);
        forget(&told);
    }
}
END_TEST

START_TEST(a_job_that_dies_costs_its_case)
{
    struct told told = { .lines = { "OK", "signal 6", "OK", "exit 3", "OK", "signal 9",
                                    "OK", "OK" } };
    for (int jobs = 2; jobs <= 4; jobs++) {
        check_told(&told, jobs, NULL);
        ck_assert_int_eq(told.taken, 8);
        check_result(&told, 1, "\"status\":\"crashed\"");
        check_result(&told, 1,
                     "the job that ran the case was killed by signal 6 (SIGABRT)");
        check_result(&told, 3, "the job that ran the case exited with status 3");
        check_result(&told, 5, "was killed by signal 9 (SIGKILL)");
        for (int i = 0; i < 8; i += 2)
            check_result(&told, i, "\"status\":\"ran\"");
        check_result(&told, 7, "\"status\":\"ran\"");
        forget(&told);
    }
}
END_TEST

START_TEST(a_job_that_somebody_kills_has_its_case_run_once_more)
{
    char kill_once[400], crash_once[400];
    scratch_open(&scratch);
    snprintf(kill_once, sizeof(kill_once), "signal-once 9 %s/killed", scratch.folder);
    snprintf(crash_once, sizeof(crash_once), "signal-once 6 %s/died", scratch.folder);
    struct told told = { .lines = { "OK", kill_once, crash_once, "OK" } };
    check_told(&told, 2, NULL);
    check_result(&told, 1, "\"status\":\"ran\"");
    check_result(&told, 2, "killed by signal 6 (SIGABRT)");
    forget(&told);
    scratch_close(&scratch);
}
END_TEST

START_TEST(results_may_be_large)
{
    struct told here = { .lines = { "much", "OK", "much", "much" } }, told = here;
    check_told(&here, 1, NULL);
    check_told(&told, 2, NULL);
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(told.result[i], here.result[i]);
    ck_assert_uint_gt(strlen(told.result[2]), 100000);
    forget(&here);
    forget(&told);
}
END_TEST

START_TEST(a_run_that_has_to_end_ends)
{
    static const int jobs[] = { 1, 3 };
    for (int i = 0; i < 2; i++) {
        struct told told = { .lines = { "OK", "OK", "end", "OK 20", "OK 20" } };
        const double start = assay_clock_seconds();
        ck_assert_int_eq(run_jobs(&told, jobs[i], NULL), ASSAY_DEVICE_LOST);
        ck_assert_str_eq(told.message.text, "told to end");
        ck_assert(assay_clock_seconds() - start < 10);
        forget(&told);
    }
}
END_TEST

START_TEST(jobs_share_the_threads_unless_the_user_has_shared_them)
{
    struct told told = { .lines = { "threads" } };
    char wanted[64];
    unsetenv("OMP_NUM_THREADS");
    omp_set_num_threads(12);
    for (int jobs = 2; jobs < 30; jobs += 3) {
        const int share = 12 / jobs > 1 ? 12 / jobs : 1;
        snprintf(wanted, sizeof(wanted), "\"warning\":\"<%d>\"", share);
        check_told(&told, jobs, NULL);
        check_result(&told, 0, wanted);
        forget(&told);
    }
    setenv("OMP_NUM_THREADS", "7", 1);
    check_told(&told, 2, NULL);
    check_result(&told, 0, "\"warning\":\"<7>\"");
    forget(&told);
}
END_TEST

/* While the first case takes its time, so many others are finished and no more. */
START_TEST(results_that_wait_are_limited)
{
    char slow[400], fast[400], line[400];
    struct told told = { .taken = 0 };
    scratch_open(&scratch);
    snprintf(slow, sizeof(slow), "OK 1.5 %s/log", scratch.folder);
    snprintf(fast, sizeof(fast), "OK 0 %s/log", scratch.folder);
    for (int i = 0; i < 400; i++)
        told.lines[i] = i ? fast : slow;
    check_told(&told, 3, NULL);
    ck_assert_int_eq(told.taken, 400);
    FILE *const log = fopen(scratch_name(&scratch, "log"), "r");
    int before = 0;
    while (fgets(line, sizeof(line), log) && strncmp(line, slow, strlen(slow)) != 0)
        before++;
    fclose(log);
    ck_assert_int_eq(before, 255);
    forget(&told);
    scratch_close(&scratch);
}
END_TEST

START_TEST(lines_come_whole_whatever_the_pieces)
{
    static const char *const pieces[] = { "on", "e\ntwo\n\nfo", "ur", "\n", "five" };
    static const char *const wanted[] = { NULL, "one two  ", NULL, "four ", NULL };
    struct assay_lines lines = { .text = NULL };
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    for (int i = 0; i < 5; i++) {
        char found[64];
        struct assay_text text = assay_text_open(found, sizeof(found));
        const ssize_t length = (ssize_t)strlen(pieces[i]);
        ck_assert_int_eq(write(ends[0], pieces[i], (size_t)length), length);
        ck_assert(assay_lines_fill(&lines, ends[1]));
        for (char *line; (line = assay_lines_take(&lines)); free(line))
            assay_text_add(&text, "%s ", line);
        ck_assert_str_eq(found, wanted[i] ? wanted[i] : "");
    }
    close(ends[0]);
    ck_assert(!assay_lines_fill(&lines, ends[1]));
    assay_lines_close(&lines);
    close(ends[1]);
}
END_TEST

static int count_entries(const char *folder)
{
    DIR *const directory = opendir(folder);
    int count = 0;
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

START_TEST(nothing_is_left_of_jobs)
{
    struct told told = { .lines = { "OK", "signal 6", "OK", "signal 9", "OK" } };
    check_told(&told, 3, NULL);
    forget(&told);
    const int before = count_entries("/proc/self/fd");
    check_told(&told, 3, NULL);
    forget(&told);
    ck_assert_int_eq(count_entries("/proc/self/fd"), before);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
}
END_TEST

START_TEST(jobs_die_with_their_run)
{
    int child, parent;
    const pid_t run = fork();
    if (run == 0) {
        struct told told = { .lines = { "OK 30", "OK 30" } };
        run_jobs(&told, 2, NULL);
        _exit(1);
    }
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", run, run);
    for (child = parent = 0; !parent;) {
        FILE *const file = fopen(path, "r");
        if (fscanf(file, "%d %d", &child, &parent) != 2) child = parent = 0;
        fclose(file);
        usleep(1000);
    }
    usleep(300000);
    kill(run, SIGKILL);
    ck_assert_int_eq(waitpid(run, NULL, 0), run);
    const double deadline = assay_clock_seconds() + 5;
    while (kill(child, 0) == 0 && assay_clock_seconds() < deadline) {
        snprintf(path, sizeof(path), "/proc/%d/stat", child);
        char state = 'Z';
        FILE *const file = fopen(path, "r");
        if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = '?';
        if (file) fclose(file);
        if (state == 'Z') break;
        usleep(1000);
    }
    ck_assert(assay_clock_seconds() < deadline);
}
END_TEST

START_TEST(a_journal_takes_results_of_jobs_and_gives_them_back)
{
    scratch_open(&scratch);
    struct told told = { .lines = { "OK 0.1", "signal 6", "OK", "much" } }, again = told;
    check_told(&told, 3, scratch.folder);
    check_told(&again, 1, scratch.folder);
    ck_assert_int_eq(again.taken, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(told.result[i], again.result[i]);
    check_result(&again, 1, "signal 6 (SIGABRT)");
    forget(&told);
    forget(&again);
    scratch_close(&scratch);
}
END_TEST

START_TEST(a_worker_that_somebody_kills_does_its_case_once_more)
{
    struct plugin_call call;
    struct assay_worker *worker;
    struct assay_message message;
    struct assay_backend_claim claim;
    const struct plugin_path path = plugin_path("example");
    const struct assay_worker_plan plan = { path.text, "", { .seconds = 10 } };
    open_call(&call, "fp8_gemm_nt m=4 n=8 k=128 seed=1");
    ck_assert(assay_worker_open(&plan, &worker, &message) == ASSAY_RAN);
    for (int i = 0; i < 4; i++) {
        int child = 0;
        FILE *const children = fopen("/proc/thread-self/children", "r");
        ck_assert_int_eq(fscanf(children, "%d", &child), 1);
        fclose(children);
        if (i % 2 == 0) kill(child, SIGKILL);
        ck_assert(assay_worker_claim(worker, &call.call, &claim, &message) == ASSAY_RAN);
        if (i % 2 == 1) kill(child, SIGKILL);
        ck_assert_msg(assay_worker_run(worker, &call.call, &message) == ASSAY_RAN, "%s",
                      message.text);
    }
    assay_worker_close(worker);
    close_call(&call);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "worker") == 0)
        return assay_worker_serve(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "job") == 0) return assay_job_serve(run_told, NULL);
    const TTest *const tests[] = {
        results_come_in_order_whatever_the_number_of_jobs,
        a_job_that_dies_costs_its_case,
        a_job_that_somebody_kills_has_its_case_run_once_more,
        results_may_be_large,
        a_run_that_has_to_end_ends,
        jobs_share_the_threads_unless_the_user_has_shared_them,
        results_that_wait_are_limited,
        lines_come_whole_whatever_the_pieces,
        nothing_is_left_of_jobs,
        jobs_die_with_their_run,
        a_journal_takes_results_of_jobs_and_gives_them_back,
        a_worker_that_somebody_kills_does_its_case_once_more,
        NULL,
    };
    return run_tests("jobs", tests);
}
