package marketfile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// Import holds the facts about the machines that a trace file lacks.
type Import struct {
	Name     string // of the market
	Machine  string
	CPUs     int
	Memory   size.Bytes
	GPU      string
	GPUs     int
	Spot     money.Rate // if the file has no prices
	OnDemand money.Rate // 0 for no on-demand offer
	Tick     time.Duration
	Notice   time.Duration
	Window   string // the window to read from a file with several
	// OnesAvailable means that 1 is available; otherwise 1 is preempted, as in the public preemption traces.
	OnesAvailable bool
}

// Source is one trace file. Its name without folder and extension names the zone, unless the file does.
type Source struct {
	Name string
	Text []byte
}

// Import reads trace files of any supported format into one market:
//
//   - JSON {"metadata": {"gap_seconds": 600}, "data": [0, 1, …], "prices": […]}:
//     the public preemption and availability traces, one zone a file
//   - JSON {"SpotPriceHistory": […]}: the answer of AWS, prices without availability
//   - CSV zone,start_tick,ticks,available: run-length coded, also with a column window;
//     with usd_per_hour in place of available it has the prices of the zones of another
func (m Import) Import(files []Source) (market.Trace, error) {
	if err := m.check(); err != nil {
		return market.Trace{}, err
	}
	t := market.Trace{Name: cmp.Or(m.Name, "imported"), Currency: money.USD, Speed: 1}
	ends := map[market.OfferID]time.Duration{} // of zones from CSV files
	for _, f := range files {
		lines, known, err := m.read(f)
		if err != nil {
			return t, fmt.Errorf("%s: %w", f.Name, err)
		}
		for _, l := range lines {
			if known == 0 {
				t.Lines = append(t.Lines, l)
				continue
			}
			if err := join(&t, ends, l, known); err != nil {
				return t, fmt.Errorf("%s: %w", f.Name, err)
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
	m.addOnDemand(&t)
	return t, t.Validate()
}

// check returns an error for an invalid flag.
func (m Import) check() error {
	switch {
	case m.CPUs <= 0:
		return fmt.Errorf("--cpus %d: a machine has one or more", m.CPUs)
	case m.Memory <= 0:
		return fmt.Errorf("--memory %v: a machine has some, such as 61GiB", m.Memory)
	case m.Tick < 0 || m.Tick > longestGap:
		return fmt.Errorf("--tick %v is not between 0 and %v", m.Tick, longestGap)
	case m.Notice < 0:
		return fmt.Errorf("--notice %v is negative: write 0s for none", m.Notice)
	}
	return nil
}

// read reads one file in its format. known is the duration of a CSV file, and 0 for other formats.
func (m Import) read(f Source) (lines []market.TraceLine, known time.Duration, err error) {
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
	return lines, known, err
}

// join adds a zone of a CSV file to the market: a new zone, or the part that the other file of the zone lacks. Both
// files must have the same duration.
func join(t *market.Trace, ends map[market.OfferID]time.Duration, l market.TraceLine, known time.Duration) error {
	i := slices.IndexFunc(t.Lines, func(o market.TraceLine) bool { return o.Offer.ID == l.Offer.ID })
	switch {
	case i < 0:
		t.Lines, ends[l.Offer.ID] = append(t.Lines, l), known
	case len(t.Lines[i].Price) > 0 == (len(l.Price) > 0) || ends[l.Offer.ID] == 0:
		return fmt.Errorf("zone: %s stands in another file too: give one of when it can be had, and one of prices",
			l.Offer.Zone)
	case ends[l.Offer.ID] != known:
		return fmt.Errorf("ticks: %s ends at %v, and at %v in another file: cut the longer one",
			l.Offer.Zone, known, ends[l.Offer.ID])
	case len(l.Price) > 0:
		t.Lines[i].Price = l.Price
	default:
		t.Lines[i].Available = l.Available
	}
	return nil
}

// addOnDemand adds each machine in each zone at the on-demand price, if there is one.
func (m Import) addOnDemand(t *market.Trace) {
	if m.OnDemand <= 0 {
		return
	}
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

func (m Import) offer(zone, machine string) market.Offer {
	o := market.Offer{
		Provider: "local", Zone: zone, Region: region(zone), Machine: cmp.Or(machine, m.Machine, "machine"),
		Capacity: market.Spot,
		CPUs:     m.CPUs, Memory: m.Memory, Accelerator: m.GPU, Accelerators: m.GPUs, Notice: m.Notice, Currency: money.USD,
	}
	o.ID = market.ID(o)
	return o
}

// region returns us-east-1 for us-east-1a, or else the zone.
func region(zone string) string {
	n := len(zone)
	if n > 2 && zone[n-1] >= 'a' && zone[n-1] <= 'z' && zone[n-2] >= '0' && zone[n-2] <= '9' {
		return zone[:n-1]
	}
	return zone
}

// zeroOne is a file of the public preemption and availability traces.
type zeroOne struct {
	Metadata struct {
		Gap *float64 `json:"gap_seconds"`
	} `json:"metadata"`
	Data   []*float64 `json:"data"`
	Prices []*float64 `json:"prices"`
}

func (m Import) preemptions(f Source) ([]market.TraceLine, error) {
	var file zeroOne
	if err := json.Unmarshal(f.Text, &file); err != nil {
		return nil, fmt.Errorf("read as JSON: %w", err)
	}
	gap, err := m.gap(file)
	if err != nil {
		return nil, err
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

// gap returns the time between two values of a file, and checks the file's lengths.
func (m Import) gap(file zeroOne) (time.Duration, error) {
	gap := m.Tick
	if given := file.Metadata.Gap; given != nil {
		if !(*given >= 1 && *given <= longestGap.Seconds()) {
			return 0, fmt.Errorf("metadata.gap_seconds: %v is not between 1 and %.0f", *given, longestGap.Seconds())
		}
		gap = time.Duration(*given * float64(time.Second))
	}
	switch {
	case len(file.Data) == 0:
		return 0, errors.New("data: missing or empty: it holds 0 or 1 for each step")
	case gap <= 0:
		return 0, errors.New("metadata.gap_seconds: missing: give the time between two values with --tick")
	case len(file.Prices) > 0 && len(file.Prices) != len(file.Data):
		return 0, fmt.Errorf("prices: %d for %d values of data: give one for each, or none", len(file.Prices),
			len(file.Data))
	case len(file.Prices) == 0 && m.Spot <= 0:
		return 0, errors.New("prices: missing: give the price of an hour with --spot-price")
	case len(file.Data) > int(longest/gap):
		return 0, fmt.Errorf("data: %d values of %v are more than 100 years: cut it", len(file.Data), gap)
	}
	return gap, nil
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
	longest    = 100 * 365 * 24 * time.Hour // of a trace, so that durations do not overflow
)

// number formats a number as in a file.
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

// history reads prices. AWS does not publish availability, so spot is always available.
func (m Import) history(text []byte) ([]market.TraceLine, error) {
	type entry struct {
		Zone    string    `json:"AvailabilityZone"`
		Type    string    `json:"InstanceType"`
		Product string    `json:"ProductDescription"`
		Price   string    `json:"SpotPrice"`
		At      time.Time `json:"Timestamp"`
	}
	var answer struct {
		List []entry `json:"SpotPriceHistory"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("read as JSON: %w", err)
	}
	slices.SortStableFunc(answer.List, func(a, b entry) int { return a.At.Compare(b.At) })
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
