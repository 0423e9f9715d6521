/* SPDX-License-Identifier: MIT */
/* The worker's side: loads one plugin and runs cases on it until its supervisor is gone.
 *
 * Lines, a JSON object each. Supervisor to worker: {"do":"claim"} or {"do":"run"} with
 * "operation", "case" and "tensors", to run also "launches" and "bytes" and "input_bytes"
 * of the memfd that comes with it. Worker to supervisor: {"stage":NAME} before each
 * function of the plugin; {"status":NAME,"message":SENTENCE} at the end of a request and,
 * with "name" and "version", of loading; "numerics", "is_deterministic",
 * "is_batch_invariant" of a claim; "launch_seconds" of a run whose plugin took the time;
 * "mode_changed" when the plugin changed how its process computes. */
#ifndef ASSAY_VERIFY_WORKER_SERVE_H
#define ASSAY_VERIFY_WORKER_SERVE_H

/* Arguments: the plugin's file, its options, and the bytes it may take beyond its tensors
 * where address space can be limited (0: no limit). Returns the process's exit status: 2
 * when descriptor 3 is no supervisor's channel. */
int assay_worker_serve(int argc, char **argv);

#endif
