// Package cli holds the command line: one file per command or family of commands.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/ab"
	"scrimp/internal/cli/anomalies"
	"scrimp/internal/cli/bill"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/commit"
	"scrimp/internal/cli/compress"
	"scrimp/internal/cli/data"
	"scrimp/internal/cli/engines"
	"scrimp/internal/cli/estimate"
	"scrimp/internal/cli/export"
	"scrimp/internal/cli/files"
	"scrimp/internal/cli/gc"
	"scrimp/internal/cli/groups"
	"scrimp/internal/cli/jobs"
	"scrimp/internal/cli/models"
	"scrimp/internal/cli/offers"
	"scrimp/internal/cli/own"
	"scrimp/internal/cli/pipeline"
	"scrimp/internal/cli/plan"
	"scrimp/internal/cli/propose"
	"scrimp/internal/cli/queue"
	"scrimp/internal/cli/review"
	"scrimp/internal/cli/run"
	"scrimp/internal/cli/serving"
	"scrimp/internal/cli/session"
	"scrimp/internal/cli/share"
	"scrimp/internal/cli/simulate"
	"scrimp/internal/cli/storage"
	"scrimp/internal/cli/tune"
	"scrimp/internal/cli/utilization"
)

// Version is the program's version; the build sets it.
var Version = "0.1.0-dev"

// Main runs the program and returns its exit status.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	signals := []os.Signal{syscall.SIGTERM}
	if !signal.Ignored(os.Interrupt) { // a script that keeps Ctrl-C from us handles it itself
		signals = append(signals, os.Interrupt)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills the process
	a := newApp(in, out, errOut)
	root := a.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := unknownCommand(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if err == nil && a.Unwritten != nil {
		err = fmt.Errorf("not all was written: %w", a.Unwritten)
	}
	var code command.Exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	if a.Counting {
		fmt.Fprint(errOut, "\r\x1b[K")
	}
	a.Fault("", err)
	return int(command.Status(err))
}

// mayStart reports whether a word may begin the arguments of a command: a flag, a word of Cobra's own, or an argument.
func mayStart(cmd *cobra.Command, word string) bool {
	return strings.HasPrefix(word, "-") || strings.HasPrefix(word, "__") || word == "help" ||
		cmd.Runnable() && (word == "" || cmd.Args == nil || cmd.Args(cmd, []string{word}) == nil)
}

// unknownCommand returns an error for a word that is none of the commands below the one before it, also after help.
// Cobra checks only the first word, and shows help instead of an error for others.
func unknownCommand(root *cobra.Command, args []string) error {
	root.InitDefaultHelpCmd()
	cmd, rest, err := root.Find(args)
	if cmd.Name() == "help" && cmd.Parent() == root {
		return unknownCommand(root, withoutGlobal(root, rest))
	}
	if err != nil || cmd == root {
		cmd, rest = root, args
	}
	rest = withoutGlobal(root, rest)
	if !cmd.HasSubCommands() || len(rest) == 0 || err == nil && cmd == root || mayStart(cmd, rest[0]) {
		return nil
	}
	text := fmt.Sprintf("unknown command %q for %q", rest[0], cmd.CommandPath())
	if near := command.Suggestions(cmd, rest[0]); len(near) > 0 {
		return fmt.Errorf("%s: did you mean %s? %s --help lists all", text, strings.Join(near, ", "), cmd.CommandPath())
	}
	if cmd.Runnable() {
		return nil // it says itself which arguments it takes
	}
	return fmt.Errorf("%s: %s --help lists them", text, cmd.CommandPath())
}

// withoutGlobal removes the flags of all commands that stand first.
func withoutGlobal(root *cobra.Command, args []string) []string {
	for len(args) > 0 && strings.HasPrefix(args[0], "--") {
		name, _, hasValue := strings.Cut(args[0][2:], "=")
		flag := root.PersistentFlags().Lookup(name)
		switch {
		case flag == nil:
			return args
		case hasValue || flag.NoOptDefVal != "": // --json needs no value
			args = args[1:]
		default:
			args = args[min(2, len(args)):]
		}
	}
	return args
}

// Root returns the program's command, for generators of its manual.
func Root() *cobra.Command { return newApp(strings.NewReader(""), io.Discard, io.Discard).root() }

// version returns Version. A development build without a commit in its version, as go install makes in a checkout, gets
// the commit appended.
func version(info *debug.BuildInfo) string {
	if info == nil || strings.Contains(Version, "+") || !strings.HasSuffix(Version, "-dev") {
		return Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && s.Value != "" {
			return Version + "+" + s.Value[:min(12, len(s.Value))]
		}
	}
	return Version
}

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

func newApp(in io.Reader, out, errOut io.Writer) *app {
	return &app{&command.App{In: in, Out: out, Err: errOut, Now: time.Now, Version: Version}}
}

func (a *app) root() *cobra.Command {
	info, _ := debug.ReadBuildInfo()
	root := &cobra.Command{
		Use:   "scrimp",
		Short: "Train on time for the least money",
		Long: `scrimp plans, runs, watches and accounts for ML training, so that every job meets its deadline at the
lowest cost. Results go to stdout, progress and errors to stderr. Tables fit the terminal; piped, they are
complete and their times are RFC 3339.

Exit status: 0 done, 1 error, 2 a plan is not feasible, 3 the job failed or was stopped, 124 the time of
scrimp wait is over.`,
		Version:       version(info),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&a.Data, "data", defaultData(), "data `folder` (environment: SCRIMP_DATA)")
	root.PersistentFlags().BoolVar(&a.JSON, "json", false, "print JSON, one object a line (default: text for people)")
	root.PersistentFlags().StringVar(&a.Server, "server", os.Getenv("SCRIMP_LOGIN"), "`name` of the login to use, as "+
		"scrimp login --as gave it, or local for the data folder's own server (environment: SCRIMP_LOGIN) (default: the "+
		"login without a name)")
	_ = root.RegisterFlagCompletionFunc("server", a.CompleteServer)
	_ = root.RegisterFlagCompletionFunc("data", command.CompleteFolder)
	for _, family := range [][]*cobra.Command{
		run.Commands(a.App), jobs.Commands(a.App, queue.Commands(a.App)...), groups.Commands(a.App),
		utilization.Commands(a.App), data.Commands(a.App), files.Commands(a.App),
		pipeline.Commands(a.App, gc.Cache(a.App)), plan.Commands(a.App, tune.Planner(a.App)),
		ab.Commands(a.App), estimate.Commands(a.App), offers.Commands(a.App),
		simulate.Commands(a.App), commit.Commands(a.App), own.Commands(a.App), serving.Commands(a.App),
		storage.Commands(a.App), gc.Commands(a.App), compress.Commands(a.App), export.Commands(a.App), bill.Commands(a.App),
		anomalies.Commands(a.App), models.Commands(a.App), review.Commands(a.App), engines.Commands(a.App),
		session.Commands(a.App), share.Commands(a.App), propose.Commands(a.App), tune.Commands(a.App),
		{offers.Market(a.App, a.marketServeCmd())},
		{a.initCmd(), a.importCmd(), a.ledgerCmd(), a.serverCmd(), a.schemaCmd(),
			a.serveCmd(), a.backupCmd(), a.restoreCmd(), a.completionCmd(), a.agentCmd(), a.hostdCmd()},
	} {
		root.AddCommand(family...)
	}
	command.Help(root)
	a.CompleteHints(root)
	return root
}

// defaultData returns the data folder of this user's server.
func defaultData() string {
	if d := os.Getenv("SCRIMP_DATA"); d != "" {
		return d
	}
	if d := os.Getenv("XDG_DATA_HOME"); d != "" {
		return filepath.Join(d, "scrimp")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ".scrimp"
	}
	return filepath.Join(home, ".local", "share", "scrimp")
}
