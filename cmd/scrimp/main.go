// Command scrimp plans, runs, watches and accounts for ML training.
package main

import (
	"os"

	"scrimp/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
