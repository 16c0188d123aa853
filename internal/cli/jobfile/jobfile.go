// Package jobfile reads the job that a command names: from a file, or the command after --.
package jobfile

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/job/scaffold"
	"scrimp/internal/job/spec"
	"scrimp/internal/wire/api"
)

// Flags are what commands that read a job file share.
type Flags struct {
	Env    []string
	Market string
	Array  string // the indexes of an array; "": one job
	Terms  Terms
	Text   []byte         // the job file, where another file has it; nil: the file is read
	Fields []spec.Setting // further fields that are set
}

// Add gives a command the flags.
func (f *Flags) Add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.Env, "env", nil, "set `NAME=VALUE` in the program's environment (may be repeated)")
	cmd.Flags().StringVar(&f.Market, "market", "", "market `file`, or calm or stormy, for a data folder that has none "+
		"yet (default calm)")
	_ = cmd.RegisterFlagCompletionFunc("market", command.CompleteMarket)
}

// Load reads the job file for what use says, or makes a job of the command after --.
func Load(use spec.Use, args []string, dash int, f Flags, now time.Time) (j spec.Job, folder string,
	notes []spec.Note, err error) {
	settings := append(f.Terms.settings(), f.Fields...)
	if dash >= 0 {
		folder = "."
		if j, notes, err = fromCommand(use, args, now, settings); err != nil {
			return j, "", nil, err
		}
	} else if j, folder, notes, err = readJob(use, args[0], f.Text, now, settings); err != nil {
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

// fromCommand makes a job of a command, with what its script lets guess, which the notes say.
func fromCommand(use spec.Use, args []string, now time.Time, settings []spec.Setting) (spec.Job, []spec.Note, error) {
	plain := spec.FromCommand(args)
	guessed, guesses := scaffold.Command(os.DirFS("."), plain)
	if j, err := guessed.Set(use, now, settings...); err == nil {
		var notes []spec.Note
		for _, g := range guesses {
			notes = append(notes, spec.Note{Field: g.Field, Text: fmt.Sprintf("is guessed: %s, since %s", g.Value, g.Why)})
		}
		return j, notes, nil
	}
	j, err := plain.Set(use, now, settings...) // what nobody wrote is no reason to refuse it
	return j, nil, err
}

// readJob reads a job file; its work folder is the file's own, or as it says.
func readJob(use spec.Use, file string, text []byte, now time.Time, settings []spec.Setting) (j spec.Job, folder string,
	notes []spec.Note, err error) {
	if text == nil {
		if text, err = os.ReadFile(file); err != nil {
			return j, "", nil, fmt.Errorf("read the job file: %w: scrimp init writes one", err)
		}
	}
	folder, err = filepath.Abs(filepath.Dir(file))
	if err != nil {
		return j, "", nil, err
	}
	if j, notes, err = spec.Parse(use, file, text, filepath.Base(folder), now, settings...); err != nil {
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

// Note says on stderr what to know of the file.
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

// Shell is what a job gets of this shell: where programs and Python are found, and what its file
// names under inherit. A server that is far from here gets none of it.
func Shell(j spec.Job, far bool) (map[string]string, error) {
	if far {
		if len(j.Inherit) > 0 {
			return nil, fmt.Errorf("`inherit` names %s of this shell, and a server that was logged in to gets nothing of it: "+
				"write values under env, or name them under secrets", strings.Join(j.Inherit, ", "))
		}
		return nil, nil
	}
	values := map[string]string{}
	for _, name := range api.Shell {
		if value, ok := os.LookupEnv(name); ok {
			values[name] = value
		}
	}
	for _, name := range j.Inherit {
		value, ok := os.LookupEnv(name)
		if !ok {
			return nil, fmt.Errorf("`inherit` names %s, which is not set in this shell: export it, or take it out of inherit",
				name)
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
