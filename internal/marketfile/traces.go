package marketfile

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/size"
)

// Import is what a trace file does not say of the machines that it is about.
type Import struct {
	Name     string // of the market
	Machine  string
	CPUs     int
	Memory   size.Bytes
	GPU      string
	GPUs     int
	Spot     money.Rate // where the file has no prices
	OnDemand money.Rate // 0: nothing is sold that cannot be taken
	Tick     time.Duration
	Notice   time.Duration
	Window   string // the one that is read of a file with several
	// OnesAvailable says that 1 stands for available; false: for preempted, as in
	// the public preemption traces.
	OnesAvailable bool
}

// Source is one trace file; its name without folder and ending names the zone
// where the file does not.
type Source struct {
	Name string
	Text []byte
}

// Import reads trace files into one market, each in the form that it is in:
//
//   - JSON {"metadata": {"gap_seconds": 600}, "data": [0, 1, …], "prices": […]}:
//     the public preemption and availability traces, one zone a file
//   - JSON {"SpotPriceHistory": […]}: the answer of AWS, prices without availability
//   - CSV zone,start_tick,ticks,available: run-length coded, also with a column window;
//     with usd_per_hour in place of available it has the prices of the zones of another
func (m Import) Import(files []Source) (market.Trace, error) {
	switch {
	case m.CPUs <= 0:
		return market.Trace{}, fmt.Errorf("--cpus %d: a machine has one or more", m.CPUs)
	case m.Memory <= 0:
		return market.Trace{}, fmt.Errorf("--memory %v: a machine has some, such as 61GiB", m.Memory)
	case m.Tick < 0 || m.Tick > longestGap:
		return market.Trace{}, fmt.Errorf("--tick %v is not between 0 and %v", m.Tick, longestGap)
	case m.Notice < 0:
		return market.Trace{}, fmt.Errorf("--notice %v is negative: write 0s for none", m.Notice)
	}
	t := market.Trace{Name: cmp.Or(m.Name, "imported"), Currency: money.USD, Speed: 1}
	ends := map[market.OfferID]time.Duration{} // of what CSV tells
	for _, f := range files {
		var lines []market.TraceLine
		var known time.Duration
		var err error
		switch head := strings.TrimSpace(string(f.Text[:min(len(f.Text), 4096)])); {
		case strings.HasPrefix(head, "{") && strings.Contains(string(f.Text), `"SpotPriceHistory"`):
			lines, err = m.history(f.Text)
		case strings.HasPrefix(head, "{"):
			lines, err = m.preemptions(f)
		case strings.Contains(head, "start_tick"):
			lines, known, err = m.runs(f.Text)
		default:
			err = errors.New("neither JSON with data or SpotPriceHistory, nor CSV with start_tick: docs/market-file.md " +
				"shows the forms")
		}
		if err != nil {
			return t, fmt.Errorf("%s: %w", f.Name, err)
		}
		for _, l := range lines {
			if known == 0 {
				t.Lines = append(t.Lines, l)
				continue
			}
			i := slices.IndexFunc(t.Lines, func(o market.TraceLine) bool { return o.Offer.ID == l.Offer.ID })
			switch {
			case i < 0:
				t.Lines, ends[l.Offer.ID] = append(t.Lines, l), known
			case len(t.Lines[i].Price) > 0 == (len(l.Price) > 0) || ends[l.Offer.ID] == 0:
				return t, fmt.Errorf("%s: zone: %s stands in another file too: give one of when it can be had, and one of prices",
					f.Name, l.Offer.Zone)
			case ends[l.Offer.ID] != known:
				return t, fmt.Errorf("%s: ticks: %s is told until %v, and until %v in another file: cut the longer one", f.Name,
					l.Offer.Zone, known, ends[l.Offer.ID])
			case len(l.Price) > 0:
				t.Lines[i].Price = l.Price
			default:
				t.Lines[i].Available = l.Available
			}
		}
	}
	for i := range t.Lines {
		switch l := &t.Lines[i]; {
		case len(l.Price) > 0:
		case m.Spot > 0:
			l.Price = []market.Price{{Rate: m.Spot}}
		default:
			return t, fmt.Errorf("price of %s: no file says it: give --spot-price, or a file of prices "+
				"(zone,start_tick,ticks,usd_per_hour)", l.Offer.Zone)
		}
	}
	if m.OnDemand > 0 {
		places := map[string]bool{}
		for _, l := range slices.Clone(t.Lines) {
			if o := l.Offer; !places[o.Zone+"/"+o.Machine] {
				places[o.Zone+"/"+o.Machine] = true
				o.Capacity, o.Notice = market.OnDemand, 0
				o.ID = market.ID(o)
				t.Lines = append(t.Lines, market.TraceLine{Offer: o, Price: []market.Price{{Rate: m.OnDemand}}})
			}
		}
	}
	return t, t.Validate()
}

func (m Import) offer(zone, machine string) market.Offer {
	o := market.Offer{
		Provider: "local", Zone: zone, Region: region(zone), Machine: cmp.Or(machine, m.Machine, "machine"),
		Capacity: market.Spot,
		CPUs:     m.CPUs, Memory: m.Memory, Accelerator: m.GPU, Accelerators: m.GPUs, Notice: m.Notice, Currency: money.USD,
	}
	o.ID = market.ID(o)
	return o
}

// region is us-east-1 of us-east-1a, else the zone.
func region(zone string) string {
	n := len(zone)
	if n > 2 && zone[n-1] >= 'a' && zone[n-1] <= 'z' && zone[n-2] >= '0' && zone[n-2] <= '9' {
		return zone[:n-1]
	}
	return zone
}

func (m Import) preemptions(f Source) ([]market.TraceLine, error) {
	var file struct {
		Metadata struct {
			Gap *float64 `json:"gap_seconds"`
		} `json:"metadata"`
		Data   []*float64 `json:"data"`
		Prices []*float64 `json:"prices"`
	}
	if err := json.Unmarshal(f.Text, &file); err != nil {
		return nil, fmt.Errorf("read as JSON: %w", err)
	}
	gap := m.Tick
	if given := file.Metadata.Gap; given != nil {
		if !(*given >= 1 && *given <= longestGap.Seconds()) {
			return nil, fmt.Errorf("metadata.gap_seconds: %v is not between 1 and %.0f", *given, longestGap.Seconds())
		}
		gap = time.Duration(*given * float64(time.Second))
	}
	switch {
	case len(file.Data) == 0:
		return nil, errors.New("data: missing or empty: it holds 0 or 1 for each step")
	case gap <= 0:
		return nil, errors.New("metadata.gap_seconds: missing: give the time between two values with --tick")
	case len(file.Prices) > 0 && len(file.Prices) != len(file.Data):
		return nil, fmt.Errorf("prices: %d for %d values of data: give one for each, or none", len(file.Prices),
			len(file.Data))
	case len(file.Prices) == 0 && m.Spot <= 0:
		return nil, errors.New("prices: missing: give the price of an hour with --spot-price")
	case len(file.Data) > int(longest/gap):
		return nil, fmt.Errorf("data: %d values of %v are more than 100 years: cut it", len(file.Data), gap)
	}
	up := make([]bool, len(file.Data))
	for i, v := range file.Data {
		if v == nil || *v != 0 && *v != 1 {
			return nil, fmt.Errorf("data[%d]: %s is neither 0 nor 1", i, number(v))
		}
		up[i] = (*v == 1) == m.OnesAvailable
	}
	zone := f.Name[strings.LastIndexAny(f.Name, `/\`)+1:]
	if dot := strings.LastIndexByte(zone, '.'); dot > 0 {
		zone = zone[:dot]
	}
	l := market.TraceLine{Offer: m.offer(zone, ""), Available: spans(up, gap, m.Notice)}
	if len(file.Prices) == 0 {
		l.Price = []market.Price{{Rate: m.Spot}}
	}
	for i, p := range file.Prices {
		r, err := rate(number(p))
		if err != nil {
			return nil, fmt.Errorf("prices[%d]: %w", i, err)
		}
		if n := len(l.Price); n == 0 || l.Price[n-1].Rate != r {
			l.Price = append(l.Price, market.Price{At: time.Duration(i) * gap, Rate: r})
		}
	}
	return []market.TraceLine{l}, nil
}

func spans(up []bool, gap, notice time.Duration) []market.Span {
	list := []market.Span{}
	for i := 0; i < len(up); i++ {
		if !up[i] {
			continue
		}
		from := i
		for i < len(up) && up[i] {
			i++
		}
		list = append(list, market.Span{From: time.Duration(from) * gap, To: time.Duration(i) * gap,
			Notice: min(notice, time.Duration(i-from)*gap)})
	}
	return list
}

const (
	longestGap = 31 * 24 * time.Hour
	longest    = 100 * 365 * 24 * time.Hour // of a trace: spans do not overflow
)

// number writes a number of a file as it could stand there.
func number(v *float64) string {
	if v == nil {
		return "null"
	}
	return strconv.FormatFloat(*v, 'f', -1, 64)
}

func rate(text string) (money.Rate, error) {
	r, err := money.ParseRate(text)
	if err != nil {
		return 0, err
	}
	if r <= 0 {
		return 0, fmt.Errorf("%s is not above zero", text)
	}
	return r, nil
}

// history reads prices; AWS does not say when spot could be had, so it always can.
func (m Import) history(text []byte) ([]market.TraceLine, error) {
	var answer struct {
		List []struct {
			Zone    string    `json:"AvailabilityZone"`
			Type    string    `json:"InstanceType"`
			Product string    `json:"ProductDescription"`
			Price   string    `json:"SpotPrice"`
			At      time.Time `json:"Timestamp"`
		} `json:"SpotPriceHistory"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("read as JSON: %w", err)
	}
	slices.SortStableFunc(answer.List, func(a, b struct {
		Zone    string    `json:"AvailabilityZone"`
		Type    string    `json:"InstanceType"`
		Product string    `json:"ProductDescription"`
		Price   string    `json:"SpotPrice"`
		At      time.Time `json:"Timestamp"`
	}) int {
		return a.At.Compare(b.At)
	})
	var lines []market.TraceLine
	at := map[string]int{}
	for _, e := range answer.List {
		if e.Product != "" && !strings.HasPrefix(e.Product, "Linux") {
			continue
		}
		r, err := rate(e.Price)
		if err != nil {
			return nil, fmt.Errorf("SpotPriceHistory: SpotPrice of %s in %s at %s: %w", e.Type, e.Zone,
				e.At.UTC().Format(time.RFC3339), err)
		}
		key := e.Zone + "/" + e.Type
		n, known := at[key]
		if !known {
			n = len(lines)
			at[key] = n
			lines = append(lines, market.TraceLine{Offer: m.offer(e.Zone, e.Type)})
		}
		since := e.At.Sub(answer.List[0].At)
		l := &lines[n]
		switch k := len(l.Price); {
		case k == 0:
			l.Price = append(l.Price, market.Price{Rate: r})
		case l.Price[k-1].Rate == r:
		case l.Price[k-1].At == since:
			l.Price[k-1].Rate = r
		default:
			l.Price = append(l.Price, market.Price{At: since, Rate: r})
		}
	}
	if len(lines) == 0 {
		return nil, errors.New("SpotPriceHistory: no price of a Linux machine")
	}
	return lines, nil
}

// runs reads when spot could be had, or what it cost, and how far that is known. All
// zones of a file are known as far.
func (m Import) runs(text []byte) ([]market.TraceLine, time.Duration, error) {
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(string(text), "\ufeff")))
	head, err := r.Read()
	if err != nil {
		return nil, 0, fmt.Errorf("line 1: %w", err)
	}
	column := map[string]int{}
	for i, h := range head {
		column[h] = i
	}
	value, priced := column["usd_per_hour"]
	if !priced {
		value = column["available"]
	}
	for _, want := range []string{"zone", "start_tick", "ticks", "available"} {
		if _, ok := column[want]; !ok && (want != "available" || !priced) {
			return nil, 0, fmt.Errorf("line 1: no column %s: the columns are zone,start_tick,ticks,available (or usd_per_hour)",
				want)
		}
	}
	if _, both := column["available"]; both && priced {
		return nil, 0, errors.New("line 1: the columns available and usd_per_hour: give a file of each")
	}
	if m.Tick <= 0 {
		return nil, 0, errors.New("ticks: the file does not say how long one is: give --tick, such as 10m")
	}
	window, windows := column["window"]
	first := ""
	var lines []market.TraceLine
	at, ends, ups := map[string]int{}, map[string]int{}, map[string][]bool{}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, fmt.Errorf("read: %w", err)
		}
		line, _ := r.FieldPos(0)
		if windows {
			switch w := row[window]; {
			case m.Window != "" && w != m.Window:
				continue
			case first == "":
				first = w
			case w != first:
				return nil, 0, fmt.Errorf("line %d: window: %q after %q, and a market is one of them: name it with --window",
					line, w, first)
			}
		}
		zone := row[column["zone"]]
		start, err1 := strconv.Atoi(row[column["start_tick"]])
		ticks, err2 := strconv.Atoi(row[column["ticks"]])
		switch {
		case err1 != nil || err2 != nil || ticks <= 0 || ticks > 1<<24:
			return nil, 0, fmt.Errorf("line %d: start_tick and ticks: %q and %q: give whole numbers, ticks above 0", line,
				row[column["start_tick"]], row[column["ticks"]])
		case start != ends[zone]:
			return nil, 0, fmt.Errorf("line %d: start_tick: %d, but the row before of zone %s ends at %d: give the rows in "+
				"order, without holes", line, start, zone, ends[zone])
		case ticks > int(longest/m.Tick)-start:
			return nil, 0, fmt.Errorf("line %d: ticks: %d of %v from %d on are more than 100 years: cut it", line, ticks,
				m.Tick, start)
		}
		n, seen := at[zone]
		if !seen {
			n = len(lines)
			at[zone] = n
			lines = append(lines, market.TraceLine{Offer: m.offer(zone, "")})
		}
		ends[zone] += ticks
		if priced {
			usd, err := rate(row[value])
			if err != nil {
				return nil, 0, fmt.Errorf("line %d: usd_per_hour: %w", line, err)
			}
			if l := &lines[n]; len(l.Price) == 0 || l.Price[len(l.Price)-1].Rate != usd {
				l.Price = append(l.Price, market.Price{At: time.Duration(start) * m.Tick, Rate: usd})
			}
			continue
		}
		if row[value] != "0" && row[value] != "1" {
			return nil, 0, fmt.Errorf("line %d: available: %q is neither 0 nor 1", line, row[value])
		}
		ups[zone] = append(ups[zone], slices.Repeat([]bool{row[value] == "1"}, ticks)...)
	}
	if len(lines) == 0 {
		if m.Window != "" {
			return nil, 0, fmt.Errorf("no rows of the window %q that --window names", m.Window)
		}
		return nil, 0, errors.New("no rows")
	}
	end := ends[lines[0].Offer.Zone]
	for i := range lines {
		zone := lines[i].Offer.Zone
		if ends[zone] != end {
			return nil, 0, fmt.Errorf("ticks: %s is told until tick %d and %s until %d: cut the longer one", zone, ends[zone],
				lines[0].Offer.Zone, end)
		}
		if !priced {
			lines[i].Available = spans(ups[zone], m.Tick, m.Notice)
		}
	}
	return lines, time.Duration(end) * m.Tick, nil
}
