package tracking

import (
	"encoding/csv"
	"maps"
	"slices"
	"strconv"
	"strings"

	api "scrimp/client"
)

// digits formats a number of epochs or steps.
func digits(v float64) string { return strconv.FormatFloat(v, 'g', 5, 64) }

// TrialsCSV returns the trials as CSV with a column for each parameter, and the column proxy for a search on one.
func TrialsCSV(s *Search) string {
	list := s.Trials
	names := map[string]bool{}
	for _, t := range list {
		for name := range t.Params {
			names[name] = true
		}
	}
	columns := slices.Sorted(maps.Keys(names))
	var b strings.Builder
	w := csv.NewWriter(&b)
	head := []string{"trial", "state", "why", "unit", "values", "best", "best_at", "last", "cost"}
	proxied := slices.ContainsFunc(list, func(t api.Trial) bool { return t.Proxy })
	if proxied {
		head = append(head, "proxy")
	}
	_ = w.Write(append(head, columns...))
	for i := range list {
		t := &list[i]
		best, last := "", ""
		if t.Best != nil {
			best, last = strconv.FormatFloat(*t.Best, 'g', -1, 64), strconv.FormatFloat(*t.Last, 'g', -1, 64)
		}
		row := []string{t.ID, t.State, t.Why, digits(t.Unit), strconv.Itoa(t.Values), best, digits(t.BestAt), last,
			t.Cost.String()}
		if proxied {
			row = append(row, strconv.FormatBool(t.Proxy))
		}
		params, _ := s.ran(t)
		for _, name := range columns {
			row = append(row, params[name])
		}
		_ = w.Write(row) // writing to a strings.Builder cannot fail
	}
	w.Flush()
	return b.String()
}
