package stages

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"scrimp/internal/server/workdir"
	"scrimp/internal/work/pipeline"
)

// Limits on the figures kept.
const (
	mostFigures   = 200
	longestFigure = 100     // bytes of a name, and of a value
	figuresFile   = 1 << 20 // bytes
	deepest       = 8       // levels of maps within each other
)

// noNumber matches what Python writes for numbers that are not finite, which JSON lacks. The other numbers in the
// file still count.
var noNumber = regexp.MustCompile(`([:\[,]\s*)(?:NaN|-?Infinity)\b`)

// figures returns the numbers in JSON files by name; names of nested values are joined with dots. A name that occurs
// twice has no number. wrong says why a name has none; under "" it says which file could not be read.
func figures(items []workdir.Item, files []string) (all, wrong map[string]string) {
	r := &reader{all: map[string]string{}, wrong: map[string]string{}, seen: map[string]string{}}
	for _, i := range items {
		if !i.Mode.IsRegular() || i.Content == nil || !below(files, i.Path) {
			continue
		}
		if err := r.file(i); err != nil && r.wrong[""] == "" {
			r.wrong[""] = i.Path + " " + err.Error()
		}
	}
	if len(r.all) == 0 {
		r.all = nil
	}
	return r.all, r.wrong
}

// reader reads the figures of JSON files.
type reader struct {
	all, wrong map[string]string
	seen       map[string]string // by name: the file that has it
	path       string            // of the file that is read
	tokens     *json.Decoder
}

// file reads the figures of a file. Its error continues the file's name.
func (r *reader) file(i workdir.Item) error {
	if i.Size > figuresFile {
		return fmt.Errorf("has %d bytes: keep at most %d", i.Size, figuresFile)
	}
	var content bytes.Buffer
	if err := i.Content(&content); err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	text := strings.TrimPrefix(content.String(), "\ufeff")
	if strings.TrimSpace(text) == "" {
		return errors.New("is empty: write JSON with the metrics")
	}
	text = noNumber.ReplaceAllString(text, "${1}null")
	whole := json.NewDecoder(strings.NewReader(text))
	whole.UseNumber()
	var v any
	if err := whole.Decode(&v); err != nil {
		return fmt.Errorf("is not JSON: %w", err)
	}
	if _, err := whole.Token(); !errors.Is(err, io.EOF) {
		return errors.New("is not JSON: text follows its value")
	}
	if _, is := v.(map[string]any); !is {
		return errors.New("has no names: write a map such as {\"accuracy\": 0.9}")
	}
	r.path, r.tokens = i.Path, json.NewDecoder(strings.NewReader(text))
	r.tokens.UseNumber()
	return r.value("", 0)
}

// value reads the next value of the file, which has the name.
func (r *reader) value(name string, deep int) error {
	t, err := r.tokens.Token()
	if err != nil {
		return err
	}
	switch t := t.(type) {
	case json.Number:
		r.number(name, t.String())
	case json.Delim:
		if t == '[' {
			r.lacks(name, "is a list")
		}
		for r.tokens.More() {
			at := name
			if t == '{' {
				key, err := r.tokens.Token()
				if err != nil {
					return err
				}
				at = strings.TrimPrefix(fmt.Sprint(name, ".", key), ".")
			}
			if t == '[' || deep >= deepest {
				var skipped json.RawMessage
				if err := r.tokens.Decode(&skipped); err != nil {
					return err
				}
				continue
			}
			if err := r.value(at, deep+1); err != nil {
				return err
			}
		}
		_, err = r.tokens.Token()
		return err
	case string:
		r.lacks(name, fmt.Sprintf("is the text %.40q: write a number without quotes", t))
	case bool:
		r.lacks(name, "is true or false")
	default:
		r.lacks(name, "is null, NaN or infinite")
	}
	return nil
}

// number keeps a number, unless its name occurs twice.
func (r *reader) number(name, text string) {
	if _, err := pipeline.Decimal(text); err != nil || len(text) > longestFigure {
		r.lacks(name, fmt.Sprintf("has too many digits: keep at most %d", longestFigure))
		return
	}
	if !r.first(name) {
		return
	}
	switch {
	case name == "":
	case len(name) > longestFigure:
		r.wrong[name] = fmt.Sprintf("its name is longer than %d bytes", longestFigure)
	case len(r.all) >= mostFigures:
		r.wrong[name] = fmt.Sprintf("%s is not among the first %d numbers", name, mostFigures)
	default:
		r.all[name] = text
	}
}

// lacks notes why a name has no number.
func (r *reader) lacks(name, why string) {
	if r.first(name) && name != "" {
		r.wrong[name] = fmt.Sprintf("%s of %s %s", name, r.path, why)
	}
}

// first reports whether the name occurs for the first time. A name that occurs twice has no number: nobody knows which
// of the two counts.
func (r *reader) first(name string) bool {
	other, twice := r.seen[name]
	if !twice {
		r.seen[name] = r.path
		return true
	}
	delete(r.all, name)
	if r.wrong[name] = fmt.Sprintf("%s has %s twice", r.path, name); other != r.path {
		r.wrong[name] = fmt.Sprintf("%s and %s both have %s", other, r.path, name)
	}
	return false
}

// lacking says by name why a stage has no number for a metric that a gate judges; wrong is the result of figures.
func lacking(p *pipeline.Spec, stage int, has, wrong map[string]string) map[string]string {
	x := &p.Stages[stage]
	if len(x.Metrics) == 0 {
		return nil
	}
	judged := p.JudgedOf(stage)
	if x.Sample != "" { // the gates of the whole pipeline judge it, too
		judged = append(judged, p.JudgedOf(p.Find(x.Of))...)
	}
	var list map[string]string
	for _, m := range judged {
		if _, there := has[m]; there {
			continue
		}
		if list == nil {
			list = map[string]string{}
		}
		list[m] = cmp.Or(wrong[m], wrong[""], fmt.Sprintf("%s has no number %s", strings.Join(x.Metrics, " or "), m))
	}
	return list
}
