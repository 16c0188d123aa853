package data

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/utilization"
	"scrimp/internal/lib/size"
	"scrimp/internal/market/catalog"
	files "scrimp/internal/work/storage"
)

func (a *app) duplicatesCmd() *cobra.Command {
	var jobs dataFlags
	var smallest, price string
	cmd := &cobra.Command{
		Use: "duplicates [PATH|BUCKET ...]", Short: "Find datasets and models that are stored more than once",
		Long: "Compares by content what jobs have kept (outputs and checkpoints), the inputs with a name that their " +
			"machines brought, and the files in folders and buckets that you name. It shows each content that lies in " +
			"several places, what the copies beyond the first cost a month, and the command that removes a checkpoint.\n\n" +
			"A price comes from --price, or for the standard classes of AWS, Google and Azure from the catalogue; without " +
			"one a copy is unpriced, not free. A copy in the cache of a machine costs nothing and is not listed. scrimp " +
			"removes nothing. It reads the newest 200 jobs." + command.PlainExit,
		Example: "  scrimp data duplicates\n  scrimp data duplicates --project captioning /data s3://models",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			list, err := a.jobsOf(ctx, c, jobs)
			if err != nil {
				return err
			}
			if len(list) == 0 && jobs.team+jobs.project != "" {
				return errors.New(strings.TrimSuffix(utilization.NoJobs(jobs.team, jobs.project, a.Place()), "\n"))
			}
			least, err := size.Parse(smallest)
			if err != nil || least <= 0 {
				return fmt.Errorf("--least %q is not a size: write one such as 1MiB", smallest)
			}
			var all contents
			for _, j := range list {
				if err := all.of(ctx, c, j, int64(least)); err != nil {
					if ctx.Err() != nil {
						return context.Cause(ctx)
					}
					all.unread = append(all.unread, j.ID+": "+err.Error())
				}
			}
			v, err := a.find(ctx, int64(least), price, args, all.list)
			if err != nil {
				return err
			}
			v.Jobs, v.Unread = len(list), all.unread
			return a.Show(v, v.Text(a.Place()))
		}),
	}
	jobs.declare(cmd)
	cmd.Flags().StringVar(&smallest, "least", "1MiB", "compare files and inputs of at least this `size`")
	cmd.Flags().StringVar(&price, "price", "", "YAML `file` of prices by storage class (default: the catalogue)")
	_ = cmd.MarkFlagFilename("price", "yaml", "yml")
	return cmd
}

// contents collects what the server knows about contents.
type contents struct {
	list   []known
	inputs map[string]bool // addresses, as the newest job read them
	unread []string
}

// of adds what a job has kept, and the inputs that its machines brought.
func (k *contents) of(ctx context.Context, c *command.Client, j api.Job, least int64) error {
	u, err := c.DataUse(ctx, j.ID)
	if err != nil {
		return err
	}
	for i := range u.Reads { // the newest last
		k.input(u.Reads[len(u.Reads)-1-i])
	}
	var kept api.Contents
	q := url.Values{"least": {fmt.Sprint(least)}}
	if err := c.Do(ctx, http.MethodGet, command.OfJob(j.ID, "/contents?"+q.Encode()), nil, &kept); err != nil {
		return err
	}
	newest := ""
	for _, f := range kept.Files {
		if f.Kind == "checkpoint" {
			newest = max(newest, f.Name)
		}
	}
	for _, f := range kept.Files {
		one := known{Name: j.ID + " (output of machine " + f.Name + ")", Path: f.Path, Store: storeOf(f.Store),
			Bytes: f.Bytes, Files: 1, Digest: f.Digest}
		if f.Kind == "checkpoint" {
			one.Name = j.ID + " (checkpoint " + f.Name + ")"
			if f.Name != newest && (j.Closed || j.State == "paused") {
				one.Remove = "scrimp checkpoints rm " + j.ID + "@" + f.Name
			}
		}
		k.list = append(k.list, one)
	}
	return nil
}

// input adds an input, unless a newer job read it.
func (k *contents) input(r api.DataRead) {
	if r.Digest == "" || r.Path == "" || k.inputs[r.Path] {
		return
	}
	if k.inputs == nil {
		k.inputs = map[string]bool{}
	}
	k.inputs[r.Path] = true
	k.list = append(k.list, known{Name: r.Path, Store: storeOf(r.Path), Bytes: r.Bytes, Files: r.Files,
		Digest: r.Digest})
}

// storeOf returns the store whose price counts for an address; "" is the server's own disk. Nobody knows the price of
// a store at an endpoint of its own.
func storeOf(address string) string {
	switch {
	case address == "", strings.HasPrefix(address, "file:"):
		return files.Local
	case strings.Contains(address, "endpoint="):
		return "unknown"
	}
	return catalog.Store(address)
}
