package scaffold

import (
	"fmt"
	"regexp"
	"strings"
)

// progress is how the program shows how far it is.
type progress struct {
	pattern, saved string
	why            string
	epochs         bool // its steps are epochs
}

// progress reads what the script prints.
func (s script) progress() progress {
	var best, saved progress
	most := 0
	for _, c := range calls(s.text, "print", "info", "write", "log") {
		p := printed(c)
		switch {
		case p.score == 0:
		case regexp.MustCompile(`(?i)\bsaved\b`).MatchString(p.fixed):
			if saved.pattern == "" && p.score < 8 { // a line of progress may also speak of a save
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

// line is a printed line as a pattern.
type line struct {
	pattern string
	fixed   string // its fixed text
	sample  string // for people
	score   int    // 0: it shows no progress
	epochs  bool
}

// found are the words by which an expression, or the text before it, is known.
var (
	isEpoch = regexp.MustCompile(`(?i)epoch|\bep\b`)
	isStep  = regexp.MustCompile(
		`(?i)(?:^|[^a-z])(?:global_?|train_?|num_?|i?)(?:step|iter(?:ation)?|update)s?(?:_?num|_?idx|_?count)?(?:$|[^a-z])`)
	isBatch = regexp.MustCompile(`(?i)batch|\bi\b|\bidx\b`)
	isLoss  = regexp.MustCompile(`(?i)loss`)
	isValid = regexp.MustCompile(`(?i)val|eval|test|dev`)
	isOther = regexp.MustCompile(`(?i)\b(acc|accuracy|ppl|perplexity|lr|f1|auc|reward|bleu|rouge|error)`)
	// a variable, perhaps one more
	plainly = regexp.MustCompile(`(?i)^(?:int\()?[\w.]+(?:\[["']\w+["']\])?\)?(?:\s*\+\s*1)?$`)
)

// printed makes a pattern of a call that prints.
func printed(c call) line {
	var list []part
	for i, arg := range c.args {
		if regexp.MustCompile(`^\w+\s*=[^=]`).MatchString(arg) { // flush=True
			continue
		}
		if i > 0 {
			list = append(list, part{text: " "})
		}
		p := parts(arg, c.args[i+1:])
		list = append(list, p...)
		// a logger's arguments are in it
		if i == 0 && len(c.args) > 1 && strings.Count(arg, "%") > 0 && len(p) > 1 && !strings.Contains(arg, "{") {
			break
		}
	}
	return pattern(list)
}

// pattern makes a line's pattern: what is known by its words is a group, the
// rest is skipped. It ends with the last group.
func pattern(list []part) line {
	var l line
	epochs := false
	for _, p := range list {
		epochs = epochs || p.expr && isEpoch.MatchString(p.text)
	}
	taken := map[string]bool{}
	var b, sample strings.Builder
	end, before, last := 0, "", ""
	for _, p := range list {
		if !p.expr {
			text := unescape(p.text)
			l.fixed += text
			sample.WriteString(text)
			if k := strings.LastIndexByte(text, '\n'); k >= 0 {
				if len(taken) > 0 { // what follows is another line
					break
				}
				b.Reset()
				before, text = "", text[k+1:]
			}
			before += text
			b.WriteString(spaces(regexp.QuoteMeta(text)))
			continue
		}
		name := named(p.text, before, last, epochs)
		if taken[name] {
			name = ""
		}
		sample.WriteString("{" + p.text + "}")
		if p.wide && !strings.HasSuffix(b.String(), `\s+`) {
			b.WriteString(" *")
		}
		switch name {
		case "":
			b.WriteString(`\S*`)
		case "step", "total", "epoch", "epochs":
			fmt.Fprintf(&b, `(?P<%s>\d+)`, name)
		default:
			fmt.Fprintf(&b, `(?P<%s>[^\s,;|)}%%\]]+)`, name)
		}
		if name != "" {
			taken[name], end = true, b.Len()
		}
		last, before = name, ""
	}
	whole := strings.TrimLeft(strings.TrimPrefix(b.String()[:end], `\s+`), " ")
	switch {
	case taken["step"]:
		whole = strings.Replace(whole, "(?P<epochs>", "(?:", 1)
	case taken["epoch"]: // a count that rises is what is asked for
		whole, l.epochs = strings.NewReplacer("(?P<epoch>", "(?P<step>", "(?P<epochs>", "(?P<total>").Replace(whole), true
	}
	if taken["step"] || taken["epoch"] {
		l.score = 4
		for name, worth := range map[string]int{"step": 2, "loss": 4, "val_loss": 1, "total": 1, "epochs": 1, "epoch": 1} {
			if taken[name] {
				l.score += worth
			}
		}
	}
	if _, err := regexp.Compile(whole); err != nil || !printable(whole) {
		l.score = 0
	}
	if strings.HasPrefix(strings.TrimPrefix(whole, "*"), "(?") || strings.HasPrefix(whole, `\S*`) { // any number would do
		l.score = 0
	}
	l.pattern, l.sample = whole, strings.Join(strings.Fields(sample.String()), " ")
	return l
}

// named is the name of the group for an expression, "" for what is skipped:
// before is the text before it, last the group before that.
func named(expr, before, last string, epochs bool) string {
	word := strings.TrimRight(before, " :=\t([")
	slash := strings.HasSuffix(word, "/") || regexp.MustCompile(`(?i)\bof$`).MatchString(word)
	lead := regexp.MustCompile(`[\w ]*$`).FindString(word)
	switch {
	case slash && last == "step":
		return "total"
	case slash && last == "epoch":
		return "epochs" // the total, where the steps are epochs
	case slash:
		return ""
	case isLoss.MatchString(expr) || isLoss.MatchString(lead):
		if isValid.MatchString(expr) || isValid.MatchString(lead) {
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
	case isEpoch.MatchString(expr) || isEpoch.MatchString(lead):
		return "epoch"
	case isStep.MatchString(expr) || isStep.MatchString(lead) && (!epochs || !isBatch.MatchString(expr)):
		return "step"
	}
	return ""
}

// unescape reads what a string literal writes with a backslash.
func unescape(s string) string {
	return strings.NewReplacer(`\t`, "\t", `\n`, "\n", `\r`, "", `\'`, "'", `\"`, `"`, `\\`, `\`).Replace(s)
}

// spaces lets any space stand where there is more than one.
func spaces(s string) string {
	return regexp.MustCompile(`\s{2,}|[\t\r\n]`).ReplaceAllString(s, `\s+`)
}
