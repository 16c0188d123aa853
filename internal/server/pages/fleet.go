package pages

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	indexes "scrimp/internal/work/groups"
)

// machinesPage shows the machines that cost money now.
type machinesPage struct {
	Now      time.Time
	Machines []client.Machine
	Listed   []client.Machine // those of this page
	First    string           // addresses of other pages; "": none
	Next     string
	Rates    map[money.Currency]money.Rate
	Costs    sums
	Does     map[string]string // present use of the machines, by job
	SeesAll  bool              // the reader sees the costs of all teams
}

// Links reports whether the postings that the reader sees add up to the cost of each of the machines: jobs of other
// teams may have paid for a machine that has served several. The page then shows the part of the reader's teams.
func (p *machinesPage) Links(list ...client.Machine) bool {
	return p.SeesAll || !slices.ContainsFunc(list, func(m client.Machine) bool { return m.Served > 1 })
}

// Pays returns the part of a machine's cost that the reader's teams pay, or all of it if the part is unknown.
func (p *machinesPage) Pays(m client.Machine) money.Amount {
	if m.Own == nil || p.Links(m) {
		return m.Cost
	}
	return *m.Own
}

// Parts reports whether Costs sums the known parts of the reader's teams.
func (p *machinesPage) Parts() bool {
	return !slices.ContainsFunc(p.Machines, func(m client.Machine) bool { return m.Own == nil })
}

// LinksAll is Links of all machines of the page.
func (p *machinesPage) LinksAll() bool { return p.Links(p.Machines...) }

// mostMachines bounds the machines on a page.
const mostMachines = 200

// list selects the machines after one, in the order of their names.
func (p *machinesPage) list(after string) {
	const path = "/machines"
	if p.Listed = p.Machines; after != "" {
		at := slices.IndexFunc(p.Machines, func(m client.Machine) bool { return m.Instance > after })
		if at < 0 {
			at = len(p.Machines)
		}
		p.Listed, p.First = p.Machines[at:], path
	}
	if len(p.Listed) > mostMachines {
		p.Listed = p.Listed[:mostMachines]
		p.Next = path + "?after=" + url.QueryEscape(p.Listed[mostMachines-1].Instance)
	}
}

func machines(v *visit) (any, error) {
	p := &machinesPage{Now: v.now, Rates: map[money.Currency]money.Rate{}, Costs: sums{}, Does: map[string]string{},
		SeesAll: atLeast(v.role(client.Everywhere), client.Viewer)}
	if err := v.get("/v1/machines", &p.Machines); err != nil {
		return nil, err
	}
	p.list(v.r.URL.Query().Get("after"))
	for _, m := range p.Machines {
		p.Rates[m.Currency] += m.Rate
		p.Costs.add(m.Currency, p.Pays(m))
	}
	var now []client.JobTelemetry
	if v.get("/v1/telemetry", &now) == nil {
		for _, j := range now {
			var parts []string
			for _, name := range []string{"gpu_utilization_ratio", "cpu_utilization_ratio", "memory_used_bytes"} {
				if x, known := j.Now[name]; known {
					parts = append(parts, metricName(name)+" "+measured(name, x))
				}
			}
			p.Does[j.Job] = strings.Join(parts, ", ")
		}
	}
	return p, nil
}

// enginesPage shows the engines and their states.
type enginesPage struct {
	Now     time.Time
	Engines []client.Engine
	Cooling []client.Listing // offers that are cooling off
}

func engines(v *visit) (any, error) {
	p := &enginesPage{Now: v.now, Engines: v.server.Engines}
	var m client.Market
	if err := v.get("/v1/market", &m); err != nil {
		return nil, err
	}
	for _, l := range m.Offers {
		if l.Cools.After(m.Clock.Now) {
			p.Cooling = append(p.Cooling, l)
		}
	}
	return p, nil
}

// marketPage shows what is for sale.
type marketPage struct {
	client.Market
	Listings []client.Listing // the listed ones, available first
	Total    int
	Query    string
	Drawing  template.HTML
}

// mostOffers bounds the offers on a page.
const mostOffers = 100

func marketNow(v *visit) (any, error) {
	p := &marketPage{Query: strings.TrimSpace(v.r.URL.Query().Get("offer"))}
	if err := v.get("/v1/market", &p.Market); err != nil {
		return nil, err
	}
	for _, l := range p.Offers {
		if strings.Contains(l.Offer.ID+" "+l.Offer.Accelerator, p.Query) {
			p.Listings = append(p.Listings, l)
		}
	}
	slices.SortStableFunc(p.Listings, func(a, b client.Listing) int {
		return cmp.Or(cmp.Compare(order(a.Quote), order(b.Quote)), cmp.Compare(a.Quote.Rate, b.Quote.Rate),
			strings.Compare(a.Offer.ID, b.Offer.ID))
	})
	p.Total = len(p.Listings)
	p.Listings = p.Listings[:min(p.Total, mostOffers)]
	return p, nil
}

// order sorts available offers first, then untried ones, then the rest.
func order(q client.Quote) int {
	switch {
	case q.Available && q.Priced && !q.Untried:
		return 0
	case q.Untried:
		return 1
	}
	return 2
}

// pricesPage shows the history of prices.
type pricesPage struct {
	Drawing template.HTML
	Lines   []priceLine
}

type priceLine struct {
	Offer             client.Offer
	Least, Most, Last money.Rate
	Changes           int
}

// classes names the colours of lines, in order.
var classes = []string{"one", "two", "three", "four", "five"}

// prices draws the recorded market. It reads the log, so the page does not update itself.
func prices(v *visit) (any, error) {
	var h client.History
	if err := v.get("/v1/history", &h); err != nil {
		return nil, err
	}
	p := &pricesPage{}
	until := v.server.Market.Now.Sub(h.Opened)
	for _, l := range h.Trace.Lines {
		line := priceLine{Offer: l.Offer, Changes: max(0, len(l.Price)-1)}
		for i, at := range l.Price {
			if i == 0 || at.Rate < line.Least {
				line.Least = at.Rate
			}
			line.Most, line.Last = max(line.Most, at.Rate), at.Rate
		}
		if len(l.Price) > 0 {
			p.Lines = append(p.Lines, line)
		}
	}
	slices.SortStableFunc(p.Lines, func(a, b priceLine) int { return cmp.Compare(a.Last, b.Last) })
	var series []draw.Series
	currency := h.Trace.Currency
	for i, class := range classes {
		if i >= len(p.Lines) {
			break
		}
		at := slices.IndexFunc(h.Trace.Lines, func(l client.TraceLine) bool { return l.Offer.ID == p.Lines[i].Offer.ID })
		series = append(series, draw.Series{Name: p.Lines[i].Offer.ID, Class: class,
			Points: steps(h.Trace.Lines[at].Price, until)})
	}
	p.Lines = p.Lines[:min(len(p.Lines), mostOffers)]
	p.Drawing = template.HTML(draw.Lines("Prices over time, of the cheapest offers", series, draw.Moment,
		func(v float64) string { return money.ShortFloat(v, currency) }))
	return p, nil
}

// steps returns the points of a price that stays constant between changes.
func steps(list []client.Price, until time.Duration) (points []draw.Point) {
	for i, at := range list {
		end := until
		if i+1 < len(list) {
			end = list[i+1].At
		}
		points = append(points, draw.Point{X: at.At.Seconds(), Y: at.Rate.Float()},
			draw.Point{X: max(end, at.At).Seconds(), Y: at.Rate.Float()})
	}
	return points
}

// groupsPage shows groups of jobs, groupPage one group.
type groupsPage struct {
	Now         time.Time
	Groups      []client.Group
	Live        bool   // only those that are not over
	Others      string // address of the page with all groups, or of the live ones alone
	First, Next string // addresses of other pages; "": none
	asked       string
}

func (p *groupsPage) twin() string { return p.asked }

type groupPage struct {
	client.Group
	Now     time.Time
	Path    string
	Members []client.GroupMember
	Search  *search       // its trials and drawings
	Graph   template.HTML // of a pipeline
	More    int
	Receipt client.GroupReceipt
	Actions []action
	SpentOf float64
}

// Postings returns the address of the group's charges, as a file; "": it is a schedule, whose runs own what they spend.
func (p *groupPage) Postings() string { return groupPostings(p.Group) }

func groupPostings(g client.Group) string {
	if g.Kind == string(indexes.Schedule) {
		return ""
	}
	return postingsOf("group", g.ID)
}

func groups(v *visit) (any, error) {
	q := v.r.URL.Query()
	p := &groupsPage{Now: v.now, Live: q.Get("live") != "", Others: "/groups"}
	here := url.Values{}
	if p.Live {
		here.Set("live", "1")
	} else {
		p.Others = "/groups?live=1"
	}
	if q.Get("after") != "" {
		p.First = "/groups?" + here.Encode()
		here.Set("after", q.Get("after"))
	}
	ask := maps.Clone(here)
	ask.Set("limit", "100")
	p.asked = "/v1/groups?" + ask.Encode()
	header, err := v.ask(http.MethodGet, p.asked, nil, &p.Groups)
	if next := header.Get("Scrimp-Next"); next != "" {
		here.Set("after", next)
		p.Next = "/groups?" + here.Encode()
	}
	return p, err
}

// mostMembers bounds the members of a group on a page.
const mostMembers = 500

func group(v *visit) (any, error) {
	id := url.PathEscape(v.r.PathValue("id"))
	p := &groupPage{Now: v.now, Path: "/groups/" + id}
	if err := v.get("/v1/groups/"+id, &p.Group); err != nil {
		return nil, err
	}
	if err := v.get("/v1/groups/"+id+"/receipt", &p.Receipt); err != nil {
		return nil, err
	}
	p.Members, p.More = p.Receipt.Members, max(0, len(p.Receipt.Members)-mostMembers)
	p.Members = p.Members[:len(p.Members)-p.More]
	if p.Study != nil {
		if err := p.search(v, id); err != nil {
			return nil, err
		}
	}
	if p.Pipeline != nil {
		p.Graph = graph(p.Pipeline.Stages, p.Currency)
		p.More = max(0, len(p.Pipeline.Stages)-mostMembers)
		p.Pipeline.Stages = p.Pipeline.Stages[:len(p.Pipeline.Stages)-p.More]
	}
	if p.Budget != nil && p.Budget.Sign() > 0 {
		p.SpentOf = p.Spent.Float() / p.Budget.Float()
	}
	for _, a := range actions {
		if a.group && v.can(a, p.State, p.User, p.Team) {
			p.Actions = append(p.Actions, a)
		}
	}
	return p, nil
}

// estimatesPage compares the expected costs of runs with the actual ones.
type estimatesPage struct {
	Now      time.Time
	Runs     []client.Run
	Compared int
	Bias     *float64 // mean of actual over expected, less 1; nil: unknown
	Off      *float64 // mean absolute error, as a share of the expected cost
}

func estimates(v *visit) (any, error) {
	p := &estimatesPage{Now: v.now}
	if err := v.get("/v1/measured?expected=1&limit=100", &p.Runs); err != nil {
		return nil, err
	}
	bias, off := 0.0, 0.0
	for _, r := range p.Runs {
		if x, known := relativeError(r); known && r.State == "succeeded" {
			p.Compared, bias, off = p.Compared+1, bias+x, off+max(x, -x)
		}
	}
	if n := float64(p.Compared); n > 0 {
		p.Bias, p.Off = new(bias/n), new(off/n)
	}
	return p, nil
}

// relativeError returns how much more a run cost than expected, as a share of the expected cost.
func relativeError(r client.Run) (share float64, known bool) {
	if r.ExpectedCost == nil || r.ExpectedCost.Sign() <= 0 {
		return 0, false
	}
	return r.Cost.Float()/r.ExpectedCost.Float() - 1, true
}

// signedShare formats a share with its sign.
func signedShare(v any) template.HTML {
	f, known := floatOf(v)
	if r, ok := v.(client.Run); ok {
		f, known = relativeError(r)
	}
	if !known {
		return unknown
	}
	return template.HTML(fmt.Sprintf("%+.0f %%", f*100))
}
