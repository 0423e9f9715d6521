/* SPDX-License-Identifier: MIT */
#include "verify/worker/interrupt.h"

#include <signal.h>

enum { SIGNALS = 3 };
static const int number[SIGNALS] = { SIGINT, SIGTERM, SIGHUP };
static struct sigaction before[SIGNALS];
static volatile sig_atomic_t has_come[SIGNALS];

static void note(int which)
{
    for (int i = 0; i < SIGNALS; i++)
        if (number[i] == which) has_come[i] = 1;
}

static bool is_ours(int i)
{
    return !(before[i].sa_flags & SA_SIGINFO) && before[i].sa_handler != SIG_IGN;
}

void assay_interrupt_hold(void)
{
    struct sigaction action = { .sa_handler = note, .sa_flags = SA_RESTART };
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < SIGNALS; i++) {
        has_come[i] = 0;
        sigaction(number[i], NULL, &before[i]);
        if (is_ours(i)) sigaction(number[i], &action, NULL);
    }
}

bool assay_interrupt_has_come(void)
{
    return has_come[0] || has_come[1] || has_come[2];
}

void assay_interrupt_release(void)
{
    for (int i = 0; i < SIGNALS; i++)
        if (is_ours(i)) sigaction(number[i], &before[i], NULL);
    for (int i = 0; i < SIGNALS; i++)
        if (has_come[i]) raise(number[i]);
}
