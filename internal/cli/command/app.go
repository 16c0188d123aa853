// Package command holds what commands share: the terminal, the way to the server, words of help, and
// what a shell completes.
package command

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"time"

	"scrimp/internal/cli/show"
)

// Exit is an error that has been told already and ends the program with that status.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Exit statuses. A plan that is not feasible is no error of the program.
const (
	Failed     Exit = 1
	Infeasible Exit = 2
	JobFailed  Exit = 3
)

// App is what every command is given.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	Data     string // data folder
	JSON     bool
	Now      func() time.Time
	Version  string
	Counting bool // a line of progress stands on the terminal
}

// Print writes v as a line of JSON.
func (a *App) Print(v any) error {
	e := json.NewEncoder(a.Out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Printf writes what was asked for.
func (a *App) Printf(format string, args ...any) { fmt.Fprintf(a.Out, format, harmless(args)...) }

// Notef writes progress and notes to the error stream.
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
