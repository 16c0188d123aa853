package fair

import (
	"cmp"
	"slices"
	"strings"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// Use is what a team has and wants of the queue at one moment.
type Use struct {
	Spelled string       // the name of the team as a job has it; "": no job does
	Spent   money.Amount // booked lately, with decay
	Held    money.Amount // what its machines are expected to cost beyond what is booked
	Burn    money.Rate   // dollars an hour of what runs now
	Running int          // jobs that hold or request a machine
	Waits   bool         // a job of the team waits
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
}

// Shares are the places of all teams.
type Shares struct {
	teams map[string]*Share // by key
	total float64           // sum of the weights
}

// NewShares computes the places of teams from their uses, by key. Teams with a setting are included in any case.
func NewShares(r *Rules, uses map[string]*Use) Shares {
	s := Shares{teams: make(map[string]*Share, len(uses)+len(r.Teams))}
	for _, t := range r.Teams {
		s.teams[Key(t.Name)] = &Share{Team: t, Set: true}
	}
	for key, u := range uses {
		if s.teams[key] == nil {
			s.teams[key] = &Share{Team: Team{Name: cmp.Or(u.Spelled, key), Weight: DefaultWeight}}
		}
		s.teams[key].Use = *u
	}
	s.place()
	return s
}

// keys returns the keys of the teams in order, so that sums of floats are the same each time.
func (s *Shares) keys() []string {
	list := make([]string, 0, len(s.teams))
	for key := range s.teams {
		list = append(list, key)
	}
	slices.Sort(list)
	return list
}

// place computes what depends on all teams.
func (s *Shares) place() {
	var burn money.Rate
	var had money.Amount
	keys := s.keys()
	s.total = 0
	for _, key := range keys {
		t := s.teams[key]
		burn, had = quantity.Add(burn, t.Burn), had.Add(t.had())
		if t.counts() {
			s.total += t.Weight
		}
	}
	under := false
	for _, key := range keys {
		t := s.teams[key]
		if t.counts() {
			t.Wanted = t.Weight / s.total
		}
		if had.Sign() > 0 {
			t.Had = t.had().Float() / had.Float()
		}
		t.Score = t.had().Float() / t.Weight
		share := t.Wanted * burn.Float()
		t.Under = t.Burn < t.Guarantee && t.Waits
		t.Over = t.Burn.Float() > share
		t.Stopped = t.Borrow != nil && t.Burn > 0 && t.Burn >= t.Guarantee && t.Burn.Float() >= share+t.Borrow.Float()
		under = under || t.Under
	}
	for _, t := range s.teams {
		t.after = under && t.Over && !t.Under
	}
}

// had is what the team has spent lately, and holds for what runs.
func (t *Share) had() money.Amount { return t.Spent.Add(t.Held) }

// counts reports whether the team takes part in the division of weights.
func (t *Share) counts() bool { return t.Set || t.Running > 0 || t.Waits }

// Of returns the place of a team. A team without a use and a setting has had nothing.
func (s *Shares) Of(team string) Share {
	if t := s.teams[Key(team)]; t != nil {
		return *t
	}
	return Share{Team: Team{Name: team, Weight: DefaultWeight}, Wanted: DefaultWeight / (s.total + DefaultWeight)}
}

// Compare returns a negative number if team a starts the next job before team b: teams that burn more than their share
// come after the others while a team waits under its guarantee, then the smaller score comes first.
func (s *Shares) Compare(a, b string) int {
	if Key(a) == Key(b) {
		return 0
	}
	x, y := s.Of(a), s.Of(b)
	if x.after != y.after {
		if y.after {
			return -1
		}
		return 1
	}
	return cmp.Compare(x.Score, y.Score)
}

// List returns the places of all teams by name.
func (s *Shares) List() []Share {
	list := make([]Share, 0, len(s.teams))
	for _, key := range s.keys() {
		list = append(list, *s.teams[key])
	}
	slices.SortFunc(list, func(a, b Share) int { return strings.Compare(Key(a.Name), Key(b.Name)) })
	return list
}

// Start changes the places as if a job of a team began that costs held and burns rate. waits is set if other jobs of
// the team wait.
func (s *Shares) Start(team string, held money.Amount, rate money.Rate, waits bool) {
	t := s.teams[Key(team)]
	if t == nil {
		t = &Share{Team: Team{Name: team, Weight: DefaultWeight}}
		s.teams[Key(team)] = t
	}
	t.Held, t.Burn = t.Held.Add(held), quantity.Add(t.Burn, rate)
	t.Running, t.Waits = t.Running+1, waits
	s.place()
}

// End changes the places as if a job of a team ended that burns rate. Its cost stays.
func (s *Shares) End(team string, rate money.Rate) {
	if t := s.teams[Key(team)]; t != nil {
		t.Burn, t.Running = max(0, t.Burn-rate), max(0, t.Running-1)
		s.place()
	}
}
