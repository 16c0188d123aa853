package commit

import (
	"math"
	"math/big"
)

// An Outlook is a plan of one region's purchases for the coming twelve months, and its expected effect. It uses only
// the forecast, so its figures are estimates.
type Outlook struct {
	Region string
	Months []Month
	// BreakEven is the month, from 1, at whose end the units bought now have saved everything that is owed for them. 0
	// if the forecast does not reach that within the term.
	BreakEven int
	Falls     []Drop
}

// A Month of an outlook. Demand and cost are hourly means, in on-demand units.
type Month struct {
	Name           string
	Hours          int
	Held, Buy      int64 // committed before, and bought at its first hour
	Demand, Served float64
	Cost           float64
}

// Level returns the committed units of the month.
func (m Month) Level() int64 { return m.Held + m.Buy }

// A Drop is the cost of this month's purchase over its term if demand falls right after it. If less is committed than
// is best for the lower demand, later purchases make up for it, so regret counts only excess commitments.
type Drop struct {
	Share     int64   // of the demand that is lost, in ten thousandths
	Demand    float64 // unit-hours of the term
	Cost      float64 // in on-demand unit-hours
	Best      float64 // least cost in hindsight: the best level of each month
	Committed float64 // unit-hours held and bought now
	Used      float64 // used part of Committed
	Beyond    float64 // unit-hours committed above the best level
	Saved     float64 // used part of Beyond
}

// Regret returns the extra cost of a drop over the best level of each month, in money: the price of the excess
// unit-hours minus the on-demand cost that their use saves.
func (d Drop) Regret(onDemand, price *big.Rat) *big.Rat {
	beyond, saved := new(big.Rat), new(big.Rat)
	if beyond.SetFloat64(d.Beyond) == nil || saved.SetFloat64(d.Saved) == nil {
		return new(big.Rat) // no demand of a file is that large
	}
	return beyond.Mul(beyond.Mul(beyond, price), onDemand).Sub(beyond, saved.Mul(saved, onDemand))
}

// Percent returns the cost and the regret as percentages of on-demand, and false if nothing is left to run.
func (d Drop) Percent() (cost, regret float64, ok bool) {
	if d.Demand == 0 {
		return 0, 0, false
	}
	return 100 * d.Cost / d.Demand, 100 * (d.Cost - d.Best) / d.Demand, true
}

// horizon is the number of months in an outlook.
const horizon = 12

// Outlook plans from the end of a region's demand. shares lists the falls to show.
func (p Policy) Outlook(r Region, cal Calendar, held []Purchase, shares []int64) Outlook {
	now := len(r.Units)
	month := 0
	for cal.Month(month+1) <= now {
		month++
	}
	buys := p.Plan(r.Units, cal, month, held)
	f := newForecast(r.Units)
	o := Outlook{Region: r.Name}
	price := p.ratio()
	all := append([]Purchase(nil), held...)
	for k := range horizon {
		first, hours := monthHours(cal, month, now, k)
		m := Month{Name: cal.Name(month + k), Hours: hours, Held: int64(heldIn(all, first, k)), Buy: buys[k]}
		all = append(all, Purchase{Start: first, Units: buys[k], Hours: p.TermHours()})
		factor := f.factor(k)
		m.Demand = f.use(factor, 0, math.Inf(1))
		m.Served = f.use(factor, 0, float64(m.Level()))
		m.Cost = m.Demand - m.Served + float64(price*float64(m.Level()))
		o.Months = append(o.Months, m)
	}
	o.BreakEven = p.breakEven(f, cal, month, now, held, buys[0])
	for _, share := range shares {
		o.Falls = append(o.Falls, p.drop(f, cal, month, now, held, buys[0], share))
	}
	return o
}

// monthHours returns the first hour and the number of hours of the k-th month of a plan that starts at now.
func monthHours(cal Calendar, month, now, k int) (first, hours int) {
	first = max(now, cal.Month(month+k))
	return first, cal.Month(month+k+1) - first
}

// heldIn returns the units held in a month that starts at first: in its middle, or for the current month now.
func heldIn(held []Purchase, first, k int) float64 {
	if k > 0 {
		first += 15 * 24
	}
	return float64(level(held, first))
}

// breakEven returns the month in which the units bought now have saved their whole cost.
func (p Policy) breakEven(f forecast, cal Calendar, month, now int, held []Purchase, bought int64) int {
	owed := float64(bought) * p.ratio() * float64(p.TermHours())
	saved, end := 0.0, now+p.TermHours()
	for k := 0; bought > 0; k++ {
		first, hours := monthHours(cal, month, now, k)
		if first >= end {
			break
		}
		hours = min(hours, end-first)
		saved += float64(f.use(f.factor(k), heldIn(held, first, k), float64(bought)) * float64(hours))
		if saved >= owed {
			return k + 1
		}
	}
	return 0
}

// drop returns the cost of the term if demand falls right after this month's purchase.
func (p Policy) drop(f forecast, cal Calendar, month, now int, held []Purchase, bought, share int64) Drop {
	d := Drop{Share: share}
	price, left := p.ratio(), 1-float64(share)/One
	end := now + p.TermHours()
	for k := 0; ; k++ {
		first, n := monthHours(cal, month, now, k)
		if first >= end {
			return d
		}
		hours := float64(min(n, end-first))
		committed := heldIn(held, first, k) + float64(bought)
		factor := f.factor(k) * left
		demand := f.use(factor, 0, math.Inf(1))
		best := f.best(factor, price)
		level := max(committed, best)
		d.Demand += float64(demand * hours)
		d.Cost += float64((demand - f.use(factor, 0, level) + float64(price*level)) * hours)
		d.Best += float64((demand - f.use(factor, 0, best) + float64(price*best)) * hours)
		d.Committed += float64(committed * hours)
		d.Beyond += float64((level - best) * hours)
		d.Saved += float64((f.use(factor, 0, level) - f.use(factor, 0, best)) * hours)
		d.Used += float64(f.use(factor, 0, committed) * hours)
	}
}

// best returns the cheapest level for the hours of a month, as BestLevel does.
func (f forecast) best(factor, price float64) float64 {
	n := float64(len(f.hours))
	i := len(f.hours) - int(price*n) - 1
	return f.hours[max(0, i)] * factor
}
