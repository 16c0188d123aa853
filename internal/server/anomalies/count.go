package anomalies

import (
	"sync"
	"time"

	"scrimp/client"

	"scrimp/internal/decide/incident"
	"scrimp/internal/lib/money"
)

// wantedFor is how long after a scrape the looks go on without an alert.
const wantedFor = time.Hour

// counts holds the result of the newest look for metrics.
type counts struct {
	mu    sync.Mutex
	asked time.Time // wall time of the newest scrape
	at    time.Time // wall time of the newest look; zero: none
	open  []client.OpenAnomalies
}

// isWanted reports whether somebody has scraped the metrics lately.
func (c *counts) isWanted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.asked.IsZero() && time.Since(c.asked) < wantedFor
}

// set counts the anomalies of a search that go on.
func (c *counts) set(s *search) {
	type of struct {
		team     string
		kind     incident.Kind
		currency money.Currency
	}
	at := map[of]int{}
	var list []client.OpenAnomalies
	for i := range s.alerts {
		a := &s.alerts[i]
		v := s.show(a)
		if v.Until != nil && !v.Until.After(s.now.Add(-settled)) || isHidden(&v) {
			continue
		}
		k := of{a.Team, a.Kind, a.Currency}
		if _, known := at[k]; !known {
			at[k] = len(list)
			list = append(list, client.OpenAnomalies{Team: a.Team, Kind: string(a.Kind), Currency: a.Currency})
		}
		o := &list[at[k]]
		o.Count, o.AtStake = o.Count+1, o.AtStake.Add(v.AtStake)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.open = time.Now(), list
}

// Open returns the anomalies that go on as of the newest look. It returns false if there was none within an hour, and
// asks for one.
func (d *Service) Open() (open []client.OpenAnomalies, known bool) {
	d.counts.mu.Lock()
	defer d.counts.mu.Unlock()
	d.counts.asked = time.Now()
	return d.counts.open, !d.counts.at.IsZero() && time.Since(d.counts.at) < wantedFor
}
