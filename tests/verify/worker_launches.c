/* SPDX-License-Identifier: MIT */
/* What a run asks of a worker beside its answer: launches, their time, a fresh process;
 * and a process that stays. */
#include "tests/verify/worker_outcome.h"
#include "verify/data/clock.h"
#include "verify/worker/serve.h"

#include <signal.h>
#include <sys/wait.h>

/* Every tenth launch of the broken example is wrong. */
START_TEST(as_many_launches_as_asked_for_are_made_and_timed)
{
    struct plugin_call call;
    open_call(&call, "fp8_gemm_nt m=4 n=8 k=256 out=f32 data=positive seed=1");
    const struct assay_tensor *const d = assay_tensors_find(&call.tensors, "d");
    uint32_t first[4];
    for (int i = 0; i < 4; i++) {
        struct assay_worker *const worker =
            worker_for("example", "mode=one-in-ten", &ten_seconds);
        call.call.launches = (const int[]){ 0, 1, 9, 10 }[i];
        const struct outcome outcome = outcome_of(worker, &call);
        ck_assert_int_eq(outcome.status, ASSAY_RAN);
        ck_assert(outcome.notes.launch_seconds > 0);
        ck_assert(outcome.notes.launch_seconds < outcome.seconds);
        first[i] = assay_tensor_bits(d, 0);
        assay_worker_close(worker);
    }
    ck_assert_uint_eq(first[0], first[1]);
    ck_assert_uint_eq(first[0], first[2]);
    ck_assert_uint_ne(first[0], first[3]);
    close_call(&call);
}
END_TEST

START_TEST(a_fresh_process_comes_for_every_case_if_asked_for)
{
    static const struct assay_backend_limits fresh = { .seconds = 10, .is_fresh = true };
    struct plugin_call call;
    struct assay_backend_claim claim;
    struct assay_message message = { "" };
    open_call(&call, small_case);
    struct assay_worker *const worker = worker_for("example", "", &fresh);
    int last = 0;
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(assay_worker_claim(worker, &call.call, &claim, &message),
                         ASSAY_RAN);
        ck_assert_int_ne(child_of(getpid()), 0);
        ck_assert_int_ne(child_of(getpid()), last);
        last = child_of(getpid());
        ck_assert_int_eq(assay_worker_run(worker, &call.call, &message), ASSAY_RAN);
        ck_assert_int_eq(child_of(getpid()), 0);
    }
    assay_worker_close(worker);
    close_call(&call);
}
END_TEST

/* As if the driver held it: a process that we have no right to kill. Only root can make
 * one, so others cannot test this. */
START_TEST(a_process_that_cannot_be_killed_is_a_lost_device)
{
    static const struct assay_backend_limits short_time = { .seconds = 0.2 };
    struct plugin_call call;
    struct assay_message message = { "" };
    if (geteuid() != 0) return;
    open_call(&call, small_case);
    struct assay_worker *const worker = worker_for("example", "mode=hang", &short_time);
    const int lost = child_of(getpid());
    ck_assert_int_eq(setresuid(65534, 65534, 0), 0);
    const double start = assay_clock_seconds();
    const enum assay_status status = assay_worker_run(worker, &call.call, &message);
    const double seconds = assay_clock_seconds() - start;
    ck_assert_int_eq(setresuid(0, 0, 0), 0);
    ck_assert(is_alive(lost));
    ck_assert_int_eq(kill(-lost, SIGKILL), 0);
    ck_assert_int_eq(waitpid(lost, NULL, 0), lost);
    ck_assert_str_eq(assay_status_name(status), "device lost");
    ck_assert_msg(strstr(message.text, "gave no answer within 0.2 s"), "%s",
                  message.text);
    ck_assert_msg(strstr(message.text, "(launch), and its process cannot be killed"),
                  "%s", message.text);
    ck_assert(seconds > ASSAY_PROCESS_KILL_SECONDS &&
              seconds < ASSAY_PROCESS_KILL_SECONDS + 3);
    ck_assert_int_eq(outcome_of(worker, &call).status, ASSAY_HUNG);
    assay_worker_close(worker);
    close_call(&call);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "worker") == 0)
        return assay_worker_serve(argc - 1, argv + 1);
    const TTest *const tests[] = {
        as_many_launches_as_asked_for_are_made_and_timed,
        a_fresh_process_comes_for_every_case_if_asked_for,
        a_process_that_cannot_be_killed_is_a_lost_device,
        NULL,
    };
    return run_tests("worker_launches", tests);
}
