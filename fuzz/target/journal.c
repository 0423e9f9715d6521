/* SPDX-License-Identifier: MIT */
/* Fuzzing target: the journal of a run, as it stands and behind the header that the run
 * looks for; of a run of six cases, and of one without a known end. */
#include "fuzz/target/input.h"
#include "verify/run/journal_scan.h"

static const struct assay_journal_setting settings[] = { { "--require", "" },
                                                         { "--timeout", "60" },
                                                         { NULL, NULL } };
static const struct assay_journal_header bounded = {
    .command = "verify", .cases = 6, .selection = 0xfeed, .settings = settings
};
static const struct assay_journal_header endless = {
    .command = "verify", .cases = 0, .selection = 0xfeed, .settings = settings
};

/* Each result that the index names is a whole line of the journal. */
static void check_index(const struct assay_journal_scan *scan, int64_t cases,
                        const char *text, size_t size)
{
    int64_t begun = 0;
    assert(scan->bytes >= 0 && (size_t)scan->bytes <= size);
    for (int64_t i = 0; i < scan->index.count; i++) {
        const struct assay_journal_entry entry = assay_journal_find(&scan->index, i);
        begun += entry.is_begun;
        assert(!cases || i < cases || (!entry.bytes && !entry.runs && !entry.is_begun));
        if (!entry.bytes) continue;
        const int64_t end = entry.offset + entry.bytes;
        assert(entry.offset > 0 && end < scan->bytes && !entry.is_begun);
        assert(text[entry.offset - 1] == '\n' && text[end] == '\n');
    }
    assert(begun == scan->index.begun && begun == 0);
}

static void scan_text(const struct assay_journal_header *header, char *text, size_t size)
{
    struct assay_journal_scan scan;
    struct assay_message message = { "" };
    FILE *const stream = size ? fmemopen(text, size, "r") : NULL;
    if (!stream) return;
    const enum assay_status status =
        assay_journal_scan(stream, "journal.jsonl", header, &scan, &message);
    check_answer(status, &message);
    if (status == ASSAY_RAN) check_index(&scan, header->cases, text, size);
    assay_journal_index_free(&scan.index);
    fclose(stream);
}

static void scan_behind_header(const struct assay_journal_header *header,
                               const uint8_t *data, size_t size)
{
    char *const first = assay_journal_header_line(header);
    const size_t length = strlen(first) + 1;
    char *const text = malloc(length + size);
    assert(text);
    memcpy(text, first, length - 1);
    text[length - 1] = '\n';
    if (size) memcpy(text + length, data, size);
    scan_text(header, text, length + size);
    scan_text(header, text + length, size);
    free(text);
    free(first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scan_behind_header(&bounded, data, size);
    scan_behind_header(&endless, data, size);
    return 0;
}
