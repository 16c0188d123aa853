package commit

import "math"

// An Outlook is a plan of purchases for the coming twelve months of one region, and what it is expected to do. It knows
// only the forecast, so its figures are estimates.
type Outlook struct {
	Region string
	Months []Month
	// BreakEven is the month, from 1, by the end of which what the units bought now save on demand is worth all that is
	// owed for them. 0: the forecast does not get there within the term.
	BreakEven int
	Falls     []Drop
}

// A Month of an outlook. Demand and cost are means of its hours, in units on demand.
type Month struct {
	Name           string
	Hours          int
	Held, Buy      int64 // committed before, and bought at its first hour
	Demand, Served float64
	Cost           float64
}

// Level returns the units that are committed in the month.
func (m Month) Level() int64 { return m.Held + m.Buy }

// A Drop is what the purchase of this month costs if demand falls right after it.
type Drop struct {
	Share     int64   // of the demand that is lost, in ten thousandths
	Demand    float64 // unit-hours within twelve months
	Cost      float64 // in unit-hours on demand, with what is held and bought now
	Best      float64 // the least in hindsight: the best level of each month
	Utilised  float64 // share of the committed hours that is used
	Committed float64
}

// Percent returns the cost and the regret as percentages of on-demand, and false where nothing is left to run.
func (d Drop) Percent() (cost, regret float64, ok bool) {
	if d.Demand == 0 {
		return 0, 0, false
	}
	return 100 * d.Cost / d.Demand, 100 * (d.Cost - d.Best) / d.Demand, true
}

// horizon is how many months an outlook shows.
const horizon = 12

// Outlook plans from the end of a region's demand. Shares are the falls to show.
func (p Policy) Outlook(r Region, cal Calendar, held []Purchase, shares []int64) Outlook {
	now := len(r.Units)
	month := 0
	for cal.Month(month+1) <= now {
		month++
	}
	buys := p.Plan(r.Units, cal, month, held)
	f := newForecast(r.Units)
	o := Outlook{Region: r.Name}
	price := float64(p.Price) / One
	all := append([]Purchase(nil), held...)
	for k := range horizon {
		first := max(now, cal.Month(month+k))
		m := Month{Name: cal.Name(month + k), Hours: cal.Month(month+k+1) - first, Held: level(all, first), Buy: buys[k]}
		if k > 0 {
			m.Held = level(all, first+15*24)
		}
		all = append(all, Purchase{Start: first, Units: buys[k], Hours: p.TermHours()})
		factor := f.factor(k)
		m.Demand = f.use(factor, 0, math.Inf(1))
		m.Served = f.use(factor, 0, float64(m.Level()))
		m.Cost = m.Demand - m.Served + float64(price*float64(m.Level()))
		o.Months = append(o.Months, m)
	}
	o.BreakEven = p.breakEven(f, o.Months, cal, month, held, buys[0])
	for _, share := range shares {
		o.Falls = append(o.Falls, p.drop(f, o.Months, cal, month, held, buys[0], share))
	}
	return o
}

// breakEven returns the month in which the units bought now have saved what is owed for their whole term.
func (p Policy) breakEven(f forecast, months []Month, cal Calendar, month int, held []Purchase, bought int64) int {
	owed := float64(bought) * float64(p.Price) / One * float64(p.TermHours())
	saved := 0.0
	for k := 0; bought > 0 && k < p.Months; k++ {
		first := cal.Month(month + k)
		hours := cal.Month(month+k+1) - first
		if k < len(months) {
			hours = months[k].Hours
		}
		base := float64(level(held, first+15*24))
		saved += float64(f.use(f.factor(k), base, float64(bought)) * float64(hours))
		if saved >= owed {
			return k + 1
		}
	}
	return 0
}

// drop returns what the coming months cost if demand falls right after this month's purchase, and nothing more is bought.
func (p Policy) drop(f forecast, months []Month, cal Calendar, month int, held []Purchase, bought, share int64) Drop {
	d := Drop{Share: share}
	price, left := float64(p.Price)/One, 1-float64(share)/One
	served := 0.0
	for k, m := range months {
		hours := float64(m.Hours)
		committed := float64(bought)
		if k == 0 {
			committed += float64(m.Held)
		} else {
			committed += float64(level(held, cal.Month(month+k)+15*24))
		}
		factor := f.factor(k) * left
		demand, used := f.use(factor, 0, math.Inf(1)), f.use(factor, 0, committed)
		best := f.best(factor, price)
		d.Demand += float64(demand * hours)
		d.Cost += float64((demand - used + float64(price*committed)) * hours)
		d.Best += float64((demand - f.use(factor, 0, best) + float64(price*best)) * hours)
		d.Committed += float64(committed * hours)
		served += float64(used * hours)
	}
	if d.Committed > 0 {
		d.Utilised = served / d.Committed
	}
	return d
}

// best returns the level that costs least in the hours of a month, as BestLevel does.
func (f forecast) best(factor, price float64) float64 {
	n := float64(len(f.hours))
	i := len(f.hours) - int(price*n) - 1
	return f.hours[max(0, i)] * factor
}
