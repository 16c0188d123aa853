// Package command holds what commands share: the terminal, the client of the server, the help format, and shell
// completion.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"scrimp/internal/cli/show"
)

// Exit is an error that has already been printed. It ends the program with its status.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Exit statuses. An infeasible plan is not an error of the program.
const (
	Failed     Exit = 1   // an error, described on stderr
	Infeasible Exit = 2   // a plan, a check or a simulation is not feasible, or offers finds no matching offers
	JobFailed  Exit = 3   // the job failed or was stopped
	TimedOut   Exit = 124 // a given time limit is over, as in timeout(1)
)

// Verdict is an error that ends the program with its own status.
type Verdict struct {
	Exit Exit
	Err  error
}

func (v *Verdict) Error() string { return v.Err.Error() }
func (v *Verdict) Unwrap() error { return v.Err }

// Status returns the program's exit status after err.
func Status(err error) Exit {
	if v, ok := errors.AsType[*Verdict](err); ok {
		return v.Exit
	}
	return Failed
}

// App is the environment of every command.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	Data     string // data folder
	Server   string // name of the login to use; "" for the one without a name
	JSON     bool
	Now      func() time.Time
	Version  string
	Counting bool // a progress line is on the terminal
	Ends     bool // a newly started server terminates all machines
	hints    hints
	// Unwritten is the error of a failed write to Out; nil if all output was written.
	Unwritten error
}

// Print writes v as a line of JSON.
func (a *App) Print(v any) error {
	e := json.NewEncoder(a.Out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Fault writes an error to stderr. With --json it includes the job that it is about; job may be empty.
func (a *App) Fault(job string, err error) {
	text := a.hints.complete(strings.TrimSpace(err.Error()))
	if !a.JSON {
		fmt.Fprintln(a.Err, "scrimp: "+show.Lines(text)) // parts of it come from a server
		return
	}
	said := map[string]string{"error": text}
	if job != "" {
		said["job"] = job
	}
	_ = json.NewEncoder(a.Err).Encode(said)
}

// Each calls do for each job, reports every failure, and continues. With a single job it returns that job's error.
func (a *App) Each(ctx context.Context, jobs []string, do func(job string) error) error {
	if len(jobs) == 1 {
		return do(jobs[0])
	}
	failed := false
	for i, job := range jobs {
		if slices.Contains(jobs[:i], job) {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := do(job); err != nil {
			a.Fault(job, err)
			failed = true
		}
	}
	if failed {
		return Failed
	}
	return nil
}

// Printf writes to the command's output, with the user's flags in the commands that it recommends.
func (a *App) Printf(format string, args ...any) {
	a.Content(a.hints.complete(fmt.Sprintf(format, harmless(args)...)))
}

// Content writes text to the command's output as it is, such as a file's. A failed write, for example to a full disk,
// sets Unwritten.
func (a *App) Content(text string) {
	if _, err := io.WriteString(a.Out, text); err != nil && a.Unwritten == nil {
		a.Unwritten = err
	}
}

// Notef writes progress and notes to stderr, with the user's flags in the commands that they recommend.
func (a *App) Notef(format string, args ...any) {
	_, _ = io.WriteString(a.Err, a.hints.complete(fmt.Sprintf(format, harmless(args)...))) // as far as stderr goes
}

// harmless removes terminal control sequences from the printed values, because servers, other users' programs and files
// may provide them. Formats are our own.
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

// Place returns the layout of tables: as wide as the terminal. Piped tables keep all columns and have machine-readable
// times.
func (a *App) Place() show.Place {
	width, people := Terminal(a.Out)
	if !people {
		return show.Place{}
	}
	return show.Place{Width: width, Now: a.Now()}
}

// Line returns the layout of a progress line. It leaves the terminal's last column free, because some terminals wrap
// the line there.
func (a *App) Line() show.Place {
	width, people := Terminal(a.Err)
	if !people {
		return show.Place{}
	}
	return show.Place{Width: width - 1, Now: a.Now()}
}

// Terminal reports whether w is a terminal, and its width.
func Terminal(w io.Writer) (width int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile {
		return 80, false
	}
	return terminalWidth(f)
}
