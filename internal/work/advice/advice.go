// Package advice reads the recommendations that clouds export: AWS Compute Optimizer and Cost Optimization Hub, Google
// Cloud's Recommender, and Azure Advisor. Each becomes one action of scrimp waste, with what it saves in a month of 30
// days, a command that changes nothing, and the command that does it.
package advice

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/waste"
)

// Bounds of a file: its bytes, its recommendations, and the bytes of a text that is kept.
const (
	mostBytes = 64 << 20
	mostRows  = 50_000
	mostText  = 200
)

// Recommendation is one recommendation of a cloud.
type Recommendation struct {
	Source   string       `json:"source"`
	Resource string       `json:"resource"` // its id or name; "": it concerns the account
	Type     string       `json:"type"`     // of the resource, in the cloud's words
	Advice   string       `json:"advice"`   // in the cloud's words
	Action   waste.Action `json:"action"`
	// Saving is the cloud's estimate of the saving in 30 days; nil: unknown.
	Saving   *money.Amount  `json:"saving_a_month"`
	Currency money.Currency `json:"currency,omitempty"`
	Check    string         `json:"check,omitempty"` // command that changes nothing
	Command  string         `json:"command"`         // command that does it
	// Billed is what the bill of --bill has for the resource; nil: no bill was given, or it has no such resource.
	Billed *money.Amount `json:"billed"`
	Scrimp string        `json:"scrimp,omitempty"` // what scrimp knows of the resource
}

// Formats lists the files of Read, for people.
const Formats = "CSV of AWS Compute Optimizer or of AWS Cost Optimization Hub, JSON of gcloud recommender " +
	"recommendations list, and CSV of Azure Advisor"

// Read reads the recommendations of a file. The name is for errors.
func Read(name string, in io.Reader) (list []Recommendation, err error) {
	r := bufio.NewReader(&bounded{from: in, left: mostBytes})
	if mark, _ := r.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = r.Discard(3)
	}
	head, err := r.Peek(512)
	text := bytes.TrimSpace(head)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("read %s: %w", name, err)
	case len(text) == 0:
		return nil, fmt.Errorf("%s is empty: give %s", name, Formats)
	case text[0] == '[' || text[0] == '{':
		list, err = readGoogle(r)
	default:
		list, err = readTable(r)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return list, nil
}

// bounded fails after so many bytes instead of ending.
type bounded struct {
	from io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errors.New("it is longer than 64 MiB: export fewer recommendations")
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err //nolint:wrapcheck // it stands in for the reader that it limits
}

var errMany = fmt.Errorf("it has more than %d recommendations: export fewer", mostRows)

// table is a row of CSV with its columns by name: lower-case letters and digits alone.
type table struct {
	at  map[string]int
	row []string
}

// get returns the first value of these columns that is not empty.
func (t *table) get(names ...string) string {
	for _, name := range names {
		if at, ok := t.at[name]; ok && at < len(t.row) {
			if text := strings.TrimSpace(t.row[at]); text != "" {
				return strings.Clone(text[:min(len(text), mostText)])
			}
		}
	}
	return ""
}

func (t *table) has(names ...string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { _, ok := t.at[n]; return !ok })
}

var apart = regexp.MustCompile(`[^a-z0-9]+`)

// readTable reads the CSV of a cloud, which it tells by its columns.
func readTable(in io.Reader) (list []Recommendation, err error) {
	c := csv.NewReader(in)
	c.FieldsPerRecord, c.ReuseRecord = -1, true
	head, err := c.Read()
	if err != nil {
		return nil, fmt.Errorf("read the first row: %w", err)
	}
	t := table{at: map[string]int{}}
	for i, name := range head {
		t.at[apart.ReplaceAllString(strings.ToLower(name), "")] = i
	}
	var of func(*table) (Recommendation, bool, error)
	switch {
	case t.has("actiontype", "recommendationid"):
		of = hub
	case t.has("finding") && slices.ContainsFunc(arns, func(n string) bool { return t.has(n) }):
		of = optimizer
	case t.has("category", "recommendation"):
		of = advisor
	default:
		return nil, fmt.Errorf("the columns are of no recommendations that scrimp knows (the first is %.40q): give %s",
			head[0], Formats)
	}
	for {
		t.row, err = c.Read()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read a row: %w", err)
		}
		one, ok, err := of(&t)
		line, _ := c.FieldPos(0)
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d: %w", line, err)
		case len(list) >= mostRows:
			return nil, errMany
		case ok:
			list = append(list, one)
		}
	}
}

// saves sets what a recommendation saves, from an amount for a span. An empty text is unknown.
func (r *Recommendation) saves(text, currency string, span time.Duration) error {
	if text == "" {
		return nil
	}
	if at := strings.IndexByte(text, '.'); at >= 0 && len(text) > at+13 && !strings.ContainsAny(text, "eE") {
		text = text[:at+13] // an amount has 12 places, and an estimate often more
	}
	d, err := decimal.Parse(text)
	if err != nil {
		return fmt.Errorf("the saving %.40q is not a number: correct the row, or export the file again", text)
	}
	return r.savesAmount(d, currency, span)
}

func (r *Recommendation) savesAmount(d decimal.Decimal, currency string, span time.Duration) error {
	amount, ok := d.Amount()
	if ok {
		amount, ok = waste.Scaled(amount, waste.Month, span)
	}
	if r.Currency = money.Currency(currency); !ok || !r.Currency.Valid() {
		return fmt.Errorf("the saving %.40s %.10q is too precise, too large, or in no currency", d, currency)
	}
	r.Saving = &amount
	return nil
}

// plain matches what a shell reads as one word without a meaning of its own.
var plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/+@-]*$`)

// does sets the commands of a recommendation, unless a word from the file is missing or a shell could read it
// otherwise.
func (r *Recommendation) does(check, command string, words ...string) {
	if slices.ContainsFunc(words, func(w string) bool { return !plain.MatchString(w) }) {
		r.byHand()
		return
	}
	r.Check, r.Command = check, command
}

// byHand says that scrimp knows no command.
func (r *Recommendation) byHand() {
	r.Check, r.Command = "", "carry it out in the provider's console: look the resource up there"
}

// buys makes a recommendation one to buy a commitment, which scrimp plans from the jobs' own demand.
func (r *Recommendation) buys() {
	r.Action, r.Check = waste.Keep, ""
	r.Command = "scrimp commit history --capacity on-demand > demand.csv && scrimp commit plan --demand demand.csv"
}

// Last returns what follows the last slash or colon: the id in an ARN or a path.
func Last(text string) string { return text[strings.LastIndexAny(text, "/:")+1:] }

// Total is what the recommendations of a currency save: of each resource the largest saving, without those to keep.
type Total struct {
	Currency money.Currency `json:"currency"`
	Saving   money.Amount   `json:"saving_a_month"`
}

// Totals adds the savings up by currency.
func Totals(list []Recommendation) (totals []Total) {
	type key struct {
		currency money.Currency
		resource string
	}
	most := map[key]money.Amount{}
	for _, r := range list {
		if k := (key{r.Currency, r.Resource}); r.Saving != nil && r.Action != waste.Keep && r.Saving.Cmp(most[k]) > 0 {
			most[k] = *r.Saving
		}
	}
	by := map[money.Currency]money.Amount{}
	for k, a := range most {
		by[k.currency] = by[k.currency].Add(a) // exact, so the order does not matter
	}
	totals = []Total{}
	for c, a := range by {
		totals = append(totals, Total{c, a})
	}
	slices.SortFunc(totals, func(a, b Total) int { return cmp.Compare(a.Currency, b.Currency) })
	return totals
}

// Sort puts the largest saving first, and unknown ones last.
func Sort(list []Recommendation) {
	value := func(r Recommendation) money.Amount {
		if r.Saving == nil {
			return money.Picos(-1)
		}
		return *r.Saving
	}
	slices.SortStableFunc(list, func(a, b Recommendation) int { return -value(a).Cmp(value(b)) })
}
