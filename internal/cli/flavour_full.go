//go:build !local

package cli

// flavour says what this build can reach.
const flavour = "full build: checkpoints go to folders and S3"
