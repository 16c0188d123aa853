// Package files holds the commands that list, copy and remove the outputs and checkpoints of jobs.
package files

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/artifacts"
	"scrimp/internal/server/workdir/pack"
)

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

// Commands returns the commands of this package.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	return []*cobra.Command{a.getCmd(), a.checkpointsCmd()}
}

// getFlags say what to copy, and where to.
type getFlags struct {
	to, node   string
	checkpoint bool
}

func (a *app) getCmd() *cobra.Command {
	var f getFlags
	cmd := &cobra.Command{Use: "get JOB[@CHECKPOINT] ...", Short: "Copy the outputs or a checkpoint of jobs here",
		Args:    command.Takes("JOB[@CHECKPOINT]", "[JOB ...]"),
		GroupID: command.GroupLook, ValidArgsFunction: a.CompleteJobs(command.Every),
		Long: "Copies the folders listed under outputs in the job file to this machine, checks each file against " +
			"its hash, and lists what else the job has kept. Outputs outlive their machine, even when the job " +
			"failed. For a job on several machines it copies the outputs of node 0 unless --node names another; " +
			"--node all makes a folder node-N for each. With --checkpoint, or JOB@CHECKPOINT, it copies a " +
			"checkpoint instead. You may run it again: it replaces files that it copied before and leaves others " +
			"alone. scrimp run does not send a folder that get named itself; it does send one that you named with " +
			"--to. With several jobs, get reports each failure and goes on with the next; --to then holds a " +
			"folder for each job." +
			command.PlainExit,
		Example: "  scrimp get train-lm\n  scrimp get train-lm --checkpoint -o last\n  scrimp get train-lm --node all\n" +
			"  scrimp get -o results sweep-1 sweep-2 sweep-3",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			return a.Each(ctx, args, func(arg string) error {
				own := f
				if len(args) > 1 && f.to != "" {
					own.to = filepath.Join(f.to, strings.ReplaceAll(arg, "@", "-"))
				}
				return a.get(ctx, c, arg, own)
			})
		})}
	cmd.Flags().StringVarP(&f.to, "to", "o", "", "`folder` to copy to (default JOB-outputs, with -N for another node "+
		"than 0 and -all for all; of a checkpoint JOB-checkpoint)")
	cmd.Flags().StringVar(&f.node, "node", "", "of which machine of a gang, from 0, or all (default 0)")
	cmd.Flags().BoolVar(&f.checkpoint, "checkpoint", false, "copy the newest checkpoint (default: the outputs)")
	return cmd
}

// get copies what an argument names.
func (a *app) get(ctx context.Context, c *command.Client, arg string, f getFlags) error {
	job, name := cutCheckpoint(arg)
	if !f.checkpoint && job == arg {
		return a.getOutputs(ctx, c, job, f)
	}
	if f.node != "" {
		return errors.New("a checkpoint is of all machines: leave --node out")
	}
	return a.getCheckpoint(ctx, c, job, name, f.to)
}

// everyNode selects the outputs of all machines.
const everyNode = "all"

// getOutputs copies the outputs of one machine of a job, or of all.
func (a *app) getOutputs(ctx context.Context, c *command.Client, job string, f getFlags) error {
	j, err := c.Job(ctx, job)
	if err != nil {
		return err
	}
	k := artifacts.Kept{Job: j.ID}
	if err := c.Do(ctx, http.MethodGet, command.OfJob(j.ID, "/kept"), nil, &k.Outputs); err != nil {
		return err
	}
	if err := c.Do(ctx, http.MethodGet, command.OfJob(j.ID, "/checkpoints"), nil, &k.Checkpoints); err != nil {
		a.Notef("note: its checkpoints were not listed: %v\n", err) // they may be in another store
	}
	wanted, err := k.Of(f.node)
	if err != nil {
		return err
	}
	to := f.folder(j.ID)
	ours := f.to == "" && !there(to)
	for _, o := range wanted {
		dir := to
		if f.node == everyNode {
			dir = filepath.Join(to, "node-"+strconv.Itoa(o.Node))
		}
		err := command.FillFolder(dir, func(dir string) error { return c.FetchOutputs(ctx, j.ID, o.Node, dir) })
		if err != nil {
			return fmt.Errorf("copy outputs to %s: %w", dir, err)
		}
		k.Copied = append(k.Copied, artifacts.Copied{Outputs: o, Folder: dir})
	}
	if err := mark(to, ours && len(k.Copied) > 0); err != nil {
		return err
	}
	if !a.JSON {
		a.Printf("%s", k.Text(a.Place()))
		return nil
	}
	for _, line := range k.Copied {
		if err := a.Print(k.Line(line)); err != nil {
			return err
		}
	}
	return nil
}

// folder is where the outputs of a job go.
func (f getFlags) folder(job string) string {
	switch {
	case f.to != "":
		return f.to
	case f.node != "" && f.node != "0":
		return job + "-outputs-" + f.node
	}
	return job + "-outputs"
}

// getCheckpoint copies a checkpoint of a job.
func (a *app) getCheckpoint(ctx context.Context, c *command.Client, job, name, to string) error {
	ours := false
	if to == "" {
		to = job + "-checkpoint"
		ours = !there(to)
	}
	var list []api.Checkpoint
	if err := c.Do(ctx, http.MethodGet, command.OfJob(job, "/checkpoints"), nil, &list); err != nil {
		return err
	}
	if name == newest { // use its name, because a newer one may be published meanwhile
		if n := slices.IndexFunc(list, func(l api.Checkpoint) bool { return l.Newest }); n >= 0 {
			name = list[n].Name
		}
	}
	err := command.FillFolder(to, func(dir string) error { return c.FetchCheckpoint(ctx, job, name, dir) })
	if err != nil {
		return fmt.Errorf("copy the checkpoint to %s: %w", to, err)
	}
	if err := mark(to, ours); err != nil {
		return err
	}
	got := artifacts.GotCheckpoint{Job: job, Checkpoint: name, Folder: to}
	for _, l := range list {
		if l.Name == name {
			got.Step, got.Files, got.Bytes = l.Step, l.Files, l.Bytes
		}
	}
	return a.Show(got, got.Text(a.Place()))
}

// there reports whether a file with the name exists.
func there(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// mark excludes a folder that get has created and named itself from the work folders of later runs.
func mark(folder string, ours bool) error {
	if !ours {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { // a checkpoint without files leaves none
		return err
	}
	return os.WriteFile(filepath.Join(folder, pack.FetchedName), []byte(pack.Fetched), 0o644)
}
