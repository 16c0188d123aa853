package stages

import (
	"io"
	"maps"
	"strings"
	"testing"

	"scrimp/internal/server/workdir"
	"scrimp/internal/test/must"
	"scrimp/internal/work/pipeline"
)

// reports are files with these texts.
func reports(texts map[string]string) (items []workdir.Item) {
	for path, text := range texts {
		items = append(items, workdir.Item{Path: path, Mode: 0o600, Size: int64(len(text)), Content: func(to io.Writer) error {
			_, err := io.WriteString(to, text)
			return err
		}})
	}
	return items
}

// A file of metrics gives the numbers of its names.
func TestFigures_ReadsNumbersByName(t *testing.T) {
	for text, want := range map[string]map[string]string{
		`{"a": 0.90, "b": {"c": 1e-3, "d": [1, {"a": 2}]}, "e": "x"}`: {"a": "0.90", "b.c": "1e-3"},
		"\ufeff{\"a\": 1}\n":                     {"a": "1"},
		`{"a": 1, "b": NaN, "c": -Infinity}`:     {"a": "1"},
		`{"x.a": 0.95, "x": {"a": 0.1}, "b": 2}`: {"b": "2"},
		`{"a": 0.9, "a": 0.1}`:                   nil,
		`{"a": 0.9, "a": "0.1"}`:                 nil,
		`{"a": "0.9", "a": 0.1}`:                 nil,
	} {
		if got, _ := figures(reports(map[string]string{"r.json": text}), []string{"r.json"}); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// A name without a number has a reason, by the name or by the file.
func TestFigures_SayWhatIsWrong(t *testing.T) {
	for text, want := range map[string][2]string{
		`{"a": NaN}`:                      {"a", "a of r.json is null, NaN or infinite"},
		`{"a": "0.9"}`:                    {"a", "a of r.json is the text \"0.9\": write a number without quotes"},
		`{"a": true}`:                     {"a", "a of r.json is true or false"},
		`{"a": [0.9]}`:                    {"a", "a of r.json is a list"},
		`{"a": 0.9, "a": 0.1}`:            {"a", "r.json has a twice"},
		`{"x.a": 0.95, "x": {"a": 0.1}}`:  {"x.a", "r.json has x.a twice"},
		"":                                {"", "r.json is empty"},
		`{"a": .95}`:                      {"", "r.json is not JSON: invalid character '.'"},
		`{"a": 0.9} done`:                 {"", "r.json is not JSON: text follows its value"},
		`0.9`:                             {"", "r.json has no names"},
		strings.Repeat(" ", 1<<20) + "{}": {"", "r.json has 1048578 bytes: keep at most 1048576"},
	} {
		got, wrong := figures(reports(map[string]string{"r.json": text}), []string{"r.json"})
		if len(got) > 0 || !strings.HasPrefix(wrong[want[0]], want[1]) {
			t.Errorf("%.40s: %v, %q, want %q", text, got, wrong, want)
		}
	}
	two := map[string]string{"r/a.json": `{"a": 1, "b": 2}`, "r/b.json": `{"a": 1}`}
	got, wrong := figures(reports(two), []string{"r"})
	if !maps.Equal(got, map[string]string{"b": "2"}) || !strings.Contains(wrong["a"], "both have a") {
		t.Errorf("of two files: %v, %v", got, wrong)
	}
}

// A stage says why it has no number for each metric that a gate judges, and for no other.
func TestLacking_NamesTheFileOfAJudgedMetric(t *testing.T) {
	p, err := pipeline.New([]pipeline.Stage{{Name: "evaluate", Outs: []string{"r.json"}, Metrics: []string{"r.json"}},
		{Name: "deploy", Deps: []string{"r.json"}, Gates: []pipeline.Gate{{Metric: "evaluate.x.a", Min: "1"},
			{Metric: "b", Min: "1"}}}})
	must.Do(t, err)
	for _, c := range []struct {
		has, wrong, want map[string]string
	}{
		{map[string]string{"x.a": "1", "b": "2"}, map[string]string{"c": "r.json has c twice", "": "s is empty"}, nil},
		{map[string]string{"b": "2", "a": "1"}, nil, map[string]string{"x.a": "r.json has no number x.a"}},
		{nil, map[string]string{"": "r.json is empty"}, map[string]string{"x.a": "r.json is empty", "b": "r.json is empty"}},
		{map[string]string{"b": "2"}, map[string]string{"x.a": "r.json has x.a twice", "": "s is empty"},
			map[string]string{"x.a": "r.json has x.a twice"}},
	} {
		if got := lacking(p, 0, c.has, c.wrong); !maps.Equal(got, c.want) {
			t.Errorf("with %v and %v: %v, want %v", c.has, c.wrong, got, c.want)
		}
	}
	if got := lacking(p, 1, nil, nil); got != nil {
		t.Errorf("a stage without metrics lacks %v", got)
	}
}
