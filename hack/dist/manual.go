package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scrimp/internal/cli"
	"scrimp/internal/test/image"
)

// manual returns the man page of each command and the completions of three shells, below a prefix.
func (r release) manual() ([]image.File, error) {
	// This user's default must not appear as the reader's.
	if err := os.Setenv("SCRIMP_DATA", "~/.local/share/scrimp"); err != nil {
		return nil, err
	}
	root := cli.Root()
	root.InitDefaultCompletionCmd()
	var list []image.File
	for _, c := range commands(root) {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-")
		list = append(list, image.File{Path: "share/man/man1/" + name + ".1", Body: []byte(r.page(c))})
	}
	bash := func(b *bytes.Buffer) error { return root.GenBashCompletionV2(b, true) }
	for name, write := range map[string]func(*bytes.Buffer) error{
		"share/bash-completion/completions/scrimp":    bash,
		"share/zsh/site-functions/_scrimp":            func(b *bytes.Buffer) error { return root.GenZshCompletion(b) },
		"share/fish/vendor_completions.d/scrimp.fish": func(b *bytes.Buffer) error { return root.GenFishCompletion(b, true) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return nil, err
		}
		list = append(list, image.File{Path: name, Body: b.Bytes()})
	}
	sortByName(list)
	return list, nil
}

// commands returns a command and its visible subcommands.
func commands(c *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{c}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			list = append(list, commands(below)...)
		}
	}
	return list
}

// page returns a command's man page.
func (r release) page(c *cobra.Command) string {
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %q 1 %q %q %q\n", strings.ToUpper(name), r.When.Format(time.DateOnly), "scrimp "+r.Version,
		"scrimp")
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(c.Short))
	b.WriteString(".SH SYNOPSIS\n")
	if c.Runnable() {
		fmt.Fprintf(&b, ".B %s\n.br\n", roff(c.UseLine()))
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, ".B %s\n.I command\n", roff(c.CommandPath()))
	}
	b.WriteString(".SH DESCRIPTION\n")
	text := c.Long
	if text == "" {
		text = c.Short
	}
	paragraphs(&b, text)
	if c.HasAvailableSubCommands() {
		b.WriteString(".SH COMMANDS\n")
	}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", roff(below.Name()), roff(below.Short))
		}
	}
	options(&b, "OPTIONS", c.NonInheritedFlags())
	options(&b, "OPTIONS OF EVERY COMMAND", c.InheritedFlags())
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n.nf\n")
		for line := range strings.SplitSeq(strings.Trim(c.Example, "\n"), "\n") {
			b.WriteString(roff(line) + "\n")
		}
		b.WriteString(".fi\n")
	}
	var also []string
	if c.HasParent() {
		also = append(also, strings.ReplaceAll(c.Parent().CommandPath(), " ", "-"))
	}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			also = append(also, strings.ReplaceAll(below.CommandPath(), " ", "-"))
		}
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, other := range also {
		end := ","
		if i == len(also)-1 {
			end = ""
		}
		fmt.Fprintf(&b, ".BR %s (1)%s\n", roff(other), end)
	}
	return b.String()
}

// paragraphs writes a text whose lines may be filled; lines that begin with spaces stay unchanged.
func paragraphs(b *strings.Builder, text string) {
	fixed := false
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
		switch {
		case line == "" && !fixed:
			b.WriteString(".PP\n")
			continue
		case indented && !fixed:
			b.WriteString(".nf\n")
		case !indented && fixed && line != "":
			b.WriteString(".fi\n")
		}
		fixed = indented || fixed && line == ""
		b.WriteString(roff(line) + "\n")
	}
	if fixed {
		b.WriteString(".fi\n")
	}
}

func options(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR", roff(name))
		if kind != "" {
			fmt.Fprintf(b, " \\fI%s\\fR", roff(kind))
		}
		b.WriteString("\n" + roff(usage))
		said := strings.Contains(usage, "(default") || slices.Contains([]string{"", "false", "[]"}, f.DefValue)
		if !said {
			b.WriteString(" (default " + roff(f.DefValue) + ")")
		}
		b.WriteString("\n")
	})
}

// roff escapes a line of text so that nothing in it is a request.
func roff(s string) string {
	s = strings.NewReplacer("\n", " ", `\`, `\e`, "-", `\-`, "…", `\[u2026]`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		return `\&` + s
	}
	return s
}
