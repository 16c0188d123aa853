// Package cli holds the command line: one file per command or family of commands.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/show"
)

// Version is set by the build.
var Version = "0.1.0-dev"

// Exit codes. A plan that is not feasible is no error of the program.
const (
	exitError      = 1
	exitInfeasible = 2
	exitJobFailed  = 3
)

// exitCode is an error that has been told already and ends the program with that status.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// app is what every command shares.
type app struct {
	in       io.Reader
	out, err io.Writer
	data     string // data folder
	json     bool
	now      func() time.Time
	counting bool // a line of progress stands on the terminal
}

// Main runs the program and returns its exit status.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	signals := []os.Signal{syscall.SIGTERM}
	if !signal.Ignored(os.Interrupt) { // a script that keeps Ctrl-C from us sees to it itself
		signals = append(signals, os.Interrupt)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends whatever does not end by itself
	a := &app{in: in, out: out, err: errOut, now: time.Now}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	var code exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	if a.counting {
		fmt.Fprint(errOut, "\r\x1b[K")
	}
	if a.json {
		_ = json.NewEncoder(errOut).Encode(map[string]string{"error": err.Error()})
	} else {
		fmt.Fprintln(errOut, "scrimp: "+show.Lines(strings.TrimSpace(err.Error()))) // some of it is what a server says
	}
	return exitError
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "scrimp",
		Short: "Train on time for the least money",
		Long: `scrimp plans, runs, watches and accounts for ML training, so that every job meets its deadline at the
lowest cost. What is asked for goes to the output, progress and errors to the error stream. Tables fit
the terminal; piped, they are whole and their times are RFC 3339.

Exit status: 0 done, 1 error, 2 a plan is not feasible, 3 the job failed or was stopped.`,
		Version:       Version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&a.data, "data", defaultData(), "data `folder` (environment: SCRIMP_DATA)")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON, one object a line (default: text for people)")
	_ = root.RegisterFlagCompletionFunc("data", completeFolder)
	root.AddCommand(
		a.runCmd(), a.planCmd(), a.initCmd(), a.importCmd(),
		a.jobsCmd(), a.queueCmd(), a.statusCmd(), a.logsCmd(), a.attachCmd(), a.execCmd(),
		a.pauseCmd(), a.resumeCmd(), a.updateCmd(),
		a.cancelCmd(), a.stopCmd(), a.approveCmd(), a.rejectCmd(), a.machinesCmd(), a.adoptCmd(), a.releaseCmd(),
		a.rerunCmd(), a.checkpointsCmd(), a.getCmd(), a.receiptCmd(), a.costsCmd(),
		a.budgetsCmd(), a.explainCmd(), a.profileCmd(),
		a.simulateCmd(), a.estimateCmd(), a.offersCmd(), a.catalogCmd(),
		a.checkCmd(),
		a.marketCmd(), a.ledgerCmd(), a.serverCmd(), a.doctorCmd(), a.schemaCmd(),
		a.serveCmd(), a.loginCmd(), a.logoutCmd(), a.usersCmd(), a.teamsCmd(), a.tokensCmd(), a.auditCmd(), a.backupCmd(),
		a.restoreCmd(),
		a.completionCmd(), a.agentCmd(),
	)
	helps(root)
	return root
}

// defaultData is the folder of this user's server.
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

// print writes v as a line of JSON.
func (a *app) print(v any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.out, format, harmless(args)...) }
func (a *app) notef(format string, args ...any)  { fmt.Fprintf(a.err, format, harmless(args)...) }

// harmless is what is printed without all that would steer a terminal: servers, the
// programs of others and files write some of it. Formats are our own.
func harmless(args []any) []any {
	list := slices.Clone(args)
	for i, arg := range list {
		if err, ok := arg.(error); ok {
			list[i] = show.Lines(err.Error())
		} else if v := reflect.ValueOf(arg); v.Kind() == reflect.String {
			list[i] = show.Lines(v.String())
		}
	}
	return list
}

// place is where tables go: as wide as the terminal; what is piped keeps all
// its columns and has times that a program can read.
func (a *app) place() show.Place {
	width, people := terminal(a.out)
	if !people {
		return show.Place{}
	}
	return show.Place{Width: width, Now: a.now()}
}

// line is where a line of progress goes: a terminal's last column stays free,
// since some of them break the line there.
func (a *app) line() show.Place {
	width, people := terminal(a.err)
	if !people {
		return show.Place{}
	}
	return show.Place{Width: width - 1, Now: a.now()}
}

// terminal reports whether w is one, and how wide it is.
func terminal(w io.Writer) (width int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile {
		return 80, false
	}
	return terminalWidth(f)
}
