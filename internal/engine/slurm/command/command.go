// Package command is a Slurm client that runs sbatch, squeue, scancel, sinfo, scontrol and sacct.
package command

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"scrimp/internal/engine/slurm/scheduler"
)

// runner runs a Slurm command and returns its output.
type runner func(ctx context.Context, name string, args ...string) (string, error)

// runnerOf runs the commands of this machine in the environment of the machine and its user. sbatch passes the
// environment on to the nodes: no SBATCH_ variable of a shell changes the request, and no secret leaves.
func runnerOf(folder, conf string) runner {
	env := append(scheduler.Environ(), "SLURM_TIME_FORMAT=%s")
	if conf = cmp.Or(conf, os.Getenv("SLURM_CONF")); conf != "" {
		env = append(env, "SLURM_CONF="+conf)
	}
	return func(ctx context.Context, name string, args ...string) (string, error) {
		path := name
		if folder != "" {
			path = filepath.Join(folder, name)
		}
		ctx, cancel := context.WithTimeoutCause(ctx, scheduler.AnswerTime,
			fmt.Errorf("no answer within %v", scheduler.AnswerTime))
		defer cancel()
		var out, said bytes.Buffer
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = env, &out, &said, time.Second
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C at the server must not reach it
		err := cmd.Run()
		if err == nil {
			return out.String(), nil
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return out.String(), &scheduler.Error{Command: name, Text: oneLine(said.String()), Err: err}
	}
}

// oneLine returns a command's message without the common prefix.
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
