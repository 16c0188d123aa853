package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
)

// logFlags say what output to print, and how.
type logFlags struct {
	follow, timestamps bool
	node, since        string
	tail               int
}

func (a *app) logsCmd() *cobra.Command {
	var f logFlags
	cmd := &cobra.Command{Use: "logs JOB", Short: "Print a job's output over all its attempts", Args: command.Takes("JOB"),
		GroupID: command.GroupLook, ValidArgsFunction: a.CompleteJob(command.Every),
		Long: "Prints what the job's program wrote to its output and error streams, over all attempts, also after the " +
			"machine is gone. A line between two attempts says how the one ended, and where and from which step the next one " +
			"runs. Of a job on several machines that is the output of node 0, or of the --node that is given; with --node all " +
			"each line has the number of its machine before it, as [2], and --tail counts the lines of each.\n\nTimes are " +
			"those at which the server had the output, to a second, in UTC; output from before a restore of the server has " +
			"none any more. With --json each line is an object: {\"job\", \"node\", \"line\", \"attempt\", \"at\"}, node left " +
			"out for 0, and there is none for the line between attempts. Ctrl-C ends a --follow; the job goes on." +
			command.PlainExit,
		Example: "  scrimp logs train-lm\n  scrimp logs -f --tail 20 train-lm\n" +
			"  scrimp logs --since 10m --timestamps --node all train-lm",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			q, err := f.query(a.Now(), a.JSON)
			if err != nil {
				return err
			}
			r, err := c.Request(ctx, http.MethodGet, api.Path(command.OfJob(args[0], "/log"), q))
			if err != nil {
				return err
			}
			defer func() { _ = r.Body.Close() }()
			if a.JSON {
				err = a.lines(args[0], r.Body)
			} else {
				_, err = io.Copy(a.Out, r.Body)
			}
			if ctx.Err() != nil { // the reader has seen enough
				return nil
			}
			return err
		})}
	flags := cmd.Flags()
	flags.StringVar(&f.node, "node", "0", "of which machine of a gang, from 0, or all")
	flags.BoolVarP(&f.follow, "follow", "f", false, "go on until the job is over (default: print what there is)")
	flags.IntVar(&f.tail, "tail", -1, "only the last `N` lines of what there is, of each machine (-1: all)")
	flags.StringVar(&f.since, "since", "", "only what came in this `span` until now, as 10m or 2h, or since a time such "+
		"as 2026-12-01T18:00:00Z (default: all)")
	flags.BoolVar(&f.timestamps, "timestamps", false, "write the time before each line (default: the output alone)")
	_ = cmd.RegisterFlagCompletionFunc("node", command.Words("0", "1", "all"))
	_ = cmd.RegisterFlagCompletionFunc("tail", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("since", cobra.NoFileCompletions)
	return cmd
}

// query returns the flags as query parameters.
func (f *logFlags) query(now time.Time, lines bool) (url.Values, error) {
	q := url.Values{"node": {f.node}, "attempts": {"1"}}
	switch {
	case f.tail < -1:
		return nil, fmt.Errorf("--tail %d: give a number of lines", f.tail)
	case f.tail >= 0:
		q.Set("tail", strconv.Itoa(f.tail))
	}
	if f.since != "" {
		at, err := command.Moment(f.since, now)
		if err != nil {
			return nil, fmt.Errorf("--since %w", err)
		}
		q.Set("since", at.UTC().Format(time.RFC3339))
	}
	if f.follow {
		q.Set("follow", "1")
	}
	if f.timestamps {
		q.Set("timestamps", "1")
	}
	if lines {
		q.Set("format", "json")
	}
	return q, nil
}

// logLine is a line of a job's output in JSON.
type logLine struct {
	Job string `json:"job"`
	api.LogLine
}

// lines prints each line of a job's output as an object, as soon as it is complete.
func (a *app) lines(job string, from io.Reader) error {
	for d := json.NewDecoder(from); ; {
		line := logLine{Job: job}
		err := d.Decode(&line.LogLine)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := a.Print(line); err != nil {
			return err
		}
	}
}
