package jobs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show"
)

func (a *app) statusCmd() *cobra.Command {
	return &cobra.Command{Use: "status [JOB]", Short: "Show one job, or all that wait or run",
		Args:    command.Takes("[JOB]"),
		GroupID: command.GroupLook, ValidArgsFunction: a.CompleteJob(command.Every),
		Long: "Shows one job: where it runs, how far it is, what it has spent, its odds, its metrics. Without a JOB it " +
			"lists the jobs that wait or run, as scrimp queue does. Amounts are in the job's currency, spans are " +
			"market time." + command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			if len(args) == 0 {
				few := listing{open: true, limit: shownJobs}
				if a.JSON {
					few.limit = 0
				}
				return a.list(ctx, c, few)
			}
			a.Waiting(ctx, c)
			j, err := c.Job(ctx, args[0])
			if err != nil {
				return err
			}
			if a.JSON {
				return a.Print(j)
			}
			a.Printf("%s", show.Job(j, a.Place()))
			return nil
		})}
}

func (a *app) logsCmd() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{Use: "logs JOB", Short: "Print a job's output over all its attempts", Args: command.Takes("JOB"),
		GroupID: command.GroupLook, ValidArgsFunction: a.CompleteJob(command.Every),
		Long: "Prints what the job's program wrote to its output and error streams, over all attempts, also after the " +
			"machine is gone. With --json each line is an object: {\"job\", \"line\"}. Ctrl-C ends a --follow; the job " +
			"goes on." + command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			path := command.OfJob(args[0], "/log")
			if follow {
				path += "?follow=1"
			}
			r, err := c.Request(ctx, http.MethodGet, path)
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
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the job is over (default: print what there is)")
	return cmd
}

// logLine is a line of a job's output for a program.
type logLine struct {
	Job  string `json:"job"`
	Line string `json:"line"` // without its end; what is no text is replaced
}

// lines prints each line of a job's output as an object, as soon as it is whole.
func (a *app) lines(job string, from io.Reader) error {
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadString('\n')
		if line != "" {
			if err := a.Print(logLine{job, strings.ToValidUTF8(strings.TrimSuffix(line, "\n"), "\uFFFD")}); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

func (a *app) attachCmd() *cobra.Command {
	return &cobra.Command{Use: "attach JOB", Short: "Show a job's progress until it is over; Ctrl-C detaches",
		Args: command.Takes("JOB"), GroupID: command.GroupLook, ValidArgsFunction: a.CompleteJob(command.Live),
		Long: "Shows a job's progress until it is over, and then its receipt, as scrimp run does. Progress goes to the " +
			"error stream, the receipt to the output. Ctrl-C detaches; the job goes on.\n\nExit status: 0 succeeded or " +
			"detached, 1 error, 3 the job failed or was stopped.",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error { return a.follow(ctx, c, args[0]) })}
}

func (a *app) execCmd() *cobra.Command {
	return &cobra.Command{Use: "exec JOB -- COMMAND [ARG ...]",
		Short: "Run a command on the job's machine, in its work folder", Args: command.Takes("JOB", "COMMAND", "[ARG ...]"),
		GroupID: command.GroupLook, ValidArgsFunction: a.CompleteJob(command.Live),
		Long: "Runs a command on the machine that the job has now, in its work folder and environment, and prints what " +
			"it wrote. It has no input and no terminal.\n\nExit status: the command's own; 1 where it could not be run.",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			var result api.ExecResult
			if err := c.Do(ctx, http.MethodPost, command.OfJob(args[0], "/exec"), api.Exec{Command: args[1:]},
				&result); err != nil {
				return err
			}
			if a.JSON {
				if err := a.Print(show.Exec(result)); err != nil {
					return err
				}
				if result.Error == "" && result.Exit != 0 {
					return command.Exit(result.Exit)
				}
				return nil
			}
			_, _ = a.Out.Write(result.Output)
			if result.Error != "" {
				return fmt.Errorf("run %s: %s", args[1], result.Error)
			}
			if result.Exit != 0 {
				return command.Exit(result.Exit)
			}
			return nil
		})}
}

func (a *app) endCmd(use, short, long string, save bool) *cobra.Command {
	return &cobra.Command{Use: use + " JOB", Short: short, Long: long + command.PlainExit, Args: command.Takes("JOB"),
		GroupID:           command.GroupRun,
		ValidArgsFunction: a.CompleteJob(command.Live),
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			var j api.Job
			if err := c.Do(ctx, http.MethodPost, command.OfJob(args[0], "/end"), api.End{Save: save}, &j); err != nil {
				return err
			}
			if a.JSON {
				return a.Print(j)
			}
			if save && !j.Closed {
				a.Printf("%s saves a checkpoint and ends. scrimp attach %s shows it.\n", j.ID, j.ID)
			} else {
				a.Printf("%s is %s.\n", j.ID, j.State)
			}
			return nil
		})}
}

func (a *app) cancelCmd() *cobra.Command {
	return a.endCmd("cancel", "End a job at once, without a checkpoint",
		"Ends a job at once: the work since its last checkpoint is lost and its machine is given back. scrimp stop saves "+
			"first.", false)
}

func (a *app) stopCmd() *cobra.Command {
	return a.endCmd("stop", "Save a checkpoint, then end a job",
		"Asks the program to save, uploads and verifies the checkpoint, keeps the outputs, gives the machine back and "+
			"ends the job. Between the signal and the kill is the grace of the job file (default 20s, wall time).", true)
}

func (a *app) getCmd() *cobra.Command {
	var to string
	cmd := &cobra.Command{Use: "get JOB", Short: "Copy a job's outputs here", Args: command.Takes("JOB"),
		GroupID:           command.GroupLook,
		ValidArgsFunction: a.CompleteJob(command.Every),
		Long: "Copies the folders named in outputs of the job file here, each file checked against its hash. They are " +
			"kept after the machine is gone, also of a job that failed." + command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			j, err := c.Job(ctx, args[0])
			if err != nil {
				return err
			}
			if j.Outputs == "" {
				return fmt.Errorf("%s has kept no outputs: name folders in outputs of its job file", j.ID)
			}
			if to == "" {
				to = j.ID + "-outputs"
			}
			if err := c.FetchOutputs(ctx, j.ID, to); err != nil {
				return err
			}
			if a.JSON {
				return a.Print(map[string]string{"job": j.ID, "folder": to})
			}
			a.Printf("Outputs of %s are in %s\n", j.ID, to)
			return nil
		})}
	cmd.Flags().StringVarP(&to, "to", "o", "", "`folder` to copy to (default JOB-outputs)")
	return cmd
}

func (a *app) receiptCmd() *cobra.Command {
	var page string
	cmd := &cobra.Command{Use: "receipt JOB", Short: "Show what a job cost, why, and what it would cost on-demand",
		Args: command.Takes("JOB"), GroupID: command.GroupMoney, ValidArgsFunction: a.CompleteJob(command.Every),
		Long: "Shows what a job has cost so far or in all, in its currency: useful, start-up, lost and idle time, each " +
			"attempt and interruption, and what the same work costs on-demand. Amounts in --json are decimal " +
			"strings." + command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			r, err := c.Receipt(ctx, args[0])
			if err != nil {
				return err
			}
			if page != "" {
				b, err := r.HTML()
				if err != nil {
					return err
				}
				if err := os.MkdirAll(filepath.Dir(page), 0o755); err != nil {
					return fmt.Errorf("write the page: %w", err)
				}
				if err := os.WriteFile(page, b, 0o644); err != nil {
					return fmt.Errorf("write the page: %w", err)
				}
				a.Notef("The receipt is in %s\n", page)
			}
			switch {
			case a.JSON:
				return a.Print(r)
			case page == "":
				a.Printf("%s", r.Text(a.Place().Width))
			}
			return nil
		})}
	cmd.Flags().StringVar(&page, "html", "", "write it as one page to this `file` (default: print it as text)")
	_ = cmd.RegisterFlagCompletionFunc("html", command.Files("html"))
	return cmd
}

func (a *app) explainCmd() *cobra.Command {
	return &cobra.Command{Use: "explain JOB", Short: "Say why each decision was taken, and each option rejected",
		Args: command.Takes("JOB"), GroupID: command.GroupMoney, ValidArgsFunction: a.CompleteJob(command.Every),
		Long: "Lists each decision of a job: what was taken at which price an hour, why, and why each other offer was " +
			"not. Times are market time in UTC." + command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			a.Waiting(ctx, c)
			var list []api.Decision
			if err := c.Do(ctx, http.MethodGet, command.OfJob(args[0], "/explain"), nil, &list); err != nil {
				return err
			}
			if !a.JSON {
				j, err := c.Job(ctx, args[0])
				if err != nil {
					return err
				}
				a.Printf("%s", show.Explain(list, j.Currency, a.Place()))
				return nil
			}
			for _, d := range list {
				if err := a.Print(d); err != nil {
					return err
				}
			}
			return nil
		})}
}
