package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// A Word is a private word of this project, with the usual word for the same thing.
type Word struct {
	text *regexp.Regexp // in comments, strings and documents
	Say  string
	// parts, in lower case: every match of text contains one of them. A search for them first is about fifty times
	// as fast as the match.
	parts []string
}

func word(pattern, say string) Word {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		panic(err)
	}
	return Word{regexp.MustCompile(pattern), say, literals(parsed.Simplify())}
}

// literals returns lower-case texts such that every match of re contains one of them; nil: unknown.
func literals(re *syntax.Regexp) (list []string) {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}
	case syntax.OpCapture, syntax.OpPlus:
		return literals(re.Sub[0])
	case syntax.OpConcat: // the longest part
		for _, sub := range re.Sub {
			if l := literals(sub); shortest(l) > shortest(list) {
				list = l
			}
		}
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			l := literals(sub)
			if l == nil {
				return nil
			}
			list = append(list, l...)
		}
	default: // unknown for other operators
	}
	return list
}

// shortest returns the length of the shortest text of list; 0: none.
func shortest(list []string) int {
	n := 0
	for _, s := range list {
		if n == 0 || len(s) < n {
			n = len(s)
		}
	}
	return n
}

// words are private words that nobody would search for in a scheduler's source. Words that are plain English
// elsewhere ("a look", "kind", "still") are only checked as names of declarations.
var words = []Word{
	word(`(?i)\bmend(s|ed|ing)?\b`, "fix, or hint"),
	word(`(?i)\bheed(s|ed|ing)?\b`, "honour"),
	word(`(?i)\b(cannot|can not|never) be taken( away)?\b`, "on-demand, or non-preemptible"),
	word(`(?i)\bfirm\b`, "on-demand, or non-preemptible"),
	word(`(?i)\btak(es?|en|ing) away\b`, "interrupted (by the provider), or preempted (by the server)"),
	word(`(?i)\bpurses?\b`, "budget check"),
	word(`(?i)\bdoubts?\b`, "margin"),
	word(`(?i)\b(barren|in vain)\b`, "unschedulable, or without result"),
	word(`(?i)\bpiles?\b`, "queue, or equivalence class"),
	word(`(?i)\b(stir|stirs|stirred|greet|greets|greeted)\b`, "the verb for what is done: wake, register"),
	word(`(?i)\b(simulated|drawn|failing|kept|whole) (life|lives)\b`, "simulated runs"),
	word(`(?i)\blives (of|through|as|are|by|over|were)\b`, "simulated runs"),
	word(`(?i)\b(tellers?|untold|murmurs?)\b`, "webhook outbox, throttled logger"),
	word(`(?i)\bthe tide\b`, "commit index"),
	word(`(?i)\bburied\b`, "tombstones"),
	word(`(?i)\bcarriage\b`, "egress cost, transfer rates"),
	word(`(?i)\blevers?\b`, "recommendation"),
	word(`(?i)\bbooting\b`, "provisioning"),
	word(`(?i)\b(the|whose|in|our) books\b`, "ledger"),
	word(`(?i)\btold once\b`, "shown once"),
	word(`(?i)\bleast time\b`, "minimum charge"),
	word(`(?i)\bsums? (do not )?agree\b|\bto the last unit\b`, "ledger balanced, or exactly"),
	word(`(?i)\bmarket speed\b|\b(spans|money) are market time\b|\bmarket time left\b`,
		"simulated clock, 120 × real time"),
	word(`(?i)\bwho knows the future\b`, "an oracle that knows the future"),
	word(`(?i)\bthe work on the cheapest\b`, "same work on the cheapest on-demand machine"),
	word(`(?i)\b(is|was) asked for goes\b|\b(the|its) error stream\b`,
		"results go to stdout, progress and errors to stderr"),
	word(`(?i)\b(\d+|hundreds of|thousands of) (\w+ )?lives\b`, "simulated runs"),
	word(`(?i)\blasts the next\b|\bcomes back within\b`, "97 % chance that spot survives 36 s"),
	word(`(?i)\bmargin for the work\b|\bodds of \d`, "on track, slack 4h ± 4m"),
	word(`(?i)\b(no offer|nothing) is like that\b`, "no matching offers"),
	word(`(?i)\brest(s|ed) for a second\b`, "uploads after 1 s without writes"),
	word(`^(THERE|TAKEN|ODDS|GIVEN UP)$`, "AVAILABLE, INTERRUPTIONS, ON-TIME, EXPIRES"), // column heads
}

// others are uses of the same letters that every reader knows.
var others = regexp.MustCompile(`(?i)carriage returns?`)

// A name is a name that declarations must not have: say is the usual word. in is the package where the name has its
// private meaning; it may be used elsewhere, where it is plain English. "" is everywhere.
type name struct{ say, in string }

var names = map[string]name{
	"Asks": {"Requirements", ""}, "Barren": {"Unschedulable", ""}, "Booting": {"Provisioning", ""},
	"Buried": {"Tombstones", ""}, "Carriage": {"Transfer", ""}, "Door": {"Admission", ""}, "Doubt": {"Margin", ""},
	"Firm": {"OnDemand", ""}, "Frozen": {"Snapshot", ""}, "Greet": {"Register", ""}, "Heed": {"Honour", ""},
	"Lever": {"Recommendation", ""}, "Look": {"Probe, Poll or Scan", ""}, "Mend": {"Fix", ""}, "Mind": {"Planner", ""},
	"Murmur": {"Throttle", ""}, "Peek": {"ReadUncommitted", ""}, "Pile": {"Class", ""}, "Plant": {"Fault", ""},
	"Purse": {"BudgetCheck", ""}, "Standing": {"Fallback", ""}, "Stir": {"Wake", ""}, "Stuck": {"Unschedulable", ""},
	"Tell": {"Propose", ""}, "Teller": {"Outbox", ""}, "Tide": {"CommitIndex", ""}, "Untold": {"Outbox", ""},
	"Vain": {"Unschedulable", ""}, "Wasted": {"Unsaved", ""}, "Whose": {"Owner", ""},

	"Asked": {"Requested", "core"}, "Working": {"Running", "core"}, "Leaving": {"Terminating", "core"},
	"Gone": {"Terminated", "core"}, "Home": {"CheckpointRegion", "core"}, "Bound": {"Migrating", "core"},
	"Without": {"Unplaced", "core"}, "Carry": {"Egress", "core"}, "Past": {"History", "core"},
	"Still": {"Outstanding", "budget"}, "Question": {"Scenario", "sim"},
}

// Words returns every private word in the package's declarations, comments and strings, except in tests.
func Words(p Package) (problems []string) {
	for _, f := range p.Files {
		if f.Test || path.Base(f.Name) == "words.go" && p.Dir == "internal/test/archtest" {
			continue
		}
		say := func(n ast.Node, text string) {
			for _, bad := range spoken(text) {
				problems = append(problems, fmt.Sprintf("%s: %s", f.Set.Position(n.Pos()), bad))
			}
		}
		for _, group := range f.Tree.Comments {
			say(group, group.Text())
		}
		ast.Inspect(f.Tree, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				say(lit, strings.Trim(lit.Value, "\"`"))
			}
			for _, name := range declared(n) {
				if n, private := names[name.Name]; private && (n.in == "" || within(p.Dir, "internal/"+n.in)) {
					problems = append(problems, fmt.Sprintf("%s: %s: write %s", f.Set.Position(name.Pos()), name.Name, n.say))
				}
			}
			return true
		})
	}
	return problems
}

// declared returns the names that a node declares at package level, as a field or as a method.
func declared(n ast.Node) []*ast.Ident {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{n.Name}
	case *ast.TypeSpec:
		return []*ast.Ident{n.Name}
	case *ast.ValueSpec:
		return n.Names
	case *ast.Field:
		return n.Names
	}
	return nil
}

// spoken returns the private words in a text, each with the usual word.
func spoken(text string) (list []string) {
	text = strings.Join(strings.Fields(text), " ")
	if strings.Contains(strings.ToLower(text), "carriage") {
		text = others.ReplaceAllString(text, "")
	}
	lower := strings.ToLower(text)
	for _, w := range words {
		has := func(part string) bool { return strings.Contains(lower, part) }
		if len(w.parts) > 0 && !slices.ContainsFunc(w.parts, has) {
			continue
		}
		if bad := w.text.FindString(text); bad != "" {
			list = append(list, fmt.Sprintf("%q: write %s", bad, w.Say))
		}
	}
	return list
}

// Document returns the private words of a Markdown file, by paragraph.
func Document(fsys fs.FS, name string) (problems []string, err error) {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	line := 1
	for _, paragraph := range strings.SplitAfter(string(text), "\n\n") {
		for _, bad := range spoken(paragraph) {
			problems = append(problems, fmt.Sprintf("%s:%d: %s", name, line, bad))
		}
		line += strings.Count(paragraph, "\n")
	}
	return problems, nil
}

// Documents lists the Markdown files below fsys whose words are checked. Changelogs are exempt, because they
// describe the past.
func Documents(fsys fs.FS) (names []string, err error) {
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skipped(d.Name()):
			return fs.SkipDir
		case path.Ext(name) == ".md" && name != "CHANGELOG.md":
			names = append(names, name)
		}
		return nil
	})
	return names, err
}
