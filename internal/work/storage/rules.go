package storage

import (
	"fmt"
	"math/big"
	"path"
	"strings"
	"time"

	"scrimp/internal/job/spec"
	"scrimp/internal/lib/draw"
	"scrimp/internal/work/sheet"
)

// What a rule does with a file.
const (
	Keep   = "keep"
	Tier   = "tier"   // move it to another storage class
	Delete = "delete" // remove it
)

// A Rule says what happens to files of a kind that nobody used for some time. The first rule that matches a file
// counts.
type Rule struct {
	Kind      Kind   // "": every kind
	Under     string // prefix of the path below the place; "": all
	OlderThan time.Duration
	Action    string
	Class     string   // target of a tier rule
	Reads     *big.Rat // how often a year a file is read after its move
}

const (
	day = 24 * time.Hour
	// leastSpan keeps a file that a program may still be writing.
	leastSpan = day
	maxSpan   = 3650 * day
	// horizon is how long files stay in a class if no rule deletes them.
	horizon  = 365 * day
	maxRules = 100
	maxReads = 10_000
)

// String returns the rule as one phrase.
func (r Rule) String() string {
	text := r.Action + " "
	if r.Action == Tier {
		text = "move to " + r.Class + " "
	}
	if r.Kind == "" {
		text += "all files"
	} else {
		text += string(r.Kind)
	}
	if r.Under != "" {
		text += " under " + r.Under
	}
	if r.OlderThan > 0 {
		text += " unused for " + draw.Count(int(r.OlderThan/day), "day")
	}
	return text
}

// matches reports whether the rule is about files of a kind at a path, whatever their age.
func (r Rule) matches(k Kind, file string) bool {
	return (r.Kind == "" || r.Kind == k) && strings.HasPrefix(file, r.Under)
}

// DefaultRules apply if the user gives none.
func DefaultRules() []Rule {
	return []Rule{
		{Kind: Checkpoints, OlderThan: 30 * day, Action: Delete},
		{Kind: Profiles, OlderThan: 30 * day, Action: Delete},
		{Kind: Logs, OlderThan: 90 * day, Action: Delete},
		{Kind: TensorBoard, OlderThan: 180 * day, Action: Delete},
	}
}

// ParseRules reads a file of rules.
func ParseRules(file string, text []byte) (list []Rule, err error) {
	r, root := sheet.Open(file, text)
	items := root.Fields("rules")["rules"]
	all := items.List()
	if len(all) == 0 || len(all) > maxRules {
		items.Wrong(fmt.Sprintf("has %d rules", len(all)), fmt.Sprintf("write 1 to %d, each with kind and action", maxRules))
	}
	for _, n := range all {
		list = append(list, rule(n))
	}
	return list, r.Err()
}

func rule(n sheet.Node) (r Rule) {
	f := n.Fields("kind", "under", "older_than", "action", "class", "reads")
	words := []string{"all"}
	for _, k := range Kinds {
		words = append(words, string(k))
	}
	if !f["kind"].There() {
		n.Wrong("has no kind", "write kind: and one of "+strings.Join(words, ", "))
	}
	if k := f["kind"].Word(words...); k != "all" {
		r.Kind = Kind(k)
	}
	r.Action = f["action"].Word(Keep, Tier, Delete)
	if !f["action"].There() {
		n.Wrong("has no action", "write action: keep, tier or delete")
	}
	r.Under = f["under"].Text()
	if f["under"].There() && !isUnder(r.Under) {
		f["under"].Wrong(fmt.Sprintf("is %.40q", r.Under), "write a path below the folder or bucket, without / in front")
	}
	r.OlderThan = span(f["older_than"])
	if r.Action != Keep && r.Action != "" && !f["older_than"].There() {
		n.Wrong("has no older_than", "write a span such as 90d")
	}
	r.tier(n, f)
	return r
}

// tier reads the fields of a rule that moves files.
func (r *Rule) tier(n sheet.Node, f map[string]sheet.Node) {
	tier := r.Action == Tier
	for _, name := range []string{"class", "reads"} {
		if f[name].There() && !tier && r.Action != "" {
			f[name].Wrong("goes with action: tier", "leave it out")
		}
	}
	if !tier {
		return
	}
	r.Class = f["class"].Text()
	if !f["class"].There() {
		n.Wrong("has no class", classFix)
	} else if r.Class == "" || strings.ContainsFunc(r.Class, notInClass) {
		f["class"].Wrong(fmt.Sprintf("is %.40q", r.Class), classFix)
	}
	var ok bool
	if r.Reads, ok = f["reads"].Decimal(); !ok {
		r.Reads = big.NewRat(1, 1)
	}
	if f["reads"].IsPercent() || r.Reads.Cmp(big.NewRat(maxReads, 1)) > 0 {
		f["reads"].Wrong("is not a number of reads a year", fmt.Sprintf("write 0 to %d, such as 0.5", maxReads))
	}
}

const classFix = "write the storage class as the provider does, such as STANDARD_IA"

// notInClass reports whether no storage class has the character.
func notInClass(c rune) bool {
	return c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
}

// isUnder reports whether a text is a path below a place, and no path above it.
func isUnder(text string) bool {
	return text != "" && text[0] != '/' && path.Clean("/" + text)[1:] == strings.TrimSuffix(text, "/")
}

// span reads how long a file must be unused.
func span(n sheet.Node) time.Duration {
	if !n.There() {
		return 0
	}
	d, err := spec.ParseDuration(n.Text())
	if err != nil || d < leastSpan || d > maxSpan || d%day != 0 {
		n.Wrong(fmt.Sprintf("is %.40q", n.Text()), "write whole days from 1d to 3650d")
		return leastSpan
	}
	return d
}

// stay returns how long files stay in the class of a tier rule until a rule deletes them.
func stay(rules []Rule, r Rule) time.Duration {
	least := horizon
	for _, d := range rules {
		same := d.Kind == "" || d.Kind == r.Kind
		if d.Action == Delete && same && strings.HasPrefix(r.Under, d.Under) && d.OlderThan > r.OlderThan {
			least = min(least, d.OlderThan-r.OlderThan)
		}
	}
	return least
}
