package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scrimp/internal/cli/command"
	"scrimp/internal/server"
	"scrimp/internal/test/golden"
	"scrimp/internal/test/must"
)

// commands calls f with every visible command.
func commands(t *testing.T, f func(c *cobra.Command)) {
	t.Helper()
	t.Setenv("SCRIMP_DATA", "data")
	root := newApp(nil, nil, nil).root()
	root.InitDefaultHelpCmd()
	root.InitDefaultHelpFlag()
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		if c.Hidden || c.Name() == "help" {
			return
		}
		c.InitDefaultHelpFlag()
		f(c)
		for _, sub := range c.Commands() {
			each(sub)
		}
	}
	each(root)
}

func TestHelp_EveryCommandListsExitStatuses(t *testing.T) {
	commands(t, func(c *cobra.Command) {
		if c.Long == "" || c.Runnable() && !strings.Contains(c.Long, "Exit status: 0") && c.Name() != "exec" {
			t.Errorf("%s --help names no exit status in %q", c.CommandPath(), c.Long)
		}
		if c.Runnable() && c.HasParent() && c.Parent() == c.Root() && c.GroupID == "" {
			t.Errorf("%s is in no group of scrimp --help", c.CommandPath())
		}
	})
}

func TestHelp_EveryFlagStatesDefault(t *testing.T) {
	commands(t, func(c *cobra.Command) {
		required := func(f *pflag.Flag) bool { return f.Annotations[cobra.BashCompOneRequiredFlag] != nil }
		c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			said := strings.Contains(f.Usage, "default") || f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]"
			said = said || strings.Contains(c.Long, "Without flags")
			optional := f.Name != "help" && f.Name != "version" && f.Name != "env" && !required(f)
			if optional && !said {
				t.Errorf("%s --%s does not say what holds without it: %q", c.CommandPath(), f.Name, f.Usage)
			}
		})
	})
}

func TestHelp_EveryCommandAcceptsJSON(t *testing.T) {
	commands(t, func(c *cobra.Command) {
		if c.Flags().Lookup("json") == nil && c.InheritedFlags().Lookup("json") == nil {
			t.Errorf("%s takes no --json", c.CommandPath())
		}
	})
}

func TestComplete_EveryJobArgument(t *testing.T) {
	commands(t, func(c *cobra.Command) {
		if strings.Contains(c.Use, "JOB") && c.ValidArgsFunction == nil {
			t.Errorf("%s does not complete JOB", c.CommandPath())
		}
	})
}

// Help fits a terminal of 80 columns without breaking usage lines and examples.
func TestHelp(t *testing.T) {
	commands(t, func(c *cobra.Command) {
		var b bytes.Buffer
		c.SetOut(&b)
		must.Do(t, c.Help())
		for line := range strings.Lines(b.String()) {
			copied := strings.Contains(c.Example, strings.TrimSpace(line)) || strings.HasPrefix(line, "  "+c.CommandPath())
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > command.HelpWidth && !copied {
				t.Errorf("%s --help has a line of %d columns: %s", c.CommandPath(), n, line)
			}
		}
		golden.Check(t, "help/"+strings.ReplaceAll(c.CommandPath(), " ", "-")+".txt", b.String())
	})
}

func TestTakes_NamesMissingArgument(t *testing.T) {
	t.Setenv("SCRIMP_DATA", t.TempDir())
	for line, want := range map[string]string{
		"logs":              "JOB is missing",
		"logs a b":          `"b" is one argument too many`,
		"run":               "scrimp init writes a job file",
		"run train.py x":    "scrimp run -- train.py x",
		"run job.yaml -- x": "not both",
		"exec a":            "COMMAND is missing",
		"jobs a":            `"a" is one argument too many`,
		"logs a --flow":     "scrimp logs --help lists the flags",
		"lgs":               "logs",
		"plan nothing.yaml": "scrimp init writes one",
		"data ''":           "JOB is empty",
		"stop a ''":         "JOB is empty",
		"tokens new ''":     "USER is empty",

		"anomalies alert test ''": "NAME is empty",
		"diagnose a --since 7d":   "--since selects jobs of a team",

		"anomalies score":   "--series is missing: scrimp anomalies score --help lists the flags",
		"simulate pack":     "--catalog and --trace are missing",
		"budgets rate -1":   "-1 is read as a flag, and no flag has this name: scrimp budgets rate --help lists the flags",
		"budgets rate -.5":  "-.5 is read as a flag",
		"compress m.onnx":   "--method and --output are missing",
		"anomalies score x": `"x" is one argument too many`,
	} {
		var out, err bytes.Buffer
		args := strings.Fields(line)
		for i := range args {
			args[i] = strings.Trim(args[i], "'")
		}
		if code := Main(args, os.Stdin, &out, &err); code != 1 {
			t.Errorf("scrimp %s ends with %d, want 1", line, code)
		}
		if !strings.Contains(err.String(), want) || out.Len() > 0 {
			t.Errorf("scrimp %s: no %q in %q, or an output %q", line, want, err.String(), out.String())
		}
	}
}

// docs/openapi.json is what scrimp server openapi prints: go test ./internal/cli -run OpenAPI -update.
func TestOpenAPI_MatchesTheCommittedFile(t *testing.T) {
	t.Parallel()
	golden.Check(t, "../../../docs/openapi.json", string(server.OpenAPI(Version)))
}
