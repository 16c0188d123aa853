package progress

import (
	"slices"
	"testing"

	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// Read removes only commas between groups of three digits. "3,5" may be 3.5 or 35, so it is not a value.
func TestRead_RemovesCommasBetweenGroupsOnly(t *testing.T) {
	t.Parallel()
	p, err := Compile(api.Progressing{Pattern: `step (?P<step>\S+) loss (?P<loss>\S+)`})
	must.Do(t, err)
	for text, want := range map[string]float64{"3.5": 3.5, "1,000": 1000, "12,345,678.25": 12345678.25, "-1,234e2": -123400} {
		f := p.Read([]byte("step 2,000 loss " + text))
		if got, is := f.Step.Metrics["loss"]; !is || got != want || f.Step.Step != 2000 {
			t.Errorf("%s is read as %v at step %d, want %v at 2000", text, f.Step.Metrics, f.Step.Step, want)
		}
	}
	for _, text := range []string{"3,5", "0,25", "1,00", "1,0000", "1000,000", ",500", "1,000,5", "1.5,000"} {
		if f := p.Read([]byte("step 2 loss " + text)); len(f.Step.Metrics)+len(f.Step.Broken) != 0 || f.Step.Step != 2 {
			t.Errorf("%s is read as %v, %v at step %d, want no value at step 2", text, f.Step.Metrics, f.Step.Broken, f.Step.Step)
		}
	}
}

// A number beyond the range of a float is infinite, as Python prints it, wherever it is reported.
func TestParse_NumbersBeyondTheRangeAreBroken(t *testing.T) {
	t.Parallel()
	p, err := Compile(api.Progressing{Pattern: `loss (?P<loss>\S+)`})
	must.Do(t, err)
	for _, text := range []string{"1e999", "-1e999", "Infinity", "NaN"} {
		one, ok, err := Parse([]byte(`{"step":3,"metrics":{"loss":` + text + `}}`))
		if err != nil || !ok || one.Step != 3 || !slices.Equal(one.Broken, []string{"loss"}) {
			t.Errorf("%s is read as %+v, %v", text, one, err)
		}
		if f := p.Read([]byte("loss " + text)); !f.IsStep || !slices.Equal(f.Step.Broken, []string{"loss"}) {
			t.Errorf("the line with %s is read as %+v", text, f)
		}
	}
	for _, text := range []string{`{"step":1} {"step":2}`, `{"step":1}x`, ``, `[1]`} {
		if s, ok, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q is read as %+v, %v", text, s, ok)
		}
	}
}
