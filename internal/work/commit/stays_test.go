package commit_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"scrimp/internal/work/commit"
)

// Machine-seconds of an hour, rounded up, agree with a count of each minute. Jobs that share a machine count it once.
func TestHourly_AgreesWithAPlainCount(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 200 {
		var stays []commit.Stay
		busy := map[string]map[string][]bool{} // region, machine, minute
		for range 1 + rng.IntN(8) {
			s := commit.Stay{Region: string(rune('a' + rng.IntN(2))), Machine: string(rune('0' + rng.IntN(3)))}
			from, n := rng.IntN(400)-60, rng.IntN(200)
			s.From, s.Until = zero.Add(time.Duration(from)*time.Minute), zero.Add(time.Duration(from+n)*time.Minute)
			stays = append(stays, s)
			if busy[s.Region] == nil {
				busy[s.Region] = map[string][]bool{}
			}
			if busy[s.Region][s.Machine] == nil {
				busy[s.Region][s.Machine] = make([]bool, 300)
			}
			for m := max(from, 0); m < min(from+n, 300); m++ {
				busy[s.Region][s.Machine][m] = true
			}
		}
		d, err := commit.Hourly(stays, zero.Add(17*time.Minute), zero.Add(5*time.Hour+9*time.Minute))
		if err != nil || d.Hours != 5 || len(d.Regions) != len(busy) {
			t.Fatalf("%+v, %v", d, err)
		}
		for _, r := range d.Regions {
			for h := range 5 {
				minutes := 0
				for _, list := range busy[r.Name] {
					for m := h * 60; m < h*60+60; m++ {
						if list[m] {
							minutes++
						}
					}
				}
				if r.Units[h] != int64((minutes+59)/60) {
					t.Fatalf("%+v: hour %d of %s has %d units, %d minutes", stays, h, r.Name, r.Units[h], minutes)
				}
			}
		}
	}
}

func TestHourly_IsBounded(t *testing.T) {
	if _, err := commit.Hourly(nil, zero, zero.Add(59*time.Minute)); err == nil || !strings.Contains(err.Error(), "is less than an hour") {
		t.Error(err)
	}
	if _, err := commit.Hourly(nil, zero, zero.AddDate(12, 0, 0)); err == nil || !strings.Contains(err.Error(), "begin later") {
		t.Error(err)
	}
	forever := []commit.Stay{{Region: "a", Machine: "m", From: time.Time{}, Until: zero.AddDate(5000, 0, 0)}}
	if d, err := commit.Hourly(forever, zero, zero.Add(3*time.Hour)); err != nil || d.Regions[0].Units[2] != 1 {
		t.Errorf("%+v, %v", d, err)
	}
}
