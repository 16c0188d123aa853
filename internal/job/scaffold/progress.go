package scaffold

import (
	"fmt"
	"regexp"
	"strings"

	"scrimp/internal/job/scaffold/pycall"
)

// progress describes how the program prints its progress.
type progress struct {
	pattern, saved string
	why            string
	epochs         bool // its steps are epochs
}

// progress finds the progress output in the script's print calls.
func (s script) progress() progress {
	var best, saved progress
	most := 0
	for _, c := range pycall.Calls(s.text, "print", "info", "write", "log") {
		p := printed(c)
		switch {
		case p.score == 0:
		case regexp.MustCompile(`(?i)\bsaved\b`).MatchString(p.fixed):
			if saved.pattern == "" && p.score < 8 { // a progress line may also mention a save
				saved.pattern = p.pattern
			}
		case p.score > most:
			most, best = p.score, progress{pattern: p.pattern, epochs: p.epochs,
				why: fmt.Sprintf("%s prints %s", s.file, p.sample)}
		}
	}
	if best.pattern != "" {
		best.saved = saved.pattern
		return best
	}
	switch {
	case s.trainer():
		return progress{why: "The Hugging Face Trainer prints no whole steps: scrimp.huggingface.ScrimpCallback or " +
			"report_to=\"kubeflow\" tell them, see docs/programs.md."}
	case s.imports("lightning") || s.imports("pytorch_lightning"):
		return progress{why: "Lightning prints no lines: scrimp.lightning.ScrimpCallback tells them, see docs/programs.md."}
	case (s.imports("keras") || s.imports("tensorflow")) && strings.Contains(s.text, ".fit("):
		return progress{pattern: `Epoch (?P<step>\d+)/(?P<total>\d+)`, why: "Keras prints Epoch 3/10", epochs: true}
	}
	return best
}

// line is a printed line and its pattern.
type line struct {
	pattern string
	fixed   string // its fixed text
	sample  string // for people
	score   int    // 0 if it shows no progress
	epochs  bool
}

// Words that identify an expression, or the text before it.
var (
	isEpoch = regexp.MustCompile(`(?i)epoch|\bep\b`)
	isStep  = regexp.MustCompile(
		`(?i)(?:^|[^a-z])(?:global_?|train_?|num_?|i?)(?:step|iter(?:ation)?|update)s?(?:_?num|_?idx|_?count)?(?:$|[^a-z])`)
	isBatch = regexp.MustCompile(`(?i)batch|\bi\b|\bidx\b`)
	isLoss  = regexp.MustCompile(`(?i)loss`)
	isValid = regexp.MustCompile(`(?i)val|eval|test|dev`)
	isOther = regexp.MustCompile(`(?i)\b(acc|accuracy|ppl|perplexity|lr|f1|auc|reward|bleu|rouge|error)`)
	// A variable, possibly plus one.
	plainly = regexp.MustCompile(`(?i)^(?:int\()?[\w.]+(?:\[["']\w+["']\])?\)?(?:\s*\+\s*1)?$`)
)

// printed returns the pattern of a print call.
func printed(c pycall.Call) line {
	var list []pycall.Part
	for i, arg := range c.Args {
		if regexp.MustCompile(`^\w+\s*=[^=]`).MatchString(arg) { // flush=True
			continue
		}
		if i > 0 {
			list = append(list, pycall.Part{Text: " "})
		}
		p := pycall.Parts(arg, c.Args[i+1:])
		list = append(list, p...)
		// A logger's arguments are part of its format.
		if i == 0 && len(c.Args) > 1 && strings.Count(arg, "%") > 0 && len(p) > 1 && !strings.Contains(arg, "{") {
			break
		}
	}
	return pattern(list)
}

// pattern builds a line's pattern: known expressions become groups, other text is skipped. The pattern ends with the
// last group.
func pattern(list []pycall.Part) line {
	w := writing{taken: map[string]bool{}}
	for _, p := range list {
		w.epochs = w.epochs || p.Expr && isEpoch.MatchString(p.Text)
	}
	for _, p := range list {
		if p.Expr {
			w.expression(p)
		} else if !w.text(unescape(p.Text)) {
			break
		}
	}
	l := line{fixed: w.fixed, sample: strings.Join(strings.Fields(w.sample.String()), " "), score: w.score()}
	l.pattern = strings.TrimLeft(strings.TrimPrefix(w.b.String()[:w.end], `\s+`), " ")
	switch {
	case w.taken["step"]:
		l.pattern = strings.Replace(l.pattern, "(?P<epochs>", "(?:", 1)
	case w.taken["epoch"]: // it needs an increasing count
		l.pattern, l.epochs = epochsAreSteps.Replace(l.pattern), true
	}
	if _, err := regexp.Compile(l.pattern); err != nil || !printable(l.pattern) {
		l.score = 0
	}
	if strings.HasPrefix(strings.TrimPrefix(l.pattern, "*"), "(?") || strings.HasPrefix(l.pattern, `\S*`) {
		l.score = 0 // it would match any number
	}
	return l
}

var epochsAreSteps = strings.NewReplacer("(?P<epoch>", "(?P<step>", "(?P<epochs>", "(?P<total>")

// writing is a pattern under construction.
type writing struct {
	b, sample    strings.Builder
	fixed        string
	epochs       bool            // an expression mentions epochs
	taken        map[string]bool // groups so far
	end          int             // of the last group
	before, last string          // the text since the last expression, and that expression's group
}

// text adds fixed text, and reports whether the line continues after it.
func (w *writing) text(text string) bool {
	w.fixed += text
	w.sample.WriteString(text)
	if k := strings.LastIndexByte(text, '\n'); k >= 0 {
		if len(w.taken) > 0 { // the rest is another line
			return false
		}
		w.b.Reset()
		w.before, text = "", text[k+1:]
	}
	w.before += text
	w.b.WriteString(spaces(regexp.QuoteMeta(text)))
	return true
}

// expression adds a printed expression, as a group if it is known.
func (w *writing) expression(p pycall.Part) {
	name := named(p.Text, w.before, w.last, w.epochs)
	if w.taken[name] {
		name = ""
	}
	w.sample.WriteString("{" + p.Text + "}")
	if p.Wide && !strings.HasSuffix(w.b.String(), `\s+`) {
		w.b.WriteString(" *")
	}
	switch name {
	case "":
		w.b.WriteString(`\S*`)
	case "step", "total", "epoch", "epochs":
		fmt.Fprintf(&w.b, `(?P<%s>\d+)`, name)
	default:
		fmt.Fprintf(&w.b, `(?P<%s>[^\s,;|)}%%\]]+)`, name)
	}
	if name != "" {
		w.taken[name], w.end = true, w.b.Len()
	}
	w.last, w.before = name, ""
}

// score rates how much progress the groups show; 0 means none.
func (w *writing) score() int {
	if !w.taken["step"] && !w.taken["epoch"] {
		return 0
	}
	score := 4
	for name, worth := range map[string]int{"step": 2, "loss": 4, "val_loss": 1, "total": 1, "epochs": 1, "epoch": 1} {
		if w.taken[name] {
			score += worth
		}
	}
	return score
}

// named returns the group of an expression, or "" to skip it. before is the text before it, and last the previous
// group.
func named(expr, before, last string, epochs bool) string {
	word := strings.TrimRight(before, " :=\t([")
	if strings.HasSuffix(word, "/") || regexp.MustCompile(`(?i)\bof$`).MatchString(word) {
		return map[string]string{"step": "total", "epoch": "epochs"}[last] // the total, in epochs if the steps are epochs
	}
	lead := regexp.MustCompile(`[\w ]*$`).FindString(word)
	says := func(form *regexp.Regexp) bool { return form.MatchString(expr) || form.MatchString(lead) }
	switch {
	case says(isLoss):
		if says(isValid) {
			return "val_loss"
		}
		return "loss"
	case isOther.MatchString(lead):
		name := strings.ToLower(isOther.FindString(lead))
		if isValid.MatchString(lead) {
			name = "val_" + name
		}
		return name
	case !plainly.MatchString(expr):
		return ""
	case says(isEpoch):
		return "epoch"
	case isStep.MatchString(expr) || isStep.MatchString(lead) && (!epochs || !isBatch.MatchString(expr)):
		return "step"
	}
	return ""
}

// unescape decodes the escapes of a string literal.
func unescape(s string) string {
	return strings.NewReplacer(`\t`, "\t", `\n`, "\n", `\r`, "", `\'`, "'", `\"`, `"`, `\\`, `\`).Replace(s)
}

// spaces replaces several spaces by a pattern that matches any space.
func spaces(s string) string {
	return regexp.MustCompile(`\s{2,}|[\t\r\n]`).ReplaceAllString(s, `\s+`)
}
