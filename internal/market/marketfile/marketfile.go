// Package marketfile reads and writes markets: the market file that people write, and the formats of public traces and
// price histories.
package marketfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// file is a market file. docs/market-file.md describes it.
type file struct {
	Name     string         `yaml:"name"`
	Currency money.Currency `yaml:"currency"`
	Speed    float64        `yaml:"speed"`
	Repeat   time.Duration  `yaml:"repeat"`
	Offers   []fileOffer    `yaml:"offers"`
}

type fileOffer struct {
	Zone     string          `yaml:"zone"`
	Region   string          `yaml:"region"`
	Machine  string          `yaml:"machine"`
	CPUs     int             `yaml:"cpus"`
	Memory   string          `yaml:"memory"`
	GPU      string          `yaml:"accelerator"`
	GPUs     int             `yaml:"accelerators"`
	Speed    float64         `yaml:"speed"`
	Capacity market.Capacity `yaml:"capacity"`
	Notice   time.Duration   `yaml:"notice"`
	Boot     time.Duration   `yaml:"boot"`
	Lifetime time.Duration   `yaml:"max_lifetime"`
	Billing  struct {
		Minimum time.Duration `yaml:"minimum"`
		Free    time.Duration `yaml:"free_if_interrupted_within"`
	} `yaml:"billing"`
	Price    yaml.Node `yaml:"price"`
	Reserved *struct {
		Count int           `yaml:"count"`
		From  time.Duration `yaml:"from"`
		Until time.Duration `yaml:"until"`
		Paid  string        `yaml:"paid"`
		Team  string        `yaml:"team"`
	} `yaml:"reserved"`
	Available []struct {
		From   time.Duration  `yaml:"from"`
		To     time.Duration  `yaml:"to"`
		Notice *time.Duration `yaml:"notice"`
	} `yaml:"available"`
}

// Parse parses a market file, YAML or JSON. Errors name the file, the offer, the field and the fix.
func Parse(name string, text []byte) (market.Trace, error) {
	var f file
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&f); errors.Is(err, io.EOF) {
		return market.Trace{}, fmt.Errorf("%s: the file is empty: docs/market-file.md shows one", name)
	} else if err != nil {
		return market.Trace{}, fmt.Errorf("%s: %s: docs/market-file.md lists the fields", name, inWords(err))
	}
	t := market.Trace{Name: f.Name, Currency: f.Currency, Speed: f.Speed, Repeat: f.Repeat}
	if t.Currency == "" {
		t.Currency = money.USD
	}
	if t.Speed == 0 {
		t.Speed = 1
	}
	for n, o := range f.Offers {
		line, err := o.line(t.Currency)
		if err != nil {
			return market.Trace{}, fmt.Errorf("%s: offer %d: %w", name, n+1, err)
		}
		t.Lines = append(t.Lines, line)
	}
	if err := t.Validate(); err != nil {
		var fault *market.Fault
		if errors.As(err, &fault) {
			if line := lineOf(text, fault); line > 0 {
				name = fmt.Sprintf("%s:%d", name, line)
			}
		}
		return market.Trace{}, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// lineOf returns the line of the fault in the file, or 0 if it is unknown.
func lineOf(text []byte, f *market.Fault) int {
	var doc struct {
		Offers []yaml.Node `yaml:"offers"`
	}
	if yaml.Unmarshal(text, &doc) != nil || f.Line >= len(doc.Offers) {
		return 0
	}
	at := &doc.Offers[f.Line]
	for _, name := range strings.Split(f.Field, ".") {
		for i := 0; at.Kind == yaml.MappingNode && i+1 < len(at.Content); i += 2 {
			if at.Content[i].Value == name {
				at = at.Content[i+1]
				break
			}
		}
	}
	if at.Kind == yaml.SequenceNode && f.Entry >= 0 && f.Entry < len(at.Content) {
		at = at.Content[f.Entry]
	}
	return at.Line
}

func (o fileOffer) line(currency money.Currency) (market.TraceLine, error) {
	memory, err := size.Parse(o.Memory)
	if err != nil {
		return market.TraceLine{}, fmt.Errorf("memory: %w", err)
	}
	if name, count, ok := strings.Cut(o.GPU, ":"); ok {
		return market.TraceLine{}, fmt.Errorf("accelerator: %q: write accelerator: %s and accelerators: %s", o.GPU,
			name, count)
	}
	if o.GPU != "" && o.GPUs == 0 {
		o.GPUs = 1
	}
	if o.GPUs < 0 || o.GPUs > 0 && o.GPU == "" {
		return market.TraceLine{}, fmt.Errorf("accelerators: %d of %q: name the accelerator, and how many of it the "+
			"machine has", o.GPUs, o.GPU)
	}
	line := market.TraceLine{Offer: market.Offer{
		Provider: "local", Region: o.Region, Zone: o.Zone, Machine: o.Machine, Capacity: o.Capacity, CPUs: o.CPUs,
		Memory: memory, Speed: o.Speed,
		Accelerator: o.GPU, Accelerators: o.GPUs,
		Notice: o.Notice, Boot: o.Boot, MaxLifetime: o.Lifetime, Currency: currency,
		Billing: market.Billing{Minimum: o.Billing.Minimum, FreeIfInterruptedWithin: o.Billing.Free},
	}}
	line.Offer.ID = market.ID(line.Offer)
	if o.Available != nil {
		line.Available = []market.Span{}
	}
	for _, s := range o.Available {
		notice := o.Notice
		if s.Notice != nil {
			notice = *s.Notice
		}
		line.Available = append(line.Available, market.Span{From: s.From, To: s.To, Notice: notice})
	}
	if line.Price, err = prices(o.Price); err != nil || o.Reserved == nil {
		return line, err
	}
	line.Reserved, err = o.term(line.Price)
	if err == nil {
		line.Price = nil
	}
	return line, err
}

// term converts a reservation and its payment, which is a total or an hourly price.
func (o fileOffer) term(price []market.Price) (r market.Term, err error) {
	r = market.Term{Count: o.Reserved.Count, From: o.Reserved.From, To: o.Reserved.Until, Team: o.Reserved.Team}
	if r.Count == 0 {
		r.Count = 1
	}
	switch {
	case o.Reserved.Paid != "" && len(price) > 0 || o.Reserved.Paid == "" && len(price) != 1:
		return r, fmt.Errorf("reserved: give what was paid in all, or one price of a machine's hour, and not both")
	case o.Reserved.Paid != "":
		if r.Paid, err = money.Parse(strings.TrimPrefix(o.Reserved.Paid, "$")); err != nil {
			return r, fmt.Errorf("reserved: paid: %w", err)
		}
	case r.Count > 0 && r.To > r.From:
		r.Paid = price[0].Rate.Times(r.Count).Until(quantity.Sub(r.To, r.From))
	}
	return r, nil
}

// prices parses one price, or a list of {at, price}.
func prices(n yaml.Node) ([]market.Price, error) {
	rate := func(n *yaml.Node) (money.Rate, error) {
		r, err := money.ParseRate(strings.TrimPrefix(n.Value, "$"))
		if err != nil {
			return 0, fmt.Errorf("price: line %d: %w", n.Line, err)
		}
		return r, nil
	}
	switch n.Kind {
	case 0:
		return nil, nil // Validate reports the missing price
	case yaml.ScalarNode:
		r, err := rate(&n)
		return []market.Price{{Rate: r}}, err
	}
	var steps []struct {
		At    time.Duration `yaml:"at"`
		Price yaml.Node     `yaml:"price"`
	}
	if err := n.Decode(&steps); err != nil {
		return nil, fmt.Errorf("price: line %d: write one price, or a list of {at: 0s, price: 0.97}", n.Line)
	}
	list := make([]market.Price, 0, len(steps))
	for _, s := range steps {
		r, err := rate(&s.Price)
		if err != nil {
			return nil, err
		}
		list = append(list, market.Price{At: s.At, Rate: r})
	}
	return list, nil
}
