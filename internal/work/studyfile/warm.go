package studyfile

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/work/study"
)

// Columns of the trials that scrimp exports, and of rows with one value each.
const (
	columnUnit   = "unit"
	columnValue  = "value"
	columnBest   = "best"
	columnBestAt = "best_at"
	columnLast   = "last"
	columnProxy  = "proxy" // true for trials on a proxy
)

// unused are the columns of exported trials that a searcher needs not.
var unused = []string{"trial", "state", "why", "values", "cost"}

// table maps the columns of a CSV file to what they hold.
type table struct {
	params           []int // by parameter of the space
	unit, value      int   // one value a row
	best, bestAt, at int   // an exported trial; at is its newest value
	proxy            int   // of an exported search on a proxy, otherwise -1
}

// Observations reads what an earlier search has found from CSV: a column for each parameter, and either unit (or the
// fidelity's name) and value (or the metric's name), a row for each value, or the columns that scrimp tune export
// writes. Rows with the same parameters belong to the same configuration. It refuses what is not in the space of s.
func Observations(file string, text []byte, s *study.Spec) (list []study.Past, err error) {
	r := csv.NewReader(strings.NewReader(string(text)))
	head, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: read the line with the names of the columns: %w", file, err)
	}
	t, err := columns(head, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	places := map[string]int{}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		line, _ := r.FieldPos(0)
		p, err := t.read(row, s)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, line, err)
		}
		if len(p.Points) == 0 {
			continue // an exported trial without a value
		}
		for _, v := range p.Points {
			if err := s.CheckPoint(v); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, line, err)
			}
		}
		key := strings.Join(p.Params, "\x00")
		at, known := places[key]
		if !known {
			at = len(list)
			places[key], list = at, append(list, study.Past{Params: p.Params})
		}
		if was, now, twice := contradict(list[at].Points, p.Points); twice && s.Fidelity.Name != "" {
			return nil, fmt.Errorf("%s:%d: the configuration has the value %g at %s %g already, and %g here: leave one out",
				file, line, was.Value, s.Fidelity.Name, was.Unit, now.Value)
		}
		if list[at].Points = append(list[at].Points, p.Points...); len(list) > study.MaxPast {
			return nil, fmt.Errorf("%s:%d: more than %d configurations: give fewer", file, line, study.MaxPast)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: it has no value of the metric: leave it out", file)
	}
	return list, nil
}

// contradict returns two different values for the same amount of training; false: there are none.
func contradict(known, more []study.Point) (was, now study.Point, twice bool) {
	for _, now := range more {
		for _, was := range known {
			if was.Unit == now.Unit && was.Value != now.Value {
				return was, now, true
			}
		}
	}
	return was, now, false
}

// take marks the first unused column that has one of the names as used and returns its index, or -1.
func take(head []string, used []bool, names []string) int {
	for _, name := range names {
		if i := slices.Index(head, name); i >= 0 && name != "" && !used[i] {
			used[i] = true
			return i
		}
	}
	return -1
}

// columns finds the columns of a table.
func columns(head []string, s *study.Spec) (t table, err error) {
	used := make([]bool, len(head))
	find := func(names ...string) int { return take(head, used, names) }
	for i := range s.Params {
		at := find(s.Params[i].Name)
		if at < 0 {
			return t, fmt.Errorf("no column is named %s: write one for each parameter of the space", s.Params[i].Name)
		}
		t.params = append(t.params, at)
	}
	t.best, t.bestAt, t.at = find(columnBest), find(columnBestAt), find(columnLast)
	t.unit, t.value = find(columnUnit, s.Fidelity.Name), -1
	if t.best < 0 {
		t.value = find(columnValue, s.Metric)
	}
	t.proxy = -1
	exported := min(t.best, t.bestAt, t.at, t.unit) >= 0
	if exported {
		for _, name := range unused {
			find(name)
		}
		t.proxy = find(columnProxy)
	}
	i := slices.Index(used, false)
	switch {
	case !exported && t.value < 0:
		err = fmt.Errorf("no column is named value or %s: write the metric's values there", s.Metric)
	case !exported && t.unit < 0 && s.Fidelity.Name != "":
		err = fmt.Errorf("no column is named %s: write there how long each value's configuration had trained",
			s.Fidelity.Name)
	case i >= 0:
		err = fmt.Errorf("%.40q is no parameter of the space: leave the column out", head[i])
	}
	return t, err
}

// read reads a row.
func (t *table) read(row []string, s *study.Spec) (p study.Past, err error) {
	onProxy := t.proxy >= 0 && row[t.proxy] == "true"
	if t.proxy >= 0 && onProxy != (s.Proxy != nil) {
		return p, nil // its values do not compare with those of this search
	}
	for d := range s.Params {
		text := strings.TrimSpace(row[t.params[d]])
		if onProxy {
			text = s.InFull(d, text)
		}
		if _, err := s.Params[d].Read(text); err != nil {
			return p, fmt.Errorf("%s: %w", s.Params[d].Name, err)
		}
		p.Params = append(p.Params, text)
	}
	pairs := [][2]int{{t.unit, t.value}}
	if t.value < 0 {
		if pairs = [][2]int{{t.bestAt, t.best}, {t.unit, t.at}}; row[t.best] == "" {
			return p, nil
		}
		if row[t.bestAt] == row[t.unit] {
			pairs = pairs[:1]
		}
	}
	for _, pair := range pairs {
		v := study.Point{}
		if pair[0] >= 0 {
			if v.Unit, err = strconv.ParseFloat(row[pair[0]], 64); err != nil || !(v.Unit >= 0) {
				return p, fmt.Errorf("%.40q is not an amount of training", row[pair[0]])
			}
		}
		if v.Value, err = strconv.ParseFloat(row[pair[1]], 64); err != nil {
			return p, fmt.Errorf("%.40q is no value of the metric", row[pair[1]])
		}
		p.Points = append(p.Points, v)
	}
	return p, nil
}
