package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/flagerror"
	"scrimp/internal/lib/draw"
)

// Groups of commands in scrimp --help.
const (
	GroupRun   = "run"
	GroupLook  = "look"
	GroupMoney = "money"
	GroupShare = "share"
	GroupRest  = "rest"
)

// PlainExit ends the help of commands without exit statuses of their own.
const PlainExit = "\n\nExit status: 0 done, 1 error."

// SeveralJobs is a help sentence of commands with several jobs.
const SeveralJobs = " With several jobs, the command reports each error and goes on with the next job."

// HelpWidth is the width of help texts in columns.
const HelpWidth = 80

// Help sets up the help of all commands. It wraps the paragraphs of each Long text.
func Help(root *cobra.Command) {
	root.AddGroup(
		&cobra.Group{ID: GroupRun, Title: "Run:"}, &cobra.Group{ID: GroupLook, Title: "Watch:"},
		&cobra.Group{ID: GroupMoney, Title: "Understand:"}, &cobra.Group{ID: GroupShare, Title: "Share a server:"},
		&cobra.Group{ID: GroupRest, Title: "The rest:"},
	)
	root.SetHelpCommandGroupID(GroupRest)
	root.CompletionOptions.DisableDefaultCmd = true // our own command is shorter
	wrapped := fmt.Sprintf("Flags.FlagUsagesWrapped %d ", HelpWidth)
	// A long name of a command would make the last sentence longer than a line.
	template := strings.Replace(root.UsageTemplate(), " about a command.", "{{if lt (len .CommandPath) 22}} about a "+
		"command{{end}}.", 1)
	root.SetUsageTemplate(strings.ReplaceAll(template, "Flags.FlagUsages ", wrapped))
	root.SetFlagErrorFunc(flagerror.Of)
	var each func(*cobra.Command)
	each = func(c *cobra.Command) {
		flagerror.Require(c)
		flagerror.NoEmpty(c)
		paragraphs := strings.Split(c.Long, "\n\n")
		for i, p := range paragraphs {
			paragraphs[i] = strings.TrimSuffix(draw.Wrap("", p, HelpWidth), "\n")
		}
		c.Long = strings.Join(paragraphs, "\n\n")
		for _, sub := range c.Commands() {
			each(sub)
		}
	}
	each(root)
}

// Takes checks a command's arguments against their names: [NAME] is optional, [NAME ...] may repeat. Its errors name
// the missing or superfluous argument.
func Takes(names ...string) cobra.PositionalArgs {
	least, most := 0, len(names)
	for _, n := range names {
		if bare := strings.TrimSuffix(n, "]"); strings.HasSuffix(bare, "...") || strings.HasSuffix(bare, "…") {
			most = -1
		}
		if !strings.HasPrefix(n, "[") {
			least++
		}
	}
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least {
			return fmt.Errorf("%s is missing: %s --help says more", names[len(args)], cmd.CommandPath())
		}
		if most >= 0 && len(args) > most {
			return fmt.Errorf("%q is one argument too many: %s --help says more", args[most], cmd.CommandPath())
		}
		for i, arg := range args {
			name := strings.Trim(names[min(i, len(names)-1)], "[]. …")
			if arg == "" && slices.Contains(named, name) { // mostly a variable of a script that is not set
				return fmt.Errorf("%s is empty: %s --help says more", name, cmd.CommandPath())
			}
		}
		return nil
	}
}

// named lists the arguments that name something of the server, so that none is empty.
var named = []string{"BUDGET", "ENGINE", "ID", "INSTANCE", "JOB", "NAME", "PIPELINE", "SEARCH", "TEAM", "USER"}

// TakesJob checks for a job file, or a command after --.
func TakesJob(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case len(args) == 0:
		return fmt.Errorf("a job file, or -- and a command, is missing: scrimp init writes a job file, %s --help says more",
			cmd.CommandPath())
	case dash > 0:
		return fmt.Errorf("give a job file or -- and a command, not both: %s --help says more", cmd.CommandPath())
	case dash < 0 && len(args) > 1:
		return fmt.Errorf("%q is one argument too many: a command stands after --, as in %s -- %s", args[1],
			cmd.CommandPath(), strings.Join(args, " "))
	}
	return nil
}
