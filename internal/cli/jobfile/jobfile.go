// Package jobfile reads a command's job: from a file, or from the words after --.
package jobfile

import (
	"context"
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

// Flags holds the flags that commands with a job file share.
type Flags struct {
	Env    []string
	Market string
	Array  string // the indexes of an array; empty for one job
	Terms  Terms
	Text   []byte         // the job file's text, if another file contains it; nil to read the file
	Fields []spec.Setting // further fields to set
}

// Add adds the flags to a command.
func (f *Flags) Add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.Env, "env", nil, "set `NAME=VALUE` in the program's environment (may be repeated)")
	cmd.Flags().StringVar(&f.Market, "market", "", "market `file`, or calm or stormy, for a data folder that has none "+
		"yet (default calm)")
	_ = cmd.RegisterFlagCompletionFunc("market", command.CompleteMarket)
}

// Connect reads the job of a command for the market time of the server, which it starts where none runs, and notes what
// the user should know about the job. A job that cannot be read starts no server.
func Connect(ctx context.Context, a *command.App, args []string, dash int, f Flags) (c *command.Client, v api.Server,
	j spec.Job, folder string, err error) {
	if _, _, _, err = Load(spec.Run, args, dash, f, a.Now()); err != nil {
		return nil, v, j, "", err
	}
	if c, v, err = a.Connect(ctx, f.Market); err != nil {
		return nil, v, j, "", err
	}
	j, folder, notes, err := Load(spec.Run, args, dash, f, v.Market.Now)
	if err == nil {
		Note(a, notes)
	}
	return c, v, j, folder, err
}

// Load reads the job file for the given use, or makes a job from the command after --. A deadline without a zone is in
// the zone of this machine's user.
func Load(use spec.Use, args []string, dash int, f Flags, now time.Time) (j spec.Job, folder string,
	notes []spec.Note, err error) {
	now = now.In(time.Local)
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
	if steps, ok := j.Env["STEPS"]; ok && j.Work.Steps > 0 { // STEPS tells the program its work, so it wins
		if j.Work.Steps, err = strconv.ParseInt(steps, 10, 64); err != nil || j.Work.Steps <= 0 {
			return j, "", nil, fmt.Errorf("set STEPS in the environment: %q is not a number of steps", steps)
		}
	}
	return j, folder, notes, nil
}

// fromCommand makes a job from a command. It guesses fields from the command's script and lists them in the notes.
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
	j, err := plain.Set(use, now, settings...) // a wrong guess must not refuse the job
	return j, nil, err
}

// readJob reads a job file. Its work folder is the file's folder, unless the file names another.
func readJob(use spec.Use, file string, text []byte, now time.Time, settings []spec.Setting) (j spec.Job, folder string,
	notes []spec.Note, err error) {
	if text == nil {
		if text, err = ReadFile(file, spec.MaxText); err != nil {
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

// Note prints the notes about the file on stderr.
func Note(a *command.App, list []spec.Note) {
	for _, n := range list {
		a.Notef("note: `%s` %s\n", n.Field, n.Text)
	}
}

// Secrets reads the values of the names from the environment; no file contains them.
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

// Shell returns what a job inherits from this shell: the search paths of programs and Python, and the variables under
// inherit. A remote server inherits nothing.
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

// Key returns a random idempotency key.
func Key() string {
	b := make([]byte, 12)
	_, _ = rand.Read(b) // cannot fail
	return hex.EncodeToString(b)
}
