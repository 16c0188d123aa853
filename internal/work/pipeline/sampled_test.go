package pipeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/test/must"
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
		if n == 0 && rng.IntN(2) == 0 {
			s.Deps = nil // it reads the whole folder
		}
		s.Metrics = s.Outs
		list = append(list, s)
	}
	last := fmt.Sprint("out", len(list)-1)
	return append(list, Stage{Name: "push", Deploy: true, Deps: []string{last}, Outs: []string{"live"}})
}

// sampledFor returns a random pipeline, and the same with samples.
func sampledFor(t *testing.T, seed uint64) (plain, s *Spec, parts []string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	plain, err := New(drawnDeploying(rng))
	must.Do(t, err)
	parts = []string{"0.01", "0.05"}[:1+rng.IntN(2)]
	if s, err = plain.Sampled(Sample{Parts: parts}); err != nil {
		t.Fatal(err)
	}
	return plain, s, parts
}

// apart returns an error unless a stage reads only what stages on the same part have made, no two stages on different
// parts have one key, the stage that deploys has no sample, and nothing on a larger part begins before the smaller one is
// done.
func apart(plain, s *Spec, parts []string) error {
	partOf := func(x *Stage) int { // by its name alone
		for k := range parts {
			if strings.HasPrefix(x.Name, sampleName(k)) {
				return k
			}
		}
		return len(parts)
	}
	keys := map[string]string{}
	for i := range s.Stages {
		x := &s.Stages[i]
		if partOf(x) < len(parts) && (x.Base() == "push" || len(x.All()) > 0) {
			return fmt.Errorf("the sample %s deploys or has gates", x.Name)
		}
		base := x.Name[strings.LastIndexByte(x.Name, '.')+1:]
		key := x.Key(nil) + base
		if other, twice := keys[key]; twice {
			return fmt.Errorf("%s and %s have one key", x.Name, other)
		}
		keys[key] = x.Name
		reads := s.Reads(i)
		for _, n := range reads {
			if partOf(&s.Stages[n]) != partOf(x) {
				return fmt.Errorf("%s reads what %s has made", x.Name, s.Stages[n].Name)
			}
		}
		if want := len(plain.Reads(plain.Find(base))); len(reads) != want {
			return fmt.Errorf("%s reads %d stages, want %d", x.Name, len(reads), want)
		}
		before := s.before(i)
		for n := range s.Stages {
			if y := &s.Stages[n]; partOf(y) < partOf(x) && !before(n) || partOf(y) > partOf(x) && before(n) {
				return fmt.Errorf("whether %s comes before %s is %v", y.Name, x.Name, before(n))
			}
		}
	}
	return nil
}

func TestSampled_KeepsPartsApart(t *testing.T) {
	for seed := range uint64(300) {
		plain, s, parts := sampledFor(t, seed)
		if err := apart(plain, s, parts); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// The property finds a sample whose output counts as one of all of the data, and a whole that does not wait for it.
func TestSampled_PropertyFindsPlantedFaults(t *testing.T) {
	for fault, plant := range map[string]func(s *Spec){
		"have one key": func(s *Spec) { s.Stages[0].Sample = "" },
		"has made": func(s *Spec) {
			for i := range s.Stages {
				s.Stages[i].Sample, s.Stages[i].Program = "", s.Stages[i].Name
			}
		},
		"comes before": func(s *Spec) {
			for i := range s.Stages {
				if s.Stages[i].Sample == "" {
					s.Stages[i].Needs = slices.DeleteFunc(s.Stages[i].Needs, func(n int) bool { return s.Stages[n].Sample != "" })
				}
			}
		},
	} {
		found := 0
		for seed := range uint64(100) {
			plain, s, parts := sampledFor(t, seed)
			plant(s)
			if err := apart(plain, s, parts); err != nil && strings.Contains(err.Error(), fault) {
				found++
			}
		}
		if found == 0 {
			t.Errorf("no seed finds the fault %q", fault)
		}
	}
}

func TestSampled_RefusesWhatItCannotHonour(t *testing.T) {
	a := Stage{Name: "a", Metrics: []string{"m"}, Outs: []string{"m"}}
	for want, c := range map[string]struct {
		list []Stage
		x    Sample
	}{
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
		must.Do(t, err)
		if _, err = s.Sampled(c.x); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// What a stage that measures drift or starts warm reads is made from all of the data, not by a sample.
func TestMakerOf_PassesOverSamples(t *testing.T) {
	for seed := range uint64(50) {
		plain, s, _ := sampledFor(t, seed)
		for _, x := range plain.Stages {
			if n := s.MakerOf(x.Outs[0]); n < 0 || s.Stages[n].Name != x.Name {
				t.Fatalf("seed %d: %s is made by the stage %d, want %s", seed, x.Outs[0], n, x.Name)
			}
		}
	}
}
