/* SPDX-License-Identifier: MIT */
/* Plugins that crash, hang, grow and chatter, seen from the process that supervises
 * them. */
#include "verify/worker/worker.h"

#include "tests/verify/worker_outcome.h"
#include "verify/data/clock.h"
#include "verify/worker/serve.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Sanitizers reserve so much address space that it cannot be limited. */
#if defined(__SANITIZE_ADDRESS__)
  #define HAS_HUGE_SHADOW 1
#elif defined(__has_feature)
  #if __has_feature(address_sanitizer)
    #define HAS_HUGE_SHADOW 1
  #endif
#endif
#ifndef HAS_HUGE_SHADOW
  #define HAS_HUGE_SHADOW 0
#endif

START_TEST(two_hundred_crashes_leave_no_descriptor_and_no_process)
{
    struct plugin_call call;
    open_call(&call, small_case);
    struct assay_worker *const worker = worker_for("example", "mode=abort", &ten_seconds);
    struct outcome outcome = outcome_of(worker, &call);
    const int before = count_entries("/proc/self/fd");
    for (int i = 0; i < 200; i++) {
        outcome = outcome_of(worker, &call);
        check_outcome(&outcome, ASSAY_CRASHED, "example 1 was killed by signal 6 (SIGAB");
    }
    ck_assert_int_eq(count_entries("/proc/self/fd"), before);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
    assay_worker_close(worker);
    close_call(&call);
}
END_TEST

START_TEST(a_worker_that_is_closed_leaves_nothing)
{
    const int before = count_entries("/proc/self/fd");
    const struct outcome outcome = outcome_with("example", "", &ten_seconds);
    ck_assert_int_eq(outcome.status, ASSAY_RAN);
    ck_assert_int_eq(count_entries("/proc/self/fd"), before);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
}
END_TEST

START_TEST(a_crash_costs_one_case_only)
{
    struct plugin_call small, other;
    open_call(&small, small_case);
    open_call(&other, "fp8_gemm_nt m=5 n=8 k=128 seed=1");
    struct assay_worker *const worker =
        worker_for("example", "mode=exit,rows=5", &ten_seconds);
    for (int i = 0; i < 3; i++) {
        struct outcome outcome = outcome_of(worker, &small);
        ck_assert_int_eq(outcome.status, ASSAY_RAN);
        outcome = outcome_of(worker, &other);
        check_outcome(&outcome, ASSAY_CRASHED, "exited with status 0 (launch)");
    }
    assay_worker_close(worker);
    close_call(&small);
    close_call(&other);
}
END_TEST

START_TEST(outputs_come_back_and_inputs_stay)
{
    struct plugin_call call;
    open_call(&call, "fp8_gemm_nt m=4 n=8 k=128 out=f32 d_stride=12 data=exact seed=3");
    struct assay_worker *const worker = worker_for("example", "", &ten_seconds);
    const uint64_t hash = assay_inputs_hash(&call.tensors);
    const struct assay_tensor *const d = assay_tensors_find(&call.tensors, "d");
    ck_assert_int_eq(outcome_of(worker, &call).status, ASSAY_RAN);
    ck_assert_uint_eq(assay_inputs_hash(&call.tensors), hash);
    for (int64_t i = 0; i < 32; i++)
        ck_assert_uint_ne(assay_tensor_bits(d, i), 0xDBDBDBDB);
    for (int row = 0; row < 4; row++)
        for (int column = 8; column < 12; column++)
            ck_assert_uint_eq(((uint32_t *)d->data)[row * 12 + column], 0xDBDBDBDB);
    assay_worker_close(worker);
    close_call(&call);
}
END_TEST

START_TEST(inputs_cannot_be_written)
{
    const struct outcome outcome =
        outcome_with("example", "mode=write-input", &ten_seconds);
    check_outcome(&outcome, ASSAY_CRASHED, "(launch)");
}
END_TEST

START_TEST(a_write_behind_the_end_is_seen)
{
    const struct outcome outcome =
        outcome_with("example", "mode=past-the-end", &ten_seconds);
    check_outcome(&outcome, ASSAY_CRASHED, "example 1 wrote outside its tensors");
}
END_TEST

START_TEST(a_hang_ends_in_time_together_with_its_children)
{
    static const struct assay_backend_limits short_time = { .seconds = 0.5 };
    const struct outcome outcome = outcome_with("example", "mode=hang", &short_time);
    int child = 0;
    check_outcome(&outcome, ASSAY_HUNG, "gave no answer within 0.5 s");
    ck_assert(outcome.seconds >= 0.5 && outcome.seconds < 3);
    ck_assert_int_eq(sscanf(outcome.notes.output, "child %d", &child), 1);
    ck_assert(dies_within(child, 2));
}
END_TEST

START_TEST(nonsense_on_the_channel_gains_no_time)
{
    static const struct assay_backend_limits short_time = { .seconds = 0.5 };
    struct outcome outcome = outcome_with("example", "mode=flood-protocol", &short_time);
    check_outcome(&outcome, ASSAY_HUNG, "(flood)");
    ck_assert(outcome.seconds < 3);
    outcome = outcome_with("example", "mode=close-protocol", &short_time);
    check_outcome(&outcome, ASSAY_HUNG, "(launch)");
    ck_assert(outcome.seconds < 3);
    outcome = outcome_with("example", "mode=break-protocol", &ten_seconds);
    check_outcome(&outcome, ASSAY_CRASHED, "wrote to descriptor 3");
}
END_TEST

START_TEST(endless_output_is_cut_and_ends_in_time)
{
    static const struct assay_backend_limits short_time = { .seconds = 0.5 };
    const struct outcome outcome =
        outcome_with("example", "mode=endless-output", &short_time);
    check_outcome(&outcome, ASSAY_HUNG, "(launch)");
    ck_assert(outcome.seconds < 3);
    ck_assert_int_eq(outcome.notes.output_bytes, ASSAY_PROCESS_OUTPUT_BYTES);
    ck_assert_uint_eq(strlen(outcome.notes.output), 4096);
}
END_TEST

START_TEST(noise_is_kept_and_harmless)
{
    struct outcome outcome = outcome_with("example", "mode=noise", &ten_seconds);
    ck_assert_int_eq(outcome.status, ASSAY_RAN);
    ck_assert_str_eq(outcome.notes.output, "launching 1 x 1 blocks\n{\"status\":3}\n");
    ck_assert_int_eq(outcome.notes.output_bytes, 36);
    outcome = outcome_with("example", "", &ten_seconds);
    ck_assert_str_eq(outcome.notes.output, "");
}
END_TEST

START_TEST(output_belongs_to_its_case)
{
    struct plugin_call noisy, quiet;
    open_call(&noisy, small_case);
    open_call(&quiet, "fp8_gemm_nt m=5 n=8 k=128 seed=1");
    struct assay_worker *const worker =
        worker_for("example", "mode=noise,rows=4", &ten_seconds);
    ck_assert_int_eq(outcome_of(worker, &noisy).notes.output_bytes, 36);
    ck_assert_int_eq(outcome_of(worker, &quiet).notes.output_bytes, 0);
    ck_assert_int_eq(outcome_of(worker, &noisy).notes.output_bytes, 36);
    assay_worker_close(worker);
    close_call(&noisy);
    close_call(&quiet);
}
END_TEST

START_TEST(memory_is_limited_with_and_without_a_limit_on_address_space)
{
    static const struct assay_backend_limits little = { .seconds = 20,
                                                        .memory_bytes = 200 << 20 };
    struct outcome outcome = outcome_with("example", "mode=out-of-memory", &little);
    check_outcome(&outcome, ASSAY_OUT_OF_MEMORY,
                  HAS_HUGE_SHADOW ? "took more than 200 MiB of memory"
                                  : "example 1: no memory for a workspace");
    outcome = outcome_with("example_fast", "mode=out-of-memory", &little);
    check_outcome(&outcome, ASSAY_OUT_OF_MEMORY, "took more than 200 MiB of memory");
    ck_assert(outcome.seconds < 10);
    outcome = outcome_with("example", "", &little);
    ck_assert_int_eq(outcome.status, ASSAY_RAN);
}
END_TEST

/* Also while the memory of the second case, larger than the limit, is being mapped. */
START_TEST(tensors_do_not_count_as_the_plugin_s_memory)
{
    const struct assay_backend_limits little = {
        .seconds = 20, .memory_bytes = HAS_HUGE_SHADOW ? INT64_C(1) << 30 : 32 << 20
    };
    struct plugin_call small, large;
    open_call(&small, small_case);
    open_call(&large, "fp8_gemm_nt m=3000 n=8 k=16384 seed=1");
    struct assay_worker *const worker =
        worker_for("example", "mode=exit,rows=3000", &little);
    ck_assert_int_eq(outcome_of(worker, &small).status, ASSAY_RAN);
    const struct outcome outcome = outcome_of(worker, &large);
    check_outcome(&outcome, ASSAY_CRASHED, "exited with status 0 (launch)");
    assay_worker_close(worker);
    close_call(&small);
    close_call(&large);
}
END_TEST

START_TEST(a_process_is_kept_while_it_works_and_replaced_when_it_fails)
{
    struct plugin_call good, bad;
    open_call(&good, "fp8_gemm_nt m=5 n=8 k=128 seed=1");
    open_call(&bad, small_case);
    struct assay_worker *const worker =
        worker_for("example", "mode=fail,rows=4", &ten_seconds);
    const int first = child_of(getpid());
    ck_assert_int_ne(first, 0);
    ck_assert_int_eq(outcome_of(worker, &good).status, ASSAY_RAN);
    ck_assert_int_eq(child_of(getpid()), first);
    ck_assert_int_eq(outcome_of(worker, &bad).status, ASSAY_FAILED);
    ck_assert_int_eq(child_of(getpid()), 0);
    ck_assert_int_eq(outcome_of(worker, &good).status, ASSAY_RAN);
    ck_assert_int_ne(child_of(getpid()), first);
    assay_worker_close(worker);
    close_call(&good);
    close_call(&bad);
}
END_TEST

START_TEST(what_a_plugin_reports_is_passed_on)
{
    struct outcome outcome = outcome_with("example", "mode=fail", &ten_seconds);
    check_outcome(&outcome, ASSAY_FAILED, "example 1: the launch gave error 700");
    outcome = outcome_with("example", "mode=crash-in-claim", &ten_seconds);
    check_outcome(&outcome, ASSAY_CRASHED, "(claim)");
}
END_TEST

START_TEST(claims_and_refusals_of_a_case_are_passed_on)
{
    struct plugin_call gemm, other;
    struct assay_backend_claim claim;
    struct assay_message message = { "" };
    open_call(&gemm, small_case);
    open_call(&other, "fp8_gemm_nt m=4 n=8 k=128 recipe=tensor seed=1");
    struct assay_worker *worker =
        worker_for("example", "mode=false-claim,rows=4", &ten_seconds);
    ck_assert(assay_worker_claim(worker, &gemm.call, &claim, &message) == ASSAY_RAN);
    ck_assert(claim.has_numerics && claim.is_deterministic && claim.is_batch_invariant);
    ck_assert_str_eq(claim.numerics, "deepgemm-1d2d");
    ck_assert(assay_worker_claim(worker, &other.call, &claim, &message) ==
              ASSAY_UNSUPPORTED);
    ck_assert_str_eq(message.text,
                     "plugin example 1: the example takes recipe=1d2d only");
    assay_worker_close(worker);
    worker = worker_for("example", "", &ten_seconds);
    ck_assert(assay_worker_claim(worker, &gemm.call, &claim, &message) == ASSAY_RAN);
    ck_assert(!claim.has_numerics);
    assay_worker_close(worker);
    close_call(&gemm);
    close_call(&other);
}
END_TEST

START_TEST(a_changed_floating_point_mode_is_told)
{
    struct outcome outcome = outcome_with("example", "", &ten_seconds);
    ck_assert_str_eq(outcome.notes.warning, "");
    outcome = outcome_with("example_fast", "", &ten_seconds);
    ck_assert_int_eq(outcome.status, ASSAY_RAN);
#ifndef __clang__
    ck_assert_msg(strstr(outcome.notes.warning, "floating-point mode"), "%s",
                  outcome.notes.warning);
#endif
}
END_TEST

static void check_refusal(const char *path, const char *sentence)
{
    struct assay_worker *worker = NULL;
    struct assay_message message = { "" };
    const struct assay_worker_plan plan = { path, "", ten_seconds };
    const int before = count_entries("/proc/self/fd");
    ck_assert(assay_worker_open(&plan, &worker, &message) == ASSAY_REFUSED);
    ck_assert_msg(strstr(message.text, sentence), "%s", message.text);
    ck_assert_int_eq(count_entries("/proc/self/fd"), before);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
}

START_TEST(what_is_no_plugin_is_refused)
{
    check_refusal("/nowhere/at/all.so", "cannot be loaded as a plugin");
    check_refusal(plugin_path("example_old").text, "for version 0 of the interface, but");
    check_refusal("/proc/self/exe", "cannot be loaded as a plugin");
    check_refusal("libm.so.6", "does not export assay_plugin_v1");
}
END_TEST

/* A bare process that has loaded the honest example. */
static struct assay_process started(void)
{
    static struct plugin_path path;
    struct assay_message message = { "" };
    struct assay_process process;
    path = plugin_path("example");
    const char *const arguments[] = { path.text, "", "0", NULL };
    ck_assert_msg(assay_process_start(&process, arguments, &message) == ASSAY_RAN, "%s",
                  message.text);
    ck_assert_int_eq(assay_process_wait(&process, assay_clock_seconds() + 10, INT64_MAX),
                     ASSAY_PROCESS_SPOKE);
    return process;
}

START_TEST(a_worker_has_four_descriptors_and_a_group_of_its_own)
{
    char folder[64], link[64], target[256];
    const int ours = open("/dev/null", O_RDONLY);
    struct assay_process process = started();
    snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)process.pid);
    ck_assert_int_eq(count_entries(folder), 2 + 4);
    snprintf(link, sizeof(link), "/proc/%d/fd/0", (int)process.pid);
    const ssize_t length = readlink(link, target, sizeof(target));
    ck_assert(length == 9 && memcmp(target, "/dev/null", 9) == 0);
    ck_assert_int_eq(getpgid(process.pid), process.pid);
    ck_assert(assay_process_end(&process, NULL));
    close(ours);
}
END_TEST

START_TEST(a_stranger_s_kill_is_not_ours)
{
    char text[100];
    struct assay_text ending = assay_text_open(text, sizeof(text));
    struct assay_process process = started();
    process.is_channel_closed = true;
    kill(process.pid, SIGKILL);
    ck_assert_int_eq(assay_process_wait(&process, assay_clock_seconds() + 10, INT64_MAX),
                     ASSAY_PROCESS_EXITED);
    ck_assert(assay_process_end(&process, &ending));
    ck_assert_str_eq(text, "was killed by signal 9 (SIGKILL)");
}
END_TEST

/* The first child of a process, once it has one. */
static int awaited_child_of(int pid)
{
    int child = 0;
    for (int i = 0; i < 5000 && child == 0; i++) {
        child = child_of(pid);
        usleep(1000);
    }
    ck_assert_int_ne(child, 0);
    return child;
}

/* The worker is in the middle of a case when its supervisor is killed: it has a child of
 * its own by then. */
START_TEST(a_busy_worker_dies_with_its_supervisor)
{
    const pid_t supervisor = fork();
    if (supervisor == 0) {
        outcome_with("example", "mode=hang", &ten_seconds);
        _exit(1);
    }
    const int worker = awaited_child_of(supervisor);
    const int child = awaited_child_of(worker);
    kill(supervisor, SIGKILL);
    ck_assert_int_eq(waitpid(supervisor, NULL, 0), supervisor);
    ck_assert(dies_within(worker, 3));
    kill(child, SIGKILL);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "worker") == 0)
        return assay_worker_serve(argc - 1, argv + 1);
    const TTest *const tests[] = {
        two_hundred_crashes_leave_no_descriptor_and_no_process,
        a_worker_that_is_closed_leaves_nothing,
        a_crash_costs_one_case_only,
        outputs_come_back_and_inputs_stay,
        inputs_cannot_be_written,
        a_write_behind_the_end_is_seen,
        a_hang_ends_in_time_together_with_its_children,
        nonsense_on_the_channel_gains_no_time,
        endless_output_is_cut_and_ends_in_time,
        noise_is_kept_and_harmless,
        output_belongs_to_its_case,
        memory_is_limited_with_and_without_a_limit_on_address_space,
        tensors_do_not_count_as_the_plugin_s_memory,
        a_process_is_kept_while_it_works_and_replaced_when_it_fails,
        what_a_plugin_reports_is_passed_on,
        claims_and_refusals_of_a_case_are_passed_on,
        a_changed_floating_point_mode_is_told,
        what_is_no_plugin_is_refused,
        a_worker_has_four_descriptors_and_a_group_of_its_own,
        a_stranger_s_kill_is_not_ours,
        a_busy_worker_dies_with_its_supervisor,
        NULL,
    };
    return run_tests("worker", tests);
}
