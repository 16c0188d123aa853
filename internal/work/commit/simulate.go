package commit

// Play buys with the policy at the start of each month from first to before end, each time knowing only the past. held
// are earlier purchases.
func (p Policy) Play(demand []int64, cal Calendar, held []Purchase, first, end int) []Purchase {
	held = append([]Purchase(nil), held...)
	for m := first; m < end; m++ {
		at := cal.Month(m)
		if n := p.Plan(demand[:at], cal, m, held)[0]; n > 0 {
			held = append(held, Purchase{Start: at, Units: n, Hours: p.TermHours()})
		}
	}
	return held
}

// fallHour is the hour of a month in which a fall happens: on its second day, so that the purchase of that month cannot
// know it.
const fallHour = 24

// A Result is a policy's outcome in one region.
type Result struct {
	Region    string
	Purchases []Purchase
	All       Tally // from the first purchase on
	AllBest   Hindsight
	Year      Tally // the last twelve months
	YearBest  Hindsight
	Falls     []Fall // one for each of the last twelve months, if requested
}

// A Fall is the outcome with a fall of demand in one month.
type Fall struct {
	Month     int
	Purchases []Purchase
	All       Tally
	Year      Tally
	YearBest  Hindsight
}

// Simulate plays a region from its month first on and, with falls, again with a fall in each of the last twelve months.
// The purchases before a fall are the same, because a plan knows only the past.
func (p Policy) Simulate(r Region, cal Calendar, first, end int, falls bool) Result {
	year := max(first, end-12)
	out := Result{Region: r.Name, Purchases: p.Play(r.Units, cal, nil, first, end)}
	price := p.whole()
	from, begin, stop := cal.Month(first), cal.Month(year), cal.Month(end)
	out.All = Count(r.Units, out.Purchases, price, from, stop)
	out.AllBest = cal.Best(r.Units, price, first, end)
	out.Year = Count(r.Units, out.Purchases, price, begin, stop)
	out.YearBest = cal.Best(r.Units, price, year, end)
	for m := year; falls && m < end; m++ {
		at := cal.Month(m) + fallHour
		demand := Fallen(r.Units, at, p.Fall)
		var known []Purchase
		for _, b := range out.Purchases {
			if b.Start < at {
				known = append(known, b)
			}
		}
		f := Fall{Month: m, Purchases: p.Play(demand, cal, known, m+1, end)}
		f.All = Count(demand, f.Purchases, price, from, stop)
		f.Year = Count(demand, f.Purchases, price, begin, stop)
		f.YearBest = cal.Best(demand, price, year, end)
		out.Falls = append(out.Falls, f)
	}
	return out
}

// Regret returns the excess of a tally over the least cost in hindsight, in per cent of on-demand.
func Regret(t Tally, h Hindsight) (float64, bool) {
	cost, ok := t.Percent()
	best, known := h.Tally.Percent()
	return cost - best, ok && known
}
