package command

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// said runs a program with the flags and returns what a command of it prints: on stdout, on stderr, and as an error.
func said(t *testing.T, text string, flags ...string) (out, notes, fault string) {
	t.Helper()
	var o, e bytes.Buffer
	a := &App{Out: &o, Err: &e}
	root := &cobra.Command{Use: "scrimp"}
	root.PersistentFlags().StringVar(&a.Data, "data", "folder", "")
	root.PersistentFlags().StringVar(&a.Server, "server", "", "")
	root.PersistentFlags().BoolVar(&a.JSON, "json", false, "")
	for _, name := range []string{"attach", "stop", "login", "init"} {
		root.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {
			a.Printf("%s", text)
			out = o.String()
			a.Notef("%s", text)
			notes = e.String()
			e.Reset()
			a.Fault("", errors.New(text))
			fault = strings.TrimSpace(strings.TrimPrefix(e.String(), "scrimp: "))
		}})
	}
	a.CompleteHints(root)
	root.SetArgs(append(flags, "attach"))
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	return out, notes, fault
}

// A recommended command goes to the server and data folder of the command that recommends it, wherever it is printed.
func TestHint_RepeatsTheFlagsThatWereGiven(t *testing.T) {
	const text = "p1 goes on. scrimp attach p1 comes back to it,\nscrimp\nstop p1 ends it; scrimp login URL; scrimp keeps files; scrimp stop --help lists; scrimp init writes."
	for flags, want := range map[string][3]string{
		"":                           {"scrimp attach p1", "scrimp\nstop p1", "scrimp login URL"},
		"--json=false":               {"scrimp attach p1", "scrimp\nstop p1", "scrimp login URL"},
		"--server prod":              {"scrimp --server prod attach p1", "scrimp --server prod\nstop p1", "scrimp login URL"},
		"--data d":                   {"scrimp --data d attach p1", "scrimp --data d\nstop p1", "scrimp --data d login URL"},
		"--data=my' --server=prod":   {`scrimp --data 'my'\''' --server prod attach p1`, "--server prod\nstop p1", `'my'\''' login URL`},
		"--data /srv/a --server b-2": {"scrimp --data /srv/a --server b-2 attach p1", "b-2\nstop p1", "scrimp --data /srv/a login URL"},
	} {
		out, notes, fault := said(t, text, strings.Fields(flags)...)
		for n, got := range []string{out, notes, fault} {
			for _, w := range append(want[:], "scrimp keeps files", "scrimp stop --help", "scrimp init") {
				if !strings.Contains(got, w) {
					t.Errorf("%s: output %d is %q, want %q", flags, n, got, w)
				}
			}
		}
	}
}
