/* SPDX-License-Identifier: MIT */
#include "verify/run/progress.h"

#include "verify/data/clock.h"
#include "verify/worker/process.h"

#include <inttypes.h>
#include <unistd.h>

enum { QUIET_SECONDS = 3, SECONDS_BETWEEN_LINES = 60 };
static const double seconds_between_renewals = 0.2;

struct assay_progress assay_progress_begin(FILE *stream, int64_t cases, int64_t skipped)
{
    const double began = assay_clock_seconds();
    return (struct assay_progress){ .stream = stream,
                                    .is_terminal = isatty(fileno(stream)),
                                    .cases = cases,
                                    .skipped = skipped,
                                    .done = skipped,
                                    .began = began,
                                    .said = began };
}

static void print_left(const struct assay_progress *progress, double elapsed)
{
    const int64_t ran = progress->done - progress->skipped;
    if (!progress->cases || ran <= 0) return;
    const double left =
        elapsed / (double)ran * (double)(progress->cases - progress->done);
    if (left < 90)
        fprintf(progress->stream, ", about %.0f s left", left);
    else if (left < 5400)
        fprintf(progress->stream, ", about %.0f min left", left / 60);
    else
        fprintf(progress->stream, ", about %.1f h left", left / 3600);
}

void assay_progress_tell(struct assay_progress *progress)
{
    const double time = assay_clock_seconds();
    const double pause =
        progress->is_terminal ? seconds_between_renewals : SECONDS_BETWEEN_LINES;
    if (time - progress->began < QUIET_SECONDS || time - progress->said < pause) return;
    progress->said = time;
    fprintf(progress->stream, "%s%" PRId64,
            progress->is_terminal ? "\r\033[K" : "assay: ", progress->done);
    if (progress->cases) fprintf(progress->stream, " of %" PRId64, progress->cases);
    fprintf(progress->stream, " cases done, %" PRId64 " failed", progress->failed);
    print_left(progress, time - progress->began);
    if (!progress->is_terminal) fputc('\n', progress->stream);
    fflush(progress->stream);
    progress->is_shown = progress->is_terminal;
}

void assay_progress_hide(struct assay_progress *progress)
{
    if (!progress->is_shown) return;
    fputs("\r\033[K", progress->stream);
    fflush(progress->stream);
    progress->is_shown = false;
}
