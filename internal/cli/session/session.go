// Package session holds the commands for interactive sessions: a shell or a notebook on a rented machine.
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/jobfile"
	"scrimp/internal/cli/submit"
	"scrimp/internal/job/spec"
)

// Kinds of sessions.
const (
	shell    = "shell"
	notebook = "notebook"
)

// Commands returns the commands of this package.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	return []*cobra.Command{a.shellCmd(), a.notebookCmd(), a.forwardCmd(), a.sshConfigCmd(), a.sessionsCmd()}
}

// isSession reports whether the job is a session.
func isSession(j api.Job) bool { return j.Session != "" }

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

// flags say what a new session is, and how to enter one.
type flags struct {
	jobfile.Flags
	name, gpu, cpus, memory, image, setup, on, budget, idle, team, folder string
	resume                                                                string
	yes, detach                                                           bool
	given                                                                 func(flag string) bool
}

// ofNew lists the flags that say what a new session is.
var ofNew = []string{"name", "gpu", "cpus", "memory", "image", "setup", "on", "team", "workdir"}

func (a *app) addFlags(f *flags, cmd *cobra.Command) {
	f.Add(cmd)
	f.given = func(flag string) bool { return cmd.Flags().Changed(flag) }
	v := cmd.Flags()
	v.StringVar(&f.resume, "resume", "", "go on with the session of this `name`, with its files (default: begin a "+
		"new one)")
	v.StringVar(&f.name, "name", "", "call the session by this `name` (default: "+cmd.Name()+")")
	v.StringVar(&f.gpu, "gpu", "", "`kind` and count of accelerators, as T4, A100:2 or any:1 (default: none)")
	v.StringVar(&f.cpus, "cpus", "", "`count` of processors, as 4+ (default: 1+)")
	v.StringVar(&f.memory, "memory", "", "`size` of memory, as 16GiB+ (default: any)")
	v.StringVar(&f.image, "image", "", "run in this container image, where machines are containers: a `reference` as "+
		"docker pull takes it (default: the engine's own)")
	v.StringVar(&f.setup, "setup", "", "shell `commands` that run on each machine before the session (default: none)")
	v.StringVar(&f.on, "on", "", "the `engine`, or engine/zone, that it runs on (default: the cheapest of all)")
	v.StringVar(&f.budget, "budget", "5", "the `amount` that the session may cost in all, or none")
	v.StringVar(&f.idle, "idle", "20m", "save and end it after this `span` without use; --resume can change it")
	v.StringVar(&f.team, "team", "", "the `team` that pays (default: none)")
	v.StringVar(&f.folder, "workdir", ".", "copy this `folder` to the machine, or none")
	v.BoolVarP(&f.yes, "yes", "y", false, "do not ask before money is spent (default: ask at a terminal)")
	v.BoolVarP(&f.detach, "detach", "d", false, "start it and return (default: enter it)")
	for _, name := range []string{"name", "cpus", "memory", "image", "setup", "budget", "idle", "team"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	_ = cmd.RegisterFlagCompletionFunc("resume", a.CompleteJobs(isSession))
	_ = cmd.RegisterFlagCompletionFunc("gpu", command.CompleteAccelerator)
}

// job returns the job of a new session.
func (f *flags) job(kind string, now time.Time) (spec.Job, error) {
	j := spec.Job{Name: cmp.Or(f.name, kind), Kind: "interactive", Session: kind,
		Checkpoint: spec.Checkpoint{Dir: ".", Keep: keepVersions}, Setup: f.setup, Team: f.team}
	if f.on != "" {
		j.AnyOf = []spec.Variant{{Engine: f.on}}
	}
	var settings []spec.Setting
	for _, s := range []spec.Setting{{Flag: "--name", Field: "name", Text: f.name},
		{Flag: "--gpu", Field: "resources.accelerator", Text: f.gpu},
		{Flag: "--cpus", Field: "resources.cpus", Text: f.cpus},
		{Flag: "--memory", Field: "resources.memory", Text: f.memory},
		{Flag: "--image", Field: "image", Text: f.image}, {Flag: "--budget", Field: "budget.dollars", Text: f.budget},
		{Flag: "--idle", Field: "idle", Text: f.idle}} {
		if s.Text != "" {
			settings = append(settings, s)
		}
	}
	j, err := j.Set(spec.Run, now, settings...)
	if err != nil {
		return j, err
	}
	if j.Idle == 0 {
		return j, errors.New("--idle 0s: give a span above zero, such as 20m: a forgotten session would spend its budget")
	}
	return j.WithEnv(f.Env)
}

// keepVersions is how many versions of a session's files are kept.
const keepVersions = 2

// source returns the folder to copy; empty for none. It refuses folders that nobody means to copy.
func (f *flags) source() (string, error) {
	if f.folder == "none" {
		return "", nil
	}
	folder, err := filepath.Abs(f.folder)
	if err != nil {
		return "", err
	}
	home, _ := os.UserHomeDir() // without one there is nothing to compare
	if folder == "/" || home != "" && folder == filepath.Clean(home) {
		return "", fmt.Errorf("the session would copy all of %s: change to a project's folder, name one with --workdir, or "+
			"begin with an empty one with --workdir none", folder)
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return "", fmt.Errorf("--workdir %s is not a folder: name one, or none", f.folder)
	}
	return folder, nil
}

// begin returns the session that a command is about: the named one, a resumed one, or a new one.
func (a *app) begin(ctx context.Context, f *flags, kind string, args []string) (*command.Client, api.Job, error) {
	var j api.Job
	if len(args) > 0 || f.resume != "" {
		if len(args) > 0 && f.resume != "" {
			return nil, j, errors.New("--resume names the session already: leave the other name out")
		}
		c, err := a.Ensure(ctx, f.Market)
		if err != nil {
			return nil, j, err
		}
		j, err = a.existing(ctx, c, f, kind, args)
		return c, j, err
	}
	file, err := f.job(kind, a.Now())
	if err != nil {
		return nil, j, err
	}
	folder, err := f.source()
	if err != nil {
		return nil, j, err
	}
	c, err := a.Ensure(ctx, f.Market)
	if err != nil {
		return nil, j, err
	}
	if err := a.mayWork(ctx, c, f, kind); err != nil {
		return nil, j, err
	}
	if err := a.agreed(ctx, f); err != nil {
		return nil, j, err
	}
	j, err = submit.Job(ctx, a.App, c, api.Submission{AcceptUnproven: true}, file, folder)
	return c, j, command.InFlags(err, map[string]string{"resources.accelerator": "--gpu", "image": "--image"})
}

// agreed asks at a terminal before money is spent.
func (a *app) agreed(ctx context.Context, f *flags) error {
	most := "without a limit of its own"
	if f.budget != "none" {
		most = "for at most $" + trimDollar(f.budget)
	}
	question := fmt.Sprintf("It takes the cheapest machine that fits, %s, and ends after %s without use. Begin? [Y/n] ",
		most, f.idle)
	if _, asks := command.Terminal(a.Err); asks && !f.yes && !a.JSON && !a.Confirmed(ctx, question, true) {
		return errors.New("not begun")
	}
	return nil
}

func trimDollar(s string) string {
	if s != "" && s[0] == '$' {
		return s[1:]
	}
	return s
}

// existing returns a session that was begun before. One that has ended is resumed only if the user asks for it.
func (a *app) existing(ctx context.Context, c *command.Client, f *flags, kind string, args []string) (api.Job, error) {
	id := cmp.Or(f.resume, append(args, "")[0])
	for _, flag := range ofNew {
		if f.given(flag) {
			return api.Job{}, fmt.Errorf("--%s is for a new session, and %s keeps what it was begun with: leave it out, or "+
				"leave out the name to begin another session", flag, id)
		}
	}
	j, err := c.Job(ctx, id)
	if err != nil {
		return j, err
	}
	runs := j.Finished == nil && j.State != "paused"
	switch {
	case j.Session == "" && kind == shell:
		return j, fmt.Errorf("%s is not a session: scrimp exec -it %s -- sh is a shell beside its program", id, id)
	case j.Session != kind:
		return j, fmt.Errorf("%s is not a %s: scrimp sessions lists them", id, kind)
	case f.resume == "" && !runs:
		return j, fmt.Errorf("%s is %s: scrimp %s --resume %s goes on with its files", id, j.State, kind, id)
	case runs && slices.ContainsFunc([]string{"budget", "env", "idle"}, f.given):
		return j, fmt.Errorf("%s is %s, and keeps its terms: scrimp update %s --budget changes its budget", id, j.State, id)
	case runs:
		return j, nil
	}
	b := api.Resume{Env: f.Env}
	if f.given("budget") {
		b.Budget = &f.budget
	}
	if f.given("idle") {
		b.Idle = &f.idle
	}
	return submit.Resume(ctx, c, id, b)
}
