package fair

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// Use is what a team has and wants of the queue at one moment.
type Use struct {
	Spent   money.Amount // booked lately, with decay
	Held    money.Amount // what its machines are expected to cost beyond what is booked
	Burn    money.Rate   // dollars an hour of what runs now
	Running int          // jobs that hold or request a machine
	Waits   bool         // a job of the team waits
	// Met and Missed count the jobs that met and missed their deadline within the last half-life.
	Met, Missed int
}

// Share is a team's place in the order of teams.
type Share struct {
	Team // its setting, or the default
	Use
	Set    bool    // somebody has set its weight
	Wanted float64 // its part of the weights of all teams that are set, run or wait; 0 to 1
	Had    float64 // its part of what all teams have spent lately and hold; 0 to 1
	// Score is what it has spent and holds per weight. The team with the smallest starts the next job.
	Score float64
	// Under is set if it burns less than its guarantee and waits, Over if it burns more than its share of what burns now.
	Under, Over bool
	// Stopped is set if it burns as much beyond its share as it may borrow.
	Stopped bool
	after   bool // a team under its guarantee comes first
	key     string
}

// Shares are the places of all teams.
type Shares struct {
	teams map[string]*Share // by key
	order []*Share          // by key, so that sums of floats are the same each time
	total float64           // sum of the weights
	rules *Rules
}

// NewShares computes the places of teams from their uses, by key. Teams with a setting are included in any case.
func NewShares(r *Rules, uses map[string]*Use) Shares {
	var s Shares
	s.Clear(r)
	for key, u := range uses {
		*s.Use(key) = *u
	}
	s.Place()
	return s
}

// Clear begins places under the rules, in which no team uses anything. It reuses the memory of the former places, since
// a queue needs new ones in each step: their teams stay. Rules must not change in place.
func (s *Shares) Clear(r *Rules) {
	if s.teams == nil || s.rules != r {
		s.teams, s.rules, s.order = make(map[string]*Share, len(r.Teams)), r, nil
		for _, t := range r.Teams {
			s.teams[Key(t.Name)] = &Share{Team: t, Set: true, key: Key(t.Name)}
		}
	}
	for _, t := range s.order {
		*t = Share{Team: t.Team, Set: t.Set, key: t.key}
	}
}

// Use returns the use of a team, to be filled in before Place. It adds the team if needed.
func (s *Shares) Use(team string) *Use {
	key := Key(team)
	t := s.teams[key]
	if t == nil {
		t = &Share{Team: Team{Name: team, Weight: DefaultWeight}, key: key}
		s.teams[key] = t
	}
	return &t.Use
}

// Len returns the number of teams.
func (s *Shares) Len() int { return len(s.teams) }

// Place computes the places from the uses.
func (s *Shares) Place() {
	if len(s.order) != len(s.teams) {
		s.order = slices.AppendSeq(s.order[:0], maps.Values(s.teams))
		slices.SortFunc(s.order, func(a, b *Share) int { return strings.Compare(a.key, b.key) })
	}
	s.place()
}

// place computes what depends on all teams.
func (s *Shares) place() {
	var burn money.Rate
	var had money.Amount
	s.total = 0
	for _, t := range s.order {
		burn, had = quantity.Add(burn, t.Burn), had.Add(t.had())
		if t.counts() {
			s.total += t.Weight
		}
	}
	under, all := false, had.Float()
	for _, t := range s.order {
		if t.counts() {
			t.Wanted = t.Weight / s.total
		}
		own := t.had().Float()
		if had.Sign() > 0 {
			t.Had = own / all
		}
		t.Score = own / t.Weight
		share := t.Wanted * burn.Float()
		t.Under = t.Burn < t.Guarantee && t.Waits
		t.Over = t.Burn.Float() > share
		t.Stopped = t.Borrow != nil && t.Burn > 0 && t.Burn >= t.Guarantee && t.Burn.Float() >= share+t.Borrow.Float()
		under = under || t.Under
	}
	for _, t := range s.order {
		t.after = under && t.Over && !t.Under
	}
}

// MissShare is the part of the team's jobs that missed their deadline, 0 to 1; ok is false if no job had one.
func (t *Share) MissShare() (share float64, ok bool) {
	n := t.Met + t.Missed
	if n == 0 {
		return 0, false
	}
	return float64(t.Missed) / float64(n), true
}

// had is what the team has spent lately, and holds for what runs.
func (t *Share) had() money.Amount { return t.Spent.Add(t.Held) }

// counts reports whether the team takes part in the division of weights.
func (t *Share) counts() bool { return t.Set || t.Running > 0 || t.Waits }

// Of returns the place of a team. A team without a use and a setting has had nothing.
func (s *Shares) Of(team string) Share { return *s.At(team) }

// At is Of without a copy: callers must not change the place, and it holds until the next Clear.
func (s *Shares) At(team string) *Share {
	if t := s.teams[Key(team)]; t != nil {
		return t
	}
	return &Share{Team: Team{Name: team, Weight: DefaultWeight}, Wanted: DefaultWeight / (s.total + DefaultWeight)}
}

// Compare returns a negative number if team a starts the next job before team b: teams that burn more than their share
// come after the others while a team waits under its guarantee, then the smaller score comes first.
func (s *Shares) Compare(a, b string) int {
	if Key(a) == Key(b) {
		return 0
	}
	return s.At(a).Compare(s.At(b))
}

// Compare is Shares.Compare for the places of two teams.
func (t *Share) Compare(other *Share) int {
	if t == other {
		return 0
	}
	if t.after != other.after {
		if other.after {
			return -1
		}
		return 1
	}
	return cmp.Compare(t.Score, other.Score)
}

// List returns the places of all teams by name.
func (s *Shares) List() []Share {
	list := make([]Share, 0, len(s.order))
	for _, t := range s.order {
		list = append(list, *t)
	}
	return list
}

// Start changes the places as if a job of a team began that costs held and burns rate. waits is set if other jobs of
// the team wait.
func (s *Shares) Start(team string, held money.Amount, rate money.Rate, waits bool) {
	u := s.Use(team)
	u.Held, u.Burn = u.Held.Add(held), quantity.Add(u.Burn, rate)
	u.Running, u.Waits = u.Running+1, waits
	s.Place()
}

// End changes the places as if a job of a team ended that burns rate. Its cost stays.
func (s *Shares) End(team string, rate money.Rate) {
	if t := s.teams[Key(team)]; t != nil {
		t.Burn, t.Running = max(0, t.Burn-rate), max(0, t.Running-1)
		s.place()
	}
}
