/* SPDX-License-Identifier: MIT */
/* Fuzzing target: the outputs.safetensors that a program left for a case. The first byte
 * of an input chooses the case. */
#include "fuzz/target/input.h"
#include "verify/data/buffers.h"
#include "verify/data/exchange.h"
#include "verify/operation/operation.h"

#include <fcntl.h>

static const char *const lines[] = {
    "fp8_gemm_nt m=2 n=8 k=128 d_stride=16 seed=1",
    "mla_dense_decode b=2 h_q=1 s_k=3,1 sms=3 seed=1",
};
enum { CASES = sizeof(lines) / sizeof(lines[0]) };

struct asked { /* a case in a folder of its own, for all inputs */
    struct assay_case the_case;
    _Alignas(max_align_t) unsigned char problem[ASSAY_MAX_PROBLEM_BYTES];
    struct assay_tensors tensors;
    struct assay_buffers buffers;
    struct assay_exchange exchange;
};
static struct asked asked[CASES];

static void put_away(void)
{
    for (int i = 0; i < CASES; i++) {
        assay_exchange_close(&asked[i].exchange);
        assay_buffers_close(&asked[i].buffers);
    }
}

static void ask(struct asked *one, const char *line)
{
    struct assay_message message = { "" };
    enum assay_status status = assay_case_parse(line, &one->the_case, &message);
    const struct assay_operation *const operation = one->the_case.operation;
    if (status == ASSAY_RAN)
        status = operation->bind(&one->the_case, one->problem, &message);
    assert(status == ASSAY_RAN);
    operation->shape(one->problem, &one->tensors);
    status = assay_buffers_open(&one->buffers, &one->tensors, &message);
    assert(status == ASSAY_RAN);
    operation->fill(one->problem, ASSAY_DATA_NORMAL, 1, &one->tensors);
    status =
        assay_exchange_open(&one->exchange, &one->the_case, &one->tensors, 1, &message);
    assert(status == ASSAY_RAN);
}

static void answer(const struct asked *one, const uint8_t *data, size_t size)
{
    char path[sizeof(one->exchange.folder) + 32];
    snprintf(path, sizeof(path), "%s/outputs.safetensors", one->exchange.folder);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const ssize_t written = write(fd, data, size);
    assert(written == (ssize_t)size);
    close(fd);
}

/* Only a plan that a kernel may be given replaces the one that was. */
static void fetch(struct asked *one)
{
    const struct assay_operation *const operation = one->the_case.operation;
    struct assay_message message = { "" };
    bool has_plan = false;
    const enum assay_status status = assay_exchange_fetch(
        &one->exchange, &one->the_case, one->problem, &one->tensors, &has_plan, &message);
    check_answer(status, &message);
    assert(assay_buffers_are_intact(&one->buffers, &one->tensors));
    if (operation->check_inputs)
        assert(operation->check_inputs(one->problem, &one->tensors, &message) ==
               ASSAY_RAN);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!asked[0].exchange.folder[0]) {
        atexit(put_away);
        for (int i = 0; i < CASES; i++)
            ask(&asked[i], lines[i]);
    }
    if (size == 0) return 0;
    struct asked *const one = &asked[data[0] % CASES];
    answer(one, data + 1, size - 1);
    fetch(one);
    return 0;
}
