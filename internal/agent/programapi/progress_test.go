package programapi

import (
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// hearing remembers the steps that it hears.
type hearing struct {
	calm
	steps *[]int64
}

func (h hearing) Progress(s api.Step) error {
	*h.steps = append(*h.steps, s.Step)
	return nil
}

// A report that says nothing is refused with the field that is wrong, and what is good beside it is taken.
func TestProgress_NamesWhatItCannotRead(t *testing.T) {
	for body, want := range map[string]struct {
		steps []int64
		says  string // "": it is taken
	}{
		`{"step":1,"metrics":{"loss":2.5}}`:                    {steps: []int64{1}},
		`{"step":1,"metrics":{"loss":NaN,"acc":null},"x":"3"}`: {steps: []int64{1}},
		`{"step":1}`:                 {steps: []int64{1}},
		"":                           {says: "the body is empty"},
		" \n":                        {says: "the body is empty"},
		"[]":                         {says: "the list has no report"},
		"{}":                         {says: "the report has no number"},
		"null":                       {says: "the report has no number"},
		`{"metrics":{}}`:             {says: "the report has no number"},
		`{"metrics":{"loss":"low"}}`: {says: `metrics.loss is "low", which is not a number`},
		`{"step":4,"metrics":{"loss":[1],"acc":1}}`: {steps: []int64{4}, says: "metrics.loss is [1], which is not a number"},
		`{"step":4,"metrics":7}`:                    {steps: []int64{4}},
		`{"step":"four"}`:                           {says: `step is "four", which is not a number`},
		`{"step":4,"deep":{"loss":1}}`:              {steps: []int64{4}, says: `deep is {"loss":1}, which is not a number`},
		`[{"step":1},{"step":"x"},7,{"step":2}]`:    {steps: []int64{1, 2}, says: `report 2 of the list: step is "x"`},
		`{"step":1} {"step":2}`:                     {says: "text after its JSON object"},
		`step=1`:                                    {says: "not a JSON object"},
	} {
		var steps []int64
		p, err := Serve(hearing{steps: &steps}, slog.New(slog.DiscardHandler))
		must.Do(t, err)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+"/v1/progress", strings.NewReader(body))
		must.Do(t, err)
		r.Header.Set("Authorization", "Bearer "+p.Token)
		resp, err := http.DefaultClient.Do(r)
		must.Do(t, err)
		text, err := io.ReadAll(resp.Body)
		must.Do(t, err)
		must.Do(t, resp.Body.Close())
		must.Do(t, p.Close())
		status := http.StatusNoContent
		if want.says != "" {
			status = http.StatusBadRequest
		}
		said := strings.ReplaceAll(string(text), `\"`, `"`)
		if resp.StatusCode != status || !strings.Contains(said, want.says) || !slices.Equal(steps, want.steps) {
			t.Errorf("%s: %d %s, steps %v; want %d %q %v", body, resp.StatusCode, said, steps, status, want.says, want.steps)
		}
	}
}
