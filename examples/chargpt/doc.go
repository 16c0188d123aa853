// Chargpt trains a small character-level language model on the text of the Go standard library, which every Go
// installation contains. It knows nothing of scrimp except three defaults from the environment
// (SCRIMP_CHECKPOINT_DIR, SCRIMP_CHECKPOINT_INTERVAL_S, STEPS). It shows what a training program needs on machines
// that are interrupted: it saves at intervals and on SIGTERM, and resumes from its newest valid checkpoint.
//
// The weights after N steps are the same bytes with or without interruptions, on every processor: one goroutine
// computes, every sum has one order, and no product is fused with the sum that follows it (see rounding_test.go).
//
// Exit status: 0 all steps are done and the weights are written; 143 (128+SIGTERM) or 130 (SIGINT) saved and stopped
// before the end, run it again to continue; 1 an error; 2 a wrong flag.
package main
