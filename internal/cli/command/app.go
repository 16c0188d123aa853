// Package command holds what commands share: the terminal, the way to the server, words of help, and
// what a shell completes.
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

// Exit is an error that has been told already and ends the program with that status.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Exit statuses. A plan that is not feasible is no error of the program.
const (
	Failed     Exit = 1   // an error, which stderr says
	Infeasible Exit = 2   // a plan, a check or a simulation is not feasible, or offers finds no matching offers
	JobFailed  Exit = 3   // the job failed or was stopped
	TimedOut   Exit = 124 // the time that was given is over, as timeout(1) has it
)

// Verdict is an error that ends the program with a status of its own.
type Verdict struct {
	Exit Exit
	Err  error
}

func (v *Verdict) Error() string { return v.Err.Error() }
func (v *Verdict) Unwrap() error { return v.Err }

// Status is the program's exit status after err.
func Status(err error) Exit {
	if v, ok := errors.AsType[*Verdict](err); ok {
		return v.Exit
	}
	return Failed
}

// App is what every command is given.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	Data     string // data folder
	JSON     bool
	Now      func() time.Time
	Version  string
	Counting bool // a line of progress stands on the terminal
	Ends     bool // a server that is begun is to give all machines back
	// Unwritten is why something that was asked for was not written; nil: all was.
	Unwritten error
}

// Print writes v as a line of JSON.
func (a *App) Print(v any) error {
	e := json.NewEncoder(a.Out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Fault writes an error to stderr; a program reads which job it is about, "": of none.
func (a *App) Fault(job string, err error) {
	text := strings.TrimSpace(err.Error())
	if !a.JSON {
		fmt.Fprintln(a.Err, "scrimp: "+show.Lines(text)) // some of it is what a server says
		return
	}
	said := map[string]string{"error": text}
	if job != "" {
		said["job"] = job
	}
	_ = json.NewEncoder(a.Err).Encode(said)
}

// Each does something for each job, says of each where it failed, and goes on. One job alone fails as it is.
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

// Printf writes what was asked for. Where that fails, as on a full disk, Unwritten is why.
func (a *App) Printf(format string, args ...any) {
	if _, err := fmt.Fprintf(a.Out, format, harmless(args)...); err != nil && a.Unwritten == nil {
		a.Unwritten = err
	}
}

// Notef writes progress and notes to stderr.
func (a *App) Notef(format string, args ...any) { fmt.Fprintf(a.Err, format, harmless(args)...) }

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

// Place is where tables go: as wide as the terminal; what is piped keeps all
// its columns and has times that a program can read.
func (a *App) Place() show.Place {
	width, people := Terminal(a.Out)
	if !people {
		return show.Place{}
	}
	return show.Place{Width: width, Now: a.Now()}
}

// Line is where a line of progress goes: a terminal's last column stays free,
// since some of them break the line there.
func (a *App) Line() show.Place {
	width, people := Terminal(a.Err)
	if !people {
		return show.Place{}
	}
	return show.Place{Width: width - 1, Now: a.Now()}
}

// Terminal reports whether w is one, and how wide it is.
func Terminal(w io.Writer) (width int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile {
		return 80, false
	}
	return terminalWidth(f)
}
