package slurm

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"scrimp/internal/lib/child"

	"scrimp/internal/engine"
)

// commandTime is how long one command may take: a controller that is dead lets them hang for ten seconds.
const commandTime = 8 * time.Second

// runner runs a command of Slurm and returns what it printed.
type runner func(ctx context.Context, name string, args ...string) (string, error)

// commandError is a command, or a request to slurmrestd, that did not do what it was to.
type commandError struct {
	command string
	text    string // what it said
	err     error  // nil: it said so itself
}

func (e *commandError) Error() string {
	_, exited := errors.AsType[*exec.ExitError](e.err)
	if e.err != nil && (e.text == "" || !exited) {
		return strings.TrimSuffix(fmt.Sprintf("%s: %v: %s", e.command, e.err, e.text), ": ")
	}
	return fmt.Sprintf("%s: %s", e.command, e.text)
}

func (e *commandError) Unwrap() error { return e.err }

// runnerOf runs the commands of this machine, in the environment of the machine and its user, for sbatch passes it
// on to the nodes: no SBATCH_ of a shell changes what is asked for, and no secret of it leaves.
func runnerOf(w *With) runner {
	env := append(environ(), "SLURM_TIME_FORMAT=%s")
	if conf := cmp.Or(w.Conf, os.Getenv("SLURM_CONF")); conf != "" {
		env = append(env, "SLURM_CONF="+conf)
	}
	return func(ctx context.Context, name string, args ...string) (string, error) {
		path := name
		if w.Commands != "" {
			path = filepath.Join(w.Commands, name)
		}
		ctx, cancel := context.WithTimeoutCause(ctx, commandTime, fmt.Errorf("no answer within %v", commandTime))
		defer cancel()
		var out, said bytes.Buffer
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = env, &out, &said, time.Second
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C at the server is not meant for it
		err := cmd.Run()
		if err == nil {
			return out.String(), nil
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return out.String(), &commandError{command: name, text: oneLine(said.String()), err: err}
	}
}

// environ is what of the server's environment belongs to the machine and its user.
func environ() []string {
	return append(child.Environ(func(name string) bool { return child.OfMachine(name) && name != "LC_ALL" }), "LC_ALL=C")
}

// oneLine is what a command said, without what all of them begin with.
func oneLine(s string) string {
	var lines []string
	for l := range strings.Lines(s) {
		for _, begin := range []string{"sbatch: ", "squeue: ", "scancel: ", "error: ", "Batch job " +
			"submission failed: "} {
			l = strings.TrimPrefix(l, begin)
		}
		if l = strings.TrimSpace(l); l != "" && !slices.Contains(lines, l) {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines, "; ")
}

// refusals are what sbatch says when it is a clear no, in the words of Slurm 20.11 to 24.
var refusals = []struct {
	said  string
	err   error
	scope string
	fix   string
}{
	{"Invalid partition", engine.ErrNotFound, "zone", "sinfo -s lists those that there are; correct " +
		"partitions in engines.yaml"},
	{"Invalid account", engine.ErrQuota, "account",
		"sacctmgr show assoc user=$USER format=account,partition,qos lists yours; set account in engines.yaml"},
	{"Invalid qos", engine.ErrQuota, "account", "sacctmgr show assoc user=$USER format=account,qos lists " +
		"yours; set qos in engines.yaml"},
	{"Invalid wckey", engine.ErrQuota, "account", "sacctmgr show wckeys user=$USER lists yours; set wckey " +
		"in engines.yaml"},
	{"accounting/QOS policy", engine.ErrQuota, "account", "a limit of your account or QOS is lower than " +
		"what is asked for: " +
		"sacctmgr show assoc user=$USER shows it"},
	{"group not permitted", engine.ErrQuota, "zone", "ask for access to the partition, or take it out of " +
		"engines.yaml"},
	{"Access/permission denied", engine.ErrQuota, "zone", "ask for access to the partition, or take it out " +
		"of engines.yaml"},
	{"Requested time limit is invalid", engine.ErrRequest, "zone", "set a shorter time for the partition in " +
		"engines.yaml"},
	{"Required partition not available", engine.ErrNoCapacity, "zone", "scontrol show partition says why"},
	{"Required node not available", engine.ErrNoCapacity, "offer", "sinfo -R says why"},
	{"configuration is not available", engine.ErrNoCapacity, "offer", "no node has what the machine is to " +
		"have: sinfo -N -o " +
		"'%N %c %m %G' shows them; correct the partition in engines.yaml"},
	{"Requested partition configuration not available", engine.ErrNoCapacity, "zone", "the partition does not let " +
		"a job have so many nodes, or such a time: scontrol show partition shows its limits"},
	{"Node count specification invalid", engine.ErrNoCapacity, "offer", "the partition has fewer nodes than " +
		"the job asks for"},
	{"Invalid feature", engine.ErrRequest, "zone", "sinfo -o '%P %f' lists features; correct constraint in " +
		"engines.yaml"},
	{"Invalid generic resource", engine.ErrRequest, "zone", "sinfo -o '%P %G' lists GRES; correct " +
		"accelerator in engines.yaml"},
	{"other parameter too long", engine.ErrRequest, "account", "Slurm takes 1024 bytes of a comment, which has the " +
		"job's name and the offer: give the job, its partition and the machine shorter names, or a shorter folder"},
	{"Unable to allocate resources", engine.ErrNoCapacity, "offer", ""},
	{"Requested reservation is invalid", engine.ErrRequest, "zone", "scontrol show reservation lists them; " +
		"correct options"},
	{"unrecognized option", engine.ErrRequest, "account", "this Slurm does not know it: take it out of " +
		"options in engines.yaml"},
	{"Invalid license", engine.ErrRequest, "zone", "scontrol show licenses lists them; correct options"},
	{"Failure during parsing", engine.ErrRequest, "account", "this slurmrestd does not know it: correct " +
		"engines.yaml, or set another version under rest"},
	{"Invalid --", engine.ErrRequest, "zone", "correct options in engines.yaml"},
}

// refusal is what a failed sbatch means: an error that is a clear no, or one that leaves open whether there is
// a job now.
func refusal(err error) error {
	c, ok := errors.AsType[*commandError](err)
	if !ok {
		return err
	}
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return &engine.RefusalError{Err: fmt.Errorf("%w: sbatch is not there: apt-get install slurm-client, "+
			"or set commands in "+
			"engines.yaml", engine.ErrRequest), Scope: "account"}
	}
	for _, r := range refusals {
		if strings.Contains(c.text, r.said) {
			text := c.text
			if r.fix != "" {
				text += ": " + r.fix
			}
			return &engine.RefusalError{Err: fmt.Errorf("%w: %s", r.err, text), Scope: r.scope}
		}
	}
	return err
}
