package plan

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/market"
	"scrimp/internal/market/egress"
)

// Read is an input that every machine of a job reads once from its store.
type Read struct {
	egress.Origin
	Name  string `json:"name,omitempty"` // of an input that the agent brings; "": the program reads it itself
	Path  string `json:"path,omitempty"`
	Bytes int64  `json:"bytes,omitempty"` // 0: unknown
}

// Cost returns what one machine of the offer pays for reading the input. It is false if that is unknown.
func (r *Read) Cost(o *market.Offer) (money.Amount, bool) {
	fare, ok := r.Fare(o.Provider, o.Region)
	if !ok || fare > 0 && r.Bytes == 0 {
		return money.Amount{}, false
	}
	return egress.Cost(r.Bytes, fare), true
}

// Fare returns the price of reading 1e9 bytes of the input at a path in a provider's region. It is false if that is
// unknown.
func (n *Need) Fare(path, provider, region string) (money.Rate, bool) {
	for i := range n.Reads {
		if r := &n.Reads[i]; r.Path == path && region != "" {
			return r.Fare(provider, region)
		}
	}
	return 0, false
}

// Named returns the input with a name whose place is known, or nil.
func (n *Need) Named(name string) *Read {
	if i := slices.IndexFunc(n.Reads, func(r Read) bool { return r.Name == name }); name != "" && i >= 0 {
		return &n.Reads[i]
	}
	return nil
}

// brings returns the known part of what one machine of the offer pays for the inputs that its agent brings. The job's
// spending includes it.
func (n *Need) brings(o *market.Offer) (sum money.Amount) {
	for i := range n.Reads {
		if r := &n.Reads[i]; r.Name != "" && o.Region != "" && o.Currency == money.USD {
			cost, _ := r.Cost(o)
			sum = sum.Add(cost)
		}
	}
	return sum
}

// ReadCost returns what one machine of the offer pays for reading all inputs. It is false if that is unknown. An offer
// without a region pays nothing, because nobody knows where it is.
func (n *Need) ReadCost(o *market.Offer) (sum money.Amount, ok bool) {
	if o.Region == "" {
		return money.Amount{}, true
	}
	for i := range n.Reads {
		cost, ok := n.Reads[i].Cost(o)
		if !ok {
			return money.Amount{}, false
		}
		sum = sum.Add(cost)
	}
	return sum, true
}

// ReadCosts is ReadCost of so many machines.
func (n *Need) ReadCosts(o *market.Offer, machines int) (money.Amount, bool) {
	cost, ok := n.ReadCost(o)
	return times(cost, machines), ok
}

// readable reports whether the cost of reading the inputs there is known.
func (n *Need) readable(o *market.Offer) bool {
	_, ok := n.ReadCost(o)
	return ok
}

// readsKey appends a key that is equal for jobs with equal reads.
func (n *Need) readsKey(b []byte) []byte {
	if len(n.Reads) == 0 {
		return b
	}
	text, err := json.Marshal(n.Reads)
	if err != nil {
		panic("plan: reads are not encoded: " + err.Error())
	}
	return append(append(b, 3), text...)
}

// leastRead is the shortest work that the cost of a read is divided by.
const leastRead = time.Minute

// reads adds the cost of reading the job's data to the price of the work on o, unless the job holds o and has read
// them: the whole cost is divided by the remaining work, so that comparing prices per unit of work compares total
// costs. It reports whether the price changed.
func (job *Job) reads(o *Option, cost money.Amount) bool {
	o.reads, o.readPart = cost, 0
	if cost.IsZero() || o.held && !job.Unread {
		return false
	}
	over := unknownRun
	if job.Progress.Known {
		over = max(job.Progress.Left, leastRead)
	}
	o.readPart = cost.Float() / over.Hours()
	return true
}

// entry is the cost in dollars of reading the job's data on o; 0 if the job holds o and has read them.
func (o *Option) entry() float64 {
	if o.readPart == 0 {
		return 0
	}
	return o.reads.Float()
}

// dollarsPerHour is the price of an hour on o, with that hour's part of the cost of reading the data.
func (o *Option) dollarsPerHour() float64 { return o.more().Float() + float64(o.readPart*perHour(o)) }

// closer returns a machine that does the work for less than the held one, if the held one has not read the inputs yet;
// otherwise nil.
func (r *ranking) closer(job *Job, v *policy.View) *Option {
	if r.held.readPart == 0 {
		return nil
	}
	for _, o := range r.usable { // in order of price
		if o != r.held && perWork(o) < perWork(r.held) && moveSaves(job, v, r.held, o) {
			return o
		}
	}
	return nil
}

// readStep is the ratio between two neighbouring values of readRate.
const readStep = 1.1

// readRate is an hour's part of the cost of reading the data, rounded to a power of readStep, so that tables over
// several zones serve more than one decision.
func (o *Option) readRate() money.Rate {
	part := o.readPart * perHour(o)
	if part <= 0 {
		return 0
	}
	steps := math.Round(math.Log(part) / math.Log(readStep))
	return money.Rate(quantity.Int(min(math.Pow(readStep, steps), mostReadRate) * 1e12))
}

// mostReadRate bounds readRate, in dollars an hour.
const mostReadRate = 1e6
