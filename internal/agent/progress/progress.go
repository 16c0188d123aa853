// Package progress reads the progress of a program from its output, its progress file and its posts.
package progress

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/lib/quantity"
	"scrimp/internal/wire/api"
)

// Limits on what a program may report: the number of metrics, the bytes of a metric's name, and the
// reports in one post. The agent drops the rest; the limits of the server are lower.
const (
	maxMetrics = 1000
	maxName    = 128
	maxReports = 1000
)

// Merge adds newer progress to older progress that was not sent yet. It takes over the maps of
// both. Metrics that only the older progress has stay, because programs print loss and accuracy on
// separate lines.
func Merge(older, newer api.Step) api.Step {
	if newer.Step == 0 {
		newer.Step = older.Step
	}
	if newer.Total == 0 && !newer.Anew {
		newer.Total, newer.Anew = older.Total, older.Anew
	}
	if newer.Epoch == 0 {
		newer.Epoch = older.Epoch
	}
	metrics, broken := older.Metrics, older.Broken
	for _, name := range newer.Broken {
		at, known := slices.BinarySearch(broken, name)
		if !known && len(broken) < maxMetrics {
			broken = slices.Insert(broken, at, name)
		}
		delete(metrics, name)
	}
	if metrics == nil && len(newer.Metrics) > 0 {
		metrics = make(map[string]float64, len(newer.Metrics))
	}
	for name, v := range newer.Metrics {
		if _, known := metrics[name]; known || len(metrics) < maxMetrics {
			metrics[name] = v
		}
	}
	newer.Metrics, newer.Broken = nil, nil
	if len(metrics) > 0 {
		newer.Metrics = metrics
	}
	if len(broken) > 0 {
		newer.Broken = broken
	}
	return newer
}

// setMetric sets a metric, or marks it as broken if the value is not finite or out of bounds.
func setMetric(s *api.Step, name string, value float64) {
	if len(name) > maxName || len(s.Metrics) >= maxMetrics {
		return
	}
	if !quantity.Metric.Allows(value) {
		if len(s.Broken) < maxMetrics && !slices.Contains(s.Broken, name) {
			s.Broken = append(s.Broken, name)
		}
		return
	}
	if s.Metrics == nil {
		s.Metrics = map[string]float64{}
	}
	s.Metrics[name] = value
}

// epochFields lists the names for the number of epochs that a program runs.
var epochFields = []string{"epochs", "total_epochs", "totalEpochs"}

// setField sets the field of s that name stands for. It reports whether that was the step.
func setField(s *api.Step, name string, value float64) bool {
	switch name {
	case "step", "current_step", "currentStep", "global_step":
		s.Step = max(0, quantity.Int(value))
		return true
	case "total", "total_steps", "totalSteps":
		s.Total = max(0, quantity.Int(value))
	case "epoch", "current_epoch", "currentEpoch":
		if !math.IsNaN(value) && !math.IsInf(value, 0) {
			s.Epoch = value
		}
	case "total_epochs", "totalEpochs", "epochs":
	default:
		setMetric(s, name, value)
	}
	return false
}

// Parse reads {"step":12,"total":100,"epoch":1.5,"loss":2.3}, or the same with the metrics in
// "metrics". It accepts NaN and Infinity, which Python writes although JSON has no such numbers. ok
// is false if no value is a number.
func Parse(b []byte) (s api.Step, ok bool, err error) {
	s, ok, _, err = parse(b)
	return s, ok, err
}

// parse is Parse. wrong is the first field whose value is no number and not null, with the reason.
func parse(b []byte) (s api.Step, ok bool, wrong, err error) {
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(quoteNaN(b)))
	decoder.UseNumber() // 1e999 is a valid number in JSON, and too large for float64
	if err := decoder.Decode(&fields); err != nil {
		return s, false, nil, fmt.Errorf("progress is not a JSON object: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return s, false, nil, errors.New("progress has text after its JSON object: write one report a line, or a list")
	}
	take := func(path, name string, v any, set func(string, float64)) {
		f, is := number(v)
		switch {
		case is:
			set(name, f)
			ok = true
		case v != nil && wrong == nil:
			wrong = fmt.Errorf("%.100s is %.100s, which is not a number: send a number, or leave the field out", path,
				asText(v))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		metrics, is := fields[name].(map[string]any)
		if !is || name != "metrics" {
			take(name, name, fields[name], func(name string, f float64) { setField(&s, name, f) })
			continue
		}
		for _, metric := range slices.Sorted(maps.Keys(metrics)) {
			take("metrics."+metric, metric, metrics[metric], func(name string, f float64) { setMetric(&s, name, f) })
		}
	}
	if !ok && wrong == nil {
		wrong = errors.New("the report has no number: send step, total, epoch or a metric")
	}
	return s, ok, wrong, nil
}

// asText returns a decoded value as it stood in the report.
func asText(v any) string {
	b, _ := json.Marshal(v) // it was JSON, so it cannot fail
	return string(b)
}

// ParseAll calls Parse for one report or for each of a list. It returns what it can read, also with an error, which
// names the first report and field that it cannot.
func ParseAll(b []byte) (all []api.Step, err error) {
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, errors.New(`the body is empty: send a report such as {"step":12,"metrics":{"loss":2.3}}, or a list`)
	}
	list, many := []json.RawMessage{b}, false
	if quoted := quoteNaN(b); bytes.HasPrefix(bytes.TrimSpace(quoted), []byte("[")) {
		if err := json.Unmarshal(quoted, &list); err != nil {
			return nil, fmt.Errorf("progress is not a JSON list: %w", err)
		}
		if len(list) > maxReports {
			return nil, fmt.Errorf("%d reports in one list, want %d or fewer", len(list), maxReports)
		}
		if many = true; len(list) == 0 {
			return nil, errors.New("the list has no report: send one or more")
		}
	}
	for i, one := range list {
		s, ok, wrong, no := parse(one)
		if ok {
			all = append(all, s)
		}
		if no = cmp.Or(no, wrong); no != nil && err == nil {
			if err = no; many {
				err = fmt.Errorf("report %d of the list: %w", i+1, no)
			}
		}
	}
	return all, err
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case json.Number:
		return number(v.String())
	case string:
		f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		return f, err == nil || errors.Is(err, strconv.ErrRange) // beyond the range it is infinite, so that it ends the job
	}
	return 0, false
}

// grouped matches a number whose digits before the point are in groups of three.
var grouped = regexp.MustCompile(`^\s*[+-]?\d{1,3}(,\d{3})+(\.\d*)?([eE][+-]?\d+)?\s*$`)

// ungrouped removes the commas between groups of three digits. Any other comma stays, so that the text does not
// parse as a number: "3,5" may be 3.5.
func ungrouped(text string) string {
	if !grouped.MatchString(text) {
		return text
	}
	return strings.ReplaceAll(text, ",", "")
}

// quoteNaN puts quotes around the bare words NaN, Infinity and -Infinity outside strings.
func quoteNaN(b []byte) []byte {
	if !bytes.Contains(b, []byte("NaN")) && !bytes.Contains(b, []byte("Infinity")) {
		return b
	}
	var out bytes.Buffer
	inside := false
scan:
	for i := 0; i < len(b); i++ {
		switch {
		case inside && b[i] == '\\' && i+1 < len(b):
			out.Write(b[i : i+2])
			i++
			continue
		case b[i] == '"':
			inside = !inside
		case !inside:
			for _, word := range []string{"-Infinity", "Infinity", "NaN"} {
				if bytes.HasPrefix(b[i:], []byte(word)) {
					out.WriteString(`"` + word + `"`)
					i += len(word) - 1
					continue scan
				}
			}
		}
		out.WriteByte(b[i])
	}
	return out.Bytes()
}

// Patterns read progress from lines of output.
type Patterns struct {
	progress, saved *regexp.Regexp // nil: not used
}

// Compile compiles the patterns of a job file.
func Compile(p api.Progressing) (Patterns, error) {
	var out Patterns
	for _, c := range []struct {
		name, text string
		into       **regexp.Regexp
	}{{"progress.pattern", p.Pattern, &out.progress}, {"progress.saved", p.Saved, &out.saved}} {
		if c.text == "" {
			continue
		}
		re, err := regexp.Compile(c.text)
		if err != nil {
			return out, fmt.Errorf("%s: %w", c.name, err)
		}
		*c.into = re
	}
	return out, nil
}

// Found is what Read found in a line.
type Found struct {
	Step      api.Step
	IsStep    bool
	Epochs    float64 // number of epochs the program runs; 0: unknown
	Saved     bool
	SavedStep int64 // step of the save; 0: unknown
}

// Any reports whether there is any pattern.
func (p Patterns) Any() bool { return p.progress != nil || p.saved != nil }

// Announces reports whether the output announces complete saves.
func (p Patterns) Announces() bool { return p.saved != nil }

// Read looks for progress in a line.
func (p Patterns) Read(line []byte) Found {
	var f Found
	if p.progress != nil {
		if m := p.progress.FindSubmatch(line); m != nil {
			for i, name := range p.progress.SubexpNames() {
				if name == "" || m[i] == nil {
					continue
				}
				if v, ok := number(ungrouped(string(m[i]))); ok {
					if slices.Contains(epochFields, name) && !math.IsInf(v, 0) {
						f.Epochs = v
					}
					setField(&f.Step, name, v)
					f.IsStep = true
				}
			}
		}
	}
	if p.saved != nil {
		if m := p.saved.FindSubmatch(line); m != nil {
			f.Saved = true
			if i := p.saved.SubexpIndex("step"); i > 0 && m[i] != nil {
				f.SavedStep, _ = strconv.ParseInt(string(m[i]), 10, 64) // 0 if it is not a number
			}
		}
	}
	return f
}

// trainerStatus is the body of Kubeflow Trainer's status endpoint. All fields are optional.
type trainerStatus struct {
	TrainerStatus *struct {
		ProgressPercentage        *int32 `json:"progressPercentage"`
		EstimatedRemainingSeconds *int32 `json:"estimatedRemainingSeconds"`
		Metrics                   []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"metrics"`
	} `json:"trainerStatus"`
}

// ParseTrainer parses a trainerStatus. If the program reports no step, the percentage becomes the
// step: out of total, the steps of the job, or out of 100 if total is unknown.
func ParseTrainer(b []byte, total int64) (s api.Step, ok bool, err error) {
	var body trainerStatus
	if err := json.Unmarshal(b, &body); err != nil {
		return s, false, fmt.Errorf("trainer status is not a JSON object: %w", err)
	}
	t := body.TrainerStatus
	if t == nil {
		return s, false, nil
	}
	named := false
	for _, m := range t.Metrics {
		if f, is := number(m.Value); is && m.Name != "" {
			named = setField(&s, m.Name, f) || named
			ok = true
		}
	}
	if p := t.ProgressPercentage; p != nil {
		if *p < 0 || *p > 100 {
			return s, false, fmt.Errorf("progressPercentage is %d, want 0 to 100", *p)
		}
		setMetric(&s, "progress_percent", float64(*p))
		if !named {
			if s.Total > 0 {
				total = s.Total
			}
			if total == 0 {
				total = 100
			}
			s.Step, s.Total = total*int64(*p)/100, total
		}
		ok = true
	}
	if r := t.EstimatedRemainingSeconds; r != nil {
		setMetric(&s, "remaining_s", float64(*r))
		ok = true
	}
	return s, ok, nil
}
