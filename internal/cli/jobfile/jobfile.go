// Package jobfile reads the job that a command names: from a file, or the command after --.
package jobfile

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/spec"
)

// Flags are what commands that read a job file share.
type Flags struct {
	Env    []string
	Market string
}

// Add gives a command the flags.
func (f *Flags) Add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.Env, "env", nil, "set `NAME=VALUE` in the program's environment (may be repeated)")
	cmd.Flags().StringVar(&f.Market, "market", "", "market `file`, or calm or stormy, for a data folder that has none "+
		"yet (default calm)")
	_ = cmd.RegisterFlagCompletionFunc("market", command.CompleteMarket)
}

// Load reads the job file, or makes a job of the command after --.
func Load(args []string, dash int, f Flags, now time.Time) (j spec.Job, folder string, notes []spec.Note,
	err error) {
	if dash >= 0 {
		j, folder = spec.FromCommand(filepath.Base(args[0]), args), "."
	} else if j, folder, notes, err = readJob(args[0], now); err != nil {
		return j, "", nil, err
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return j, "", nil, err
	}
	if j, err = j.WithEnv(f.Env); err != nil {
		return j, "", nil, err
	}
	if steps, ok := j.Env["STEPS"]; ok && j.Work.Steps > 0 { // the work is what the program is told
		if j.Work.Steps, err = strconv.ParseInt(steps, 10, 64); err != nil || j.Work.Steps <= 0 {
			return j, "", nil, fmt.Errorf("set STEPS in the environment: %q is not a number of steps", steps)
		}
	}
	return j, folder, notes, nil
}

// readJob reads a job file; its work folder is the file's own, or as it says.
func readJob(file string, now time.Time) (j spec.Job, folder string, notes []spec.Note, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return j, "", nil, fmt.Errorf("read the job file: %w: scrimp init writes one", err)
	}
	folder, err = filepath.Abs(filepath.Dir(file))
	if err != nil {
		return j, "", nil, err
	}
	if j, notes, err = spec.Parse(file, text, filepath.Base(folder), now); err != nil {
		if ext := filepath.Ext(file); ext != ".yaml" && ext != ".yml" && ext != ".json" {
			err = fmt.Errorf("%w: where %s is a program and no job file: scrimp run -- COMMAND %s", err, file, file)
		}
		return j, "", nil, err
	}
	switch {
	case j.Workdir == "":
		return j, folder, notes, nil
	case filepath.IsAbs(j.Workdir):
		return j, j.Workdir, notes, nil
	}
	return j, filepath.Join(folder, j.Workdir), notes, nil
}

// Note says on the error stream which fields of the file are not used.
func Note(a *command.App, list []spec.Note) {
	for _, n := range list {
		a.Notef("note: `%s` %s\n", n.Field, n.Text)
	}
}

// Secrets takes the values of the names from the environment: they stand in no file.
func Secrets(names []string) (map[string]string, error) {
	values := map[string]string{}
	for _, name := range names {
		value, ok := os.LookupEnv(name)
		if !ok {
			return nil, fmt.Errorf("secret %s is not in the environment: export it first", name)
		}
		values[name] = value
	}
	return values, nil
}

// Key is one that no other submission has.
func Key() string {
	b := make([]byte, 12)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}
