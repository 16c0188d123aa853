//go:build local

package cli

// flavour says what this build can reach.
const flavour = "built with the tag local: checkpoints go to folders only; make build adds S3"
