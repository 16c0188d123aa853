package anomaly

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/lane"
)

// backgrounds are signals without a fault.
var backgrounds = map[string]func(m *maker) func(i int) float64{
	"noise": func(m *maker) func(int) float64 { return func(int) float64 { return 50 + 4*m.NormFloat64() } },
	"daily": func(m *maker) func(int) float64 {
		return func(i int) float64 { return 50 + 20*math.Sin(2*math.Pi*m.day(i)) + 3*m.NormFloat64() }
	},
	"slow": func(m *maker) func(int) float64 {
		off := 0.0
		return func(int) float64 {
			off = 0.9*off + m.NormFloat64()
			return 50 + off
		}
	},
}

// drifts is the number of rows of a drift.
const drifts = 600

// faults change a signal at one or two places.
var faults = map[string]func(m *maker){
	"none": func(*maker) {},
	"stuck": func(m *maker) {
		m.plant(2, func(at int) {
			v := m.values[at]
			m.change(at, 150, func(_, _ float64) float64 { return v })
		})
	},
	"filled in": func(m *maker) {
		m.plant(2, func(at int) { m.change(at, 150, func(_, _ float64) float64 { return 50 }) })
	},
	"drift": func(m *maker) {
		m.plant(1, func(at int) {
			for i := at; i < m.n(); i++ {
				m.values[i] += 0.03 * float64(min(i-at, drifts))
			}
		})
	},
	"shift": func(m *maker) {
		m.plant(2, func(at int) { m.change(at, m.n(), func(v, _ float64) float64 { return v + 12 }) })
	},
	"spike": func(m *maker) {
		m.plant(2, func(at int) { m.change(at, 2, func(v, _ float64) float64 { return v + 30 }) })
	},
}

// faulty returns a series of two weeks.
func faulty(background, fault string, seed, stream uint64) *labelled {
	m := &maker{Rand: rand.New(rand.NewPCG(seed, stream)), step: 5 * time.Minute, values: make([]float64, 4032)}
	m.fill(backgrounds[background](m))
	faults[fault](m)
	s := m.series(background + ", " + fault)
	if fault == "drift" {
		s.windows = nil
		for _, at := range m.at {
			s.windows = append(s.windows, [2]int{at, min(at+drifts, len(s.points)-1)})
		}
	}
	return s
}

// found is the outcome of a set of series at the fixed threshold of an alert.
type found struct {
	windows, hits, wrong int
	again                int     // alerts in a window after its first
	worth, loss          float64 // of the first alert in each window; of the alerts outside
}

func (f *found) add(s *labelled) {
	seen := map[int]bool{}
	for _, j := range judge(s, scored(s.points)) {
		switch {
		case j.score < Alert:
		case j.window < 0:
			f.wrong++
			f.loss += j.worth
		case !seen[j.window]:
			seen[j.window] = true
			f.worth += j.worth
		default:
			f.again++
		}
	}
	f.windows, f.hits = f.windows+len(s.windows), f.hits+len(seen)
}

// A signal that gets stuck, drifts, shifts or spikes is found at the threshold of an alert, by the benchmark's score.
// No constant was tuned on these seeds. As in the other series, one mark in 14 is invisible, and some faults have none.
func TestScore_FindsStuckDriftingShiftedAndSpikingSignals(t *testing.T) {
	all := found{}
	for n, fault := range slices.Sorted(maps.Keys(faults)) {
		of := found{}
		for k, background := range slices.Sorted(maps.Keys(backgrounds)) {
			for seed := range uint64(lane.Pick(2, 8)) {
				of.add(faulty(background, fault, 11+seed, uint64(10*n+k)))
			}
		}
		t.Logf("%s: %d of %d found, %d alerts again, %d outside", fault, of.hits, of.windows, of.again, of.wrong)
		if 3*of.hits < 2*of.windows {
			t.Errorf("%s: %d of %d are found", fault, of.hits, of.windows)
		}
		if of.again > of.hits {
			t.Errorf("%s: %d alerts repeat that an incident goes on", fault, of.again)
		}
		if most := lane.Pick(10, 40); fault == "none" && of.wrong > most { // in two weeks for each series
			t.Errorf("%d alerts in signals without a fault", of.wrong)
		}
		all = found{all.windows + of.windows, all.hits + of.hits, all.wrong + of.wrong, all.again + of.again, all.worth + of.worth,
			all.loss + of.loss}
	}
	least := map[string]float64{"standard": 60, "low-FP": 55}
	for _, p := range profiles[:len(least)] {
		missed := float64(all.windows - all.hits)
		figure := 50 * (all.worth + p.falseAlarm*all.loss - p.missed*missed + float64(all.windows)) / float64(all.windows)
		t.Logf("%s: %.1f at the threshold %.1f", p.name, figure, Alert)
		if figure < least[p.name] {
			t.Errorf("%s: %.1f, want %.0f", p.name, figure, least[p.name])
		}
	}
}

// A signal that stops for good is one alert, and a signal that stops each night ceases to be one.
func TestScore_StandingStillIsOneAlert(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	at := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	var forever, nightly []string
	a, b := New(), New()
	for i := range 8000 {
		now := at.Add(time.Duration(i) * 5 * time.Minute)
		v := 50 + 4*r.NormFloat64()
		w := v
		if i >= 2000 {
			v = 50
		}
		if i%288 < 60 {
			w = 50
		}
		if a.Score(now, v) >= Alert && i >= 2000 {
			forever = append(forever, now.Format("01-02 15:04"))
		}
		if b.Score(now, w) >= Alert && i >= 4000 && i%288 < 60+shape {
			nightly = append(nightly, now.Format("01-02 15:04"))
		}
	}
	if len(forever) != 1 || len(nightly) > 1 {
		t.Errorf("a signal that stays is an alert at %s, one that stops each night at %s", strings.Join(forever, ", "),
			strings.Join(nightly, ", "))
	}
}
