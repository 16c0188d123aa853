// Chargpt trains a small character-level language model on the text of the Go
// standard library that every Go installation carries. It knows nothing of
// scrimp except three defaults that it takes from the environment
// (SCRIMP_CHECKPOINT_DIR, SCRIMP_CHECKPOINT_INTERVAL_S, STEPS), and shows what
// any training program needs to live on machines that are interrupted: it saves
// now and then, saves once more on SIGTERM, and resumes from its newest valid
// checkpoint.
//
// The weights after N steps are the same bytes whether the run was interrupted
// or not, and on every processor: one goroutine computes, every sum has one
// order, and no product is fused with the sum that follows it (see rounding_test.go).
//
// Exit status: 0 all steps done and the weights written; 143 (128+SIGTERM) or
// 130 (SIGINT) saved and stopped before the end, run it again to go on; 1 an
// error; 2 a wrong flag.
package main
