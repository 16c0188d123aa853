package pages

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/money"
)

// teamsPage shows teams with their spending and limits.
type teamsPage struct {
	Now     time.Time
	Teams   []teamLine
	Budgets client.Budgets
	Shares  client.QueueShares
	Since   time.Time
	Market  time.Time    // market time
	booked  string       // since when Month is counted
	None    money.Amount // of a team that has no line in the costs: it has spent nothing
}

// Spent returns the address of what a team has spent this month.
func (p *teamsPage) Spent(team string) string {
	return namedIn(postingsOf("booked", p.booked), "team", team)
}

// Postings returns the address of what is spent of a limit in its window.
func (p *teamsPage) Postings(l client.Limit) string { return budgetPostings(p.Market, l) }

type teamLine struct {
	client.Team
	Month   []client.CostLine // spent this month, by currency
	Share   float64           // share of the spending of all teams
	Budgets []client.BudgetLine
}

func teams(v *visit) (any, error) {
	at := v.server.Market.Now.UTC()
	p := &teamsPage{Now: v.now, Market: at, Since: time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)}
	var all []client.Team
	if err := v.get("/v1/teams", &all); err != nil {
		return nil, err
	}
	if err := v.get("/v1/budgets", &p.Budgets); err != nil {
		return nil, err
	}
	if err := v.get("/v1/queue/shares", &p.Shares); err != nil {
		return nil, err
	}
	_, month, err := v.spentSince(at, p.Since)
	if err != nil {
		return nil, err
	}
	p.booked = bookedSince(month.Since)
	whole := 0.0
	for _, l := range month.Lines {
		whole += l.Spent.Float()
		if !slices.ContainsFunc(all, func(t client.Team) bool { return t.Name == l.Name }) {
			all = append(all, client.Team{Name: l.Name}) // spending without a team counts, too
		}
	}
	for _, t := range all {
		line := teamLine{Team: t}
		for _, l := range month.Lines {
			if l.Name == t.Name {
				line.Month = append(line.Month, l)
				line.Share += l.Spent.Float() / max(whole, 1e-12)
			}
		}
		for _, b := range p.Budgets.Limits {
			if b.Limit.Scope == "team:"+t.Name {
				line.Budgets = append(line.Budgets, b)
			}
		}
		p.Teams = append(p.Teams, line)
	}
	return p, nil
}

// accessPage shows who may do what, and who did what.
type accessPage struct {
	Now       time.Time
	Me        client.Me
	Admin     bool
	Users     []client.User
	Tokens    []client.Token  // valid ones, those of the dashboard last
	Ended     int             // number of expired and revoked tokens
	Acts      []client.Act    // newest first
	Notices   []client.Notice // reports that are being retried, or wait for a mail server
	Events    uint64
	Undecided int
}

// recentEvents bounds the events of the log that are searched for acts, mostActs the acts listed.
const (
	recentEvents = 5000
	mostActs     = 100
)

func access(v *visit) (any, error) {
	p := &accessPage{Now: v.now, Me: v.me, Admin: v.role(client.Everywhere) == client.Admin, Events: v.server.Events,
		Undecided: v.server.Undecided}
	var tokens []client.Token
	if err := v.get("/v1/tokens", &tokens); err != nil {
		return nil, err
	}
	for _, t := range tokens {
		if t.Live {
			p.Tokens = append(p.Tokens, t)
		} else {
			p.Ended++
		}
	}
	slices.SortStableFunc(p.Tokens, func(a, b client.Token) int { return cmp.Compare(a.User, b.User) })
	if !p.Admin {
		return p, nil
	}
	if err := v.get("/v1/users", &p.Users); err != nil {
		return nil, err
	}
	if err := v.get("/v1/notices", &p.Notices); err != nil {
		return nil, err
	}
	after := uint64(0)
	if p.Events > recentEvents {
		after = p.Events - recentEvents
	}
	for {
		var page client.Audit
		if err := v.get("/v1/audit?limit=1000&after="+strconv.FormatUint(after, 10), &page); err != nil {
			return nil, err
		}
		p.Acts = append(p.Acts, page.Acts...)
		p.Acts = p.Acts[max(0, len(p.Acts)-mostActs):]
		if after = page.Next; after == 0 {
			break
		}
	}
	slices.Reverse(p.Acts)
	return p, nil
}
