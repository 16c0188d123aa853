package docs

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scrimp/internal/server/metrics"
)

// made is the head of every generated page.
const made = "<!-- Written from the code: go test ./internal/test/docs -update. -->\n\n"

// CLI returns the reference of the commands, from their help.
func CLI(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# Command line\n\n" + made + root.Long + "\n\n")
	b.WriteString("Flags of every command:\n\n")
	options(&b, root.PersistentFlags())
	for _, group := range root.Groups() {
		fmt.Fprintf(&b, "\n## %s\n\n| command | what it does |\n|---|---|\n", strings.TrimSuffix(group.Title, ":"))
		for _, c := range shown(root) {
			if c.GroupID == group.ID {
				fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", c.CommandPath(), Anchor(c.CommandPath()), cell(c.Short))
			}
		}
	}
	for _, c := range shown(root) {
		commandPage(&b, c)
	}
	return b.String()
}

// commandPage writes a command and its subcommands.
func commandPage(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n### %s\n\n%s.\n", c.CommandPath(), strings.TrimSuffix(c.Short, "."))
	if c.Runnable() {
		fmt.Fprintf(b, "\n```text\n%s\n```\n", c.UseLine())
	}
	if c.Long != "" {
		b.WriteString("\n" + prose(c.Long) + "\n")
	}
	if c.NonInheritedFlags().HasAvailableFlags() {
		b.WriteString("\n")
		options(b, c.NonInheritedFlags())
	}
	if c.Example != "" {
		fmt.Fprintf(b, "\n```text\n%s\n```\n", unindented(c.Example))
	}
	for _, below := range shown(c) {
		commandPage(b, below)
	}
}

// prose formats a help text; lines that start with spaces are a table.
func prose(text string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(text, "\n\n") {
		if strings.HasPrefix(part, " ") {
			part = "```text\n" + part + "\n```"
		} else {
			part = cell(part)
		}
		b.WriteString(part + "\n\n")
	}
	return strings.TrimSpace(b.String())
}

func unindented(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, "  ")
	}
	return strings.Join(lines, "\n")
}

func shown(c *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(c.Commands()), func(c *cobra.Command) bool {
		return !c.IsAvailableCommand() || c.Name() == "help"
	})
}

// options formats the table of a command's flags.
func options(b *strings.Builder, flags *pflag.FlagSet) {
	b.WriteString("| flag | meaning |\n|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || f.Name == "version" {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if kind != "" {
			name += " " + kind
		}
		none := slices.Contains([]string{"", "false", "[]", "0", "0s"}, f.DefValue)
		if !strings.Contains(usage, "default") && !none {
			usage += fmt.Sprintf(" (default `%s`)", f.DefValue)
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", strings.ReplaceAll(name, "|", "\\|"), cell(usage))
	})
}

// cell returns text as one line, escaped for Markdown.
func cell(text string) string {
	return strings.NewReplacer("\n", " ", "|", "\\|", "<", "&lt;", "*", "\\*", "_", "\\_").Replace(text)
}

// Metrics returns the reference of /metrics.
func Metrics() string {
	var b strings.Builder
	b.WriteString("# Metrics\n\n" + made + "`GET /metrics` answers in the form of Prometheus, with a viewer's token " +
		"for all teams ([how to scrape it](../operate.md#metrics)). Metrics of Go and of the process (`go_*`, " +
		"`process_*`) stand beside these. " +
		"Amounts are dollars as numbers, for charts and alerts; the ledger is the account.\n\n" +
		"| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, m := range metrics.List() {
		labels := "-"
		if len(m.Labels) > 0 {
			labels = "`" + strings.Join(m.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Kind, labels, cell(m.Help))
	}
	return b.String()
}

// The parts of the OpenAPI document that API reads.
type (
	description struct {
		Paths      map[string]map[string]operation
		Components struct{ Schemas map[string]schema }
	}
	operation struct {
		Summary     string
		Role        string `json:"x-role"`
		Where       string `json:"x-where"`
		Parameters  []struct{ Name, In, Description string }
		RequestBody struct{ Content map[string]media }
		Responses   map[string]struct{ Content map[string]media }
	}
	media struct {
		Schema schema
	}
	schema struct {
		Ref         string `json:"$ref"`
		Type        any
		Items       *schema
		Description string
		Properties  map[string]schema
		Required    []string
		AnyOf       []schema
	}
)

// API returns the reference of the routes, from the server's OpenAPI document.
func API(openAPI []byte) (string, error) {
	var d description
	if err := json.Unmarshal(openAPI, &d); err != nil {
		return "", fmt.Errorf("read the description of the API: %w", err)
	}
	var b strings.Builder
	b.WriteString("# HTTP API\n\n" + made + "[openapi.json](../openapi.json) describes the API in full as OpenAPI " +
		"3.1, and `GET /v1/openapi.json` answers with it; [share](../serve.md#programs) shows how to submit a job. " +
		"Requests carry `Authorization: Bearer TOKEN`. " +
		"Errors are problem details ([errors](errors.md)). Amounts of money are decimal " +
		"strings beside their currency; null is unknown, never zero.\n\n")
	var agents strings.Builder
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(d.Paths[path])) {
			to := &b
			if strings.HasPrefix(path, "/v1/agent") || strings.HasPrefix(path, "/v1/machine/") {
				to = &agents
			}
			d.Paths[path][method].write(to, strings.ToUpper(method)+" "+path)
		}
	}
	b.WriteString("## For agents\n\nAgents on machines ask these; their form may change with each release.\n\n" +
		agents.String() + "## Types\n")
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		d.Components.Schemas[name].write(&b, name)
	}
	return b.String(), nil
}

func (o operation) write(b *strings.Builder, name string) {
	fmt.Fprintf(b, "### %s\n\n%s.", name, cell(o.Summary))
	if o.Role != "" {
		fmt.Fprintf(b, " Role: %s", strings.TrimSpace(o.Role+" "+o.Where))
		b.WriteString(".")
	}
	b.WriteString("\n\n")
	for _, p := range o.Parameters {
		if p.In != "path" {
			fmt.Fprintf(b, "- `%s` (%s): %s\n", p.Name, p.In, cell(p.Description))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(o.RequestBody.Content)) {
		fmt.Fprintf(b, "- sends %s\n", o.RequestBody.Content[kind].said(kind))
	}
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		for _, kind := range slices.Sorted(maps.Keys(o.Responses[status].Content)) {
			if status != "default" {
				fmt.Fprintf(b, "- answers %s with %s\n", status, o.Responses[status].Content[kind].said(kind))
			}
		}
	}
	b.WriteString("\n")
}

func (m media) said(kind string) string {
	if kind == "application/json" {
		return m.Schema.name()
	}
	if m.Schema.Ref != "" {
		return m.Schema.name() + " (`" + kind + "`)"
	}
	return "`" + kind + "`"
}

// name returns the name of a schema's type, with a link if it is a named schema.
func (s schema) name() string {
	switch {
	case s.Ref != "":
		name := s.Ref[strings.LastIndex(s.Ref, "/")+1:]
		return fmt.Sprintf("[%s](#%s)", name, Anchor(name))
	case s.Items != nil:
		return "a list of " + s.Items.name()
	case len(s.AnyOf) > 0:
		var parts []string
		for _, x := range s.AnyOf {
			parts = append(parts, x.name())
		}
		return strings.Join(parts, " or ")
	}
	switch t := s.Type.(type) {
	case string:
		return t
	case []any:
		var parts []string
		for _, x := range t {
			parts = append(parts, fmt.Sprint(x))
		}
		return strings.Join(parts, " or ")
	}
	return "any value"
}

func (s schema) write(b *strings.Builder, name string) {
	fmt.Fprintf(b, "\n### %s\n\n", name)
	if s.Description != "" {
		b.WriteString(cell(s.Description) + "\n\n")
	}
	if name == "JobFile" {
		b.WriteString("[The job file](../job-file.md) lists its fields.\n")
		return
	}
	if len(s.Properties) == 0 {
		b.WriteString("Is " + s.name() + ".\n")
		return
	}
	b.WriteString("| field | type | |\n|---|---|---|\n")
	for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[field]
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", field, p.name(), cell(p.Description))
	}
}

// Errors returns the reference of exit statuses, codes, responses and reasons.
func Errors(statuses []Status, answers []Answer, reasons []Status, codes []Status) string {
	var b strings.Builder
	b.WriteString("# Errors and reasons\n\n" + made +
		"## Exit statuses\n\n`scrimp exec` ends with the status of its command.\n\n")
	table(&b, "status", statuses)
	b.WriteString("\n## Problems of the API\n\nA request that fails is answered with problem details (RFC 9457, " +
		"`application/problem+json`): `status`, `title`, `detail`, `field`, `fix`, for a job file `line` and " +
		"`problems`, and `code` where a program may act on it. Act on `status` and `code`; the texts are for people " +
		"and change.\n\n")
	table(&b, "code", codes)
	last := 0
	for _, a := range answers {
		if a.Status != last {
			fmt.Fprintf(&b, "\n### %d %s\n\n| title | fix |\n|---|---|\n", a.Status, http.StatusText(a.Status))
			last = a.Status
		}
		fmt.Fprintf(&b, "| %s | %s |\n", cell(a.Title), cell(a.Fix))
	}
	b.WriteString("\n## Reasons of decisions\n\n`scrimp explain` says them in words, `--json` by these names.\n\n")
	table(&b, "reason", reasons)
	return b.String()
}

func table(b *strings.Builder, name string, rows []Status) {
	fmt.Fprintf(b, "| %s | meaning |\n|---|---|\n", name)
	for _, r := range rows {
		fmt.Fprintf(b, "| `%s` | %s |\n", r.Name, cell(r.Means))
	}
}
