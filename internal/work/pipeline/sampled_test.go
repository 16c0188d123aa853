package pipeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// drawnDeploying returns a random pipeline, the last stage of which deploys.
func drawnDeploying(rng *rand.Rand) []Stage {
	var list []Stage
	for n := range 1 + rng.IntN(8) {
		s := Stage{Name: fmt.Sprint("s", n), Outs: []string{fmt.Sprint("out", n)}, Deps: []string{"data.csv"}}
		for before := range n {
			if rng.IntN(3) == 0 {
				s.Deps = append(s.Deps, fmt.Sprint("out", before))
			}
		}
		s.Metrics = s.Outs
		list = append(list, s)
	}
	last := fmt.Sprint("out", len(list)-1)
	return append(list, Stage{Name: "push", Deploy: true, Deps: []string{last}, Outs: []string{"live"}})
}

// A stage reads only what stages on the same part have made, no two stages on different parts have one key, the stage
// that deploys has no sample, and nothing on all of the data begins before the last sample is done.
func TestSampled_KeepsPartsApart(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		plain, err := New(drawnDeploying(rng))
		if err != nil {
			t.Fatal(err)
		}
		parts := []string{"0.01", "0.05"}[:1+rng.IntN(2)]
		s, err := plain.Sampled(Sample{Parts: parts})
		if err != nil {
			t.Fatal(err)
		}
		keys, rank := map[string]string{}, map[string]int{"": len(parts)}
		for k, p := range parts {
			rank[p] = k
		}
		for i := range s.Stages {
			x := &s.Stages[i]
			if x.Sample != "" && (x.Base() == "push" || len(x.All()) > 0) {
				t.Fatalf("seed %d: the sample %s deploys or has gates", seed, x.Name)
			}
			key := x.Key(nil)
			if other, twice := keys[key+x.Base()]; twice {
				t.Fatalf("seed %d: %s and %s have one key", seed, x.Name, other)
			}
			keys[key+x.Base()] = x.Name
			reads := s.Reads(i)
			for _, n := range reads {
				if s.Stages[n].Sample != x.Sample {
					t.Fatalf("seed %d: %s reads what %s has made", seed, x.Name, s.Stages[n].Name)
				}
			}
			if want := len(plain.Reads(plain.Find(x.Base()))); len(reads) != want {
				t.Fatalf("seed %d: %s reads %d stages, want %d", seed, x.Name, len(reads), want)
			}
			before := s.before(i)
			for n := range s.Stages {
				if below := rank[s.Stages[n].Sample] < rank[x.Sample]; below != (before(n) && s.Stages[n].Sample != x.Sample) {
					t.Fatalf("seed %d: whether %s comes before %s is %v", seed, s.Stages[n].Name, x.Name, before(n))
				}
			}
		}
	}
}

// Without the part in its key, a sample and the whole on the same inputs are one stage: the property above would not hold.
func TestKey_DiffersByPart(t *testing.T) {
	x := Stage{Name: "a", Outs: []string{"o"}}
	y := x
	y.Sample = "0.01"
	if x.Key(nil) == y.Key(nil) {
		t.Error("a sample has the key of the whole")
	}
}

func TestSampled_RefusesWhatItCannotHonour(t *testing.T) {
	a := Stage{Name: "a", Metrics: []string{"m"}, Outs: []string{"m"}}
	for want, c := range map[string]struct {
		list []Stage
		x    Sample
	}{
		"it has 0 parts":            {[]Stage{a}, Sample{}},
		"no stage comes before":     {[]Stage{{Name: "deploy"}}, Sample{Parts: []string{"0.1"}}},
		"has the name of the stage": {[]Stage{a, {Name: "sample-a"}}, Sample{Parts: []string{"0.1"}}},
		"too long a name":           {[]Stage{{Name: strings.Repeat("x", 100)}}, Sample{Parts: []string{"0.1"}}},
		"give min, max or min_gain": {[]Stage{a}, Sample{Parts: []string{"0.1"}, Gates: []Gate{{Metric: "a.x"}}}},
		"is a metric of no stage":   {[]Stage{a}, Sample{Parts: []string{"0.1"}, Gates: []Gate{{Metric: "b.x", Min: "1"}}}},
		"has min and max only":      {[]Stage{a}, Sample{Parts: []string{"0.1"}, Gates: []Gate{{Metric: "x", MinGain: "1"}}}},
		"data: ":                    {[]Stage{a}, Sample{Parts: []string{"0.1"}, Data: []string{"../x"}}},
		"leave sample out":          {[]Stage{{Name: "deploy"}, {Name: "b", After: []string{"deploy"}}}, Sample{Parts: []string{"0.1"}}},
		"there are 21 gates":        {[]Stage{a}, Sample{Parts: []string{"0.1"}, Gates: slices.Repeat([]Gate{{Metric: "x", Min: "1"}}, 21)}},
	} {
		s, err := New(c.list)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = s.Sampled(c.x); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
