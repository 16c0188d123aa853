package scheduler

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/lib/child"
)

// AnswerTime bounds a command: with a dead controller, commands hang for ten seconds.
const AnswerTime = 8 * time.Second

// Error is a failed command, or a failed request to slurmrestd.
type Error struct {
	Command string
	Text    string // its message
	Err     error  // nil: Text describes the error
}

func (e *Error) Error() string {
	_, exited := errors.AsType[*exec.ExitError](e.Err)
	if e.Err != nil && (e.Text == "" || !exited) {
		return strings.TrimSuffix(fmt.Sprintf("%s: %v: %s", e.Command, e.Err, e.Text), ": ")
	}
	return fmt.Sprintf("%s: %s", e.Command, e.Text)
}

func (e *Error) Unwrap() error { return e.Err }

// Environ returns the part of the server's environment that belongs to the machine and its user.
func Environ() []string {
	return append(child.Environ(func(name string) bool { return child.OfMachine(name) && name != "LC_ALL" }), "LC_ALL=C")
}

// refusals are sbatch's messages that are definite refusals, in Slurm 20.11 to 24.
var refusals = []struct {
	said  string
	err   error
	scope string
	fix   string
}{
	{"Invalid partition", engine.ErrNotFound, "zone", "sinfo -s lists the partitions; correct " +
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
	{"configuration is not available", engine.ErrNoCapacity, "offer", "no node has what the machine should " +
		"have: sinfo -N -o " +
		"'%N %c %m %G' shows them; correct the partition in engines.yaml"},
	{"Requested partition configuration not available", engine.ErrNoCapacity, "zone", "the partition does not allow " +
		"a job that many nodes, or that time: scontrol show partition shows its limits"},
	{"Node count specification invalid", engine.ErrNoCapacity, "offer", "the partition has fewer nodes than " +
		"the job asks for"},
	{"Invalid feature", engine.ErrRequest, "zone", "sinfo -o '%P %f' lists features; correct constraint in " +
		"engines.yaml"},
	{"Invalid generic resource", engine.ErrRequest, "zone", "sinfo -o '%P %G' lists GRES; correct " +
		"accelerator in engines.yaml"},
	{"other parameter too long", engine.ErrRequest, "account", "Slurm accepts comments of 1024 bytes, and this one has " +
		"the " +
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

// Refusal returns the meaning of a failed sbatch: a definite refusal, or an error that leaves open whether the job
// exists.
func Refusal(err error) error {
	c, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return &engine.RefusalError{Err: fmt.Errorf("%w: sbatch is not installed: apt-get install slurm-client, "+
			"or set commands in "+
			"engines.yaml", engine.ErrRequest), Scope: "account"}
	}
	for _, r := range refusals {
		if strings.Contains(c.Text, r.said) {
			text := c.Text
			if r.fix != "" {
				text += ": " + r.fix
			}
			return &engine.RefusalError{Err: fmt.Errorf("%w: %s", r.err, text), Scope: r.scope}
		}
	}
	return err
}

// IsUnknown reports whether Slurm says that it no longer has the job.
func IsUnknown(err error) bool {
	c, ok := errors.AsType[*Error](err)
	return ok && (strings.Contains(c.Text, "Invalid job id") || strings.Contains(c.Text, "already "+
		"completing or completed"))
}
