package serving

import (
	"fmt"
	"math/big"
	"time"

	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/work/serving/load"
	"scrimp/internal/work/serving/simulation"
	"scrimp/internal/work/sheet"
)

// A Function is a serverless offer: each instance answers one request at a time.
type Function struct {
	Name        string
	Provider    string // whose price of egress holds; "" is unknown
	Source      string
	Memory      size.Bytes
	Request     *big.Rat // price of a request
	GiBSecond   *big.Rat // price of a GiB-second
	Step        time.Duration
	Cold        time.Duration
	BillCold    bool
	Keep        time.Duration
	Concurrency int
}

// ReadFunctions reads a file of serverless prices. Each names its source. All that is wrong is returned together.
func ReadFunctions(file string, text []byte) ([]Function, error) {
	r, root := sheet.Open(file, text)
	f := root.Fields("functions")
	var list []Function
	seen := map[string]bool{}
	for _, item := range f["functions"].List() {
		v := function(item)
		if seen[v.Name] && v.Name != "" {
			item.Wrong(fmt.Sprintf("has the same name as another function: %q", v.Name), "give each a name of its own")
		}
		seen[v.Name] = true
		list = append(list, v)
	}
	if len(list) == 0 || len(list) > 50 {
		f["functions"].Wrong("lists "+draw.Count(len(list), "function"), "list 1 to 50, each with name, memory, "+
			"per_request, per_gib_second, cold_start and source")
	}
	return list, r.Err()
}

func function(item sheet.Node) Function {
	f := item.Fields("name", "provider", "memory", "per_request", "per_gib_second", "billed_in", "cold_start",
		"bill_cold_start", "keep_alive", "concurrency", "source")
	v := Function{Name: f["name"].Required("write a name, which --measured names as accelerator"),
		Provider: f["provider"].Text(), Source: f["source"].Required("write where the price is from, and its date"),
		Step: time.Millisecond, Keep: 5 * time.Minute, Concurrency: f["concurrency"].Whole(1, 1000, 1000),
		BillCold: f["bill_cold_start"].Word("true", "false") != "false"}
	for _, m := range []struct {
		name string
		to   **big.Rat
	}{{"per_request", &v.Request}, {"per_gib_second", &v.GiBSecond}} {
		price, ok := f[m.name].Price(money.USD)
		if !ok {
			price = new(big.Rat)
		}
		if !f[m.name].There() {
			f[m.name].Wrong("is missing", "write the price in dollars; 0 where it is free")
		}
		*m.to = price
	}
	if text := f["memory"].Required("write a size such as 4GiB"); text != "" {
		n, err := size.Parse(text)
		if err != nil || n <= 0 || n > size.TiB {
			f["memory"].Wrong(fmt.Sprintf("is %.40q", text), "write a size such as 4GiB, at most 1TiB")
		}
		v.Memory = n
	}
	for _, m := range []struct {
		name  string
		least time.Duration
		to    *time.Duration
	}{{"billed_in", time.Microsecond, &v.Step}, {"cold_start", 0, &v.Cold}, {"keep_alive", 0, &v.Keep}} {
		text := f[m.name].Text()
		if text == "" {
			continue
		}
		d, err := time.ParseDuration(text)
		if err != nil || d < m.least || d > 24*time.Hour {
			f[m.name].Wrong(fmt.Sprintf("is %.40q", text), "write a span such as 100ms or 5m, at most 24h")
		}
		*m.to = d
	}
	if !f["cold_start"].There() {
		f["cold_start"].Wrong("is missing", "write how long a new instance takes to its first request, such as 8s")
	}
	return v
}

// Rule returns how a function scales: an instance for each request that finds none without work.
func (f Function) Rule() simulation.Rule {
	return simulation.Rule{Kind: simulation.Serverless, Batch: 1, Max: f.Concurrency, Cold: f.Cold, Keep: f.Keep}
}

// Cost returns what the requests of a trace cost: the price of each, and its seconds, rounded up to the step in which
// they are billed, times the memory. A cold start is billed like a request where BillCold is set. Half a pico and
// more is rounded up, once.
func (f Function) Cost(t load.Trace, s simulation.Service, o simulation.Outcome) money.Amount {
	var steps, colds big.Int
	up := func(d time.Duration) int64 { return int64((d + f.Step - 1) / f.Step) }
	for i := range t.At {
		steps.Add(&steps, big.NewInt(up(s.Time(i, 1))))
	}
	if f.BillCold {
		colds.Mul(big.NewInt(up(f.Cold)), big.NewInt(int64(o.Colds)))
		steps.Add(&steps, &colds)
	}
	sum := new(big.Rat).SetInt(&steps)
	sum.Mul(sum, big.NewRat(int64(f.Step), int64(time.Second)))
	sum.Mul(sum, big.NewRat(int64(f.Memory), int64(size.GiB)))
	sum.Mul(sum, f.GiBSecond)
	sum.Add(sum, new(big.Rat).Mul(f.Request, big.NewRat(int64(len(t.At)), 1)))
	a, ok := sheet.Amount(sum)
	if !ok {
		return settled(new(big.Int).Lsh(big.NewInt(1), 127))
	}
	return a
}
