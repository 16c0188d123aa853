package aws

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/feed/intake"
)

// dollarsFirst sorts the currencies of a price.
func dollarsFirst(price map[string]string) []string {
	return slices.SortedFunc(maps.Keys(price), func(a, b string) int {
		if (a == "USD") != (b == "USD") {
			return map[bool]int{true: -1, false: 1}[a == "USD"]
		}
		return strings.Compare(a, b)
	})
}

// options maps AWS's names of upfront payments to ours.
var options = map[string]string{"No Upfront": "no-upfront", "Partial Upfront": "partial-upfront",
	"All Upfront": "all-upfront"}

// terms returns the price of a reserved term, or why it is skipped.
func (t awsTerm) terms() (terms catalog.Terms, currency money.Currency, why, detail string) {
	a := t.Attributes
	years, isYears := strings.CutSuffix(a.Lease, "yr")
	name := "reserved-" + years + "y-" + options[a.Option]
	if a.Class == "convertible" {
		name += "-convertible"
	}
	term, err := catalog.ParseTerm(name)
	if err != nil || !isYears || a.Class != "standard" && a.Class != "convertible" {
		return terms, "", catalog.OtherUse, strings.TrimSpace("reserved " + a.Lease + " " + a.Class + " " + a.Option)
	}
	terms.Term = term
	for _, code := range slices.Sorted(maps.Keys(t.Dimensions)) {
		dim := t.Dimensions[code]
		names := dollarsFirst(dim.Price)
		if len(names) == 0 {
			return terms, "", catalog.NoPrice, name
		}
		c, ok := catalog.ParseCurrency(names[0])
		if !ok || currency != "" && c != currency {
			return terms, "", catalog.BadCurrency, names[0]
		}
		currency = c
		text := dim.Price[names[0]]
		switch strings.ToLower(dim.Unit) {
		case "hrs":
			terms.Hourly, err = money.ParseRate(text)
		case "quantity":
			terms.Upfront, err = money.Parse(text)
		default:
			return terms, "", catalog.BadRow, "unit " + dim.Unit
		}
		if err != nil {
			return terms, "", catalog.BadPrice, text
		}
	}
	if _, ok := term.Effective(terms.Upfront, terms.Hourly); !ok {
		return terms, "", catalog.NoPrice, name
	}
	return terms, currency, "", ""
}

// awsPlan is one savings plan of a price list, with the hourly rate of each machine.
type awsPlan struct {
	SKU         string `json:"sku"`
	Description string `json:"description"` // "3 year No Upfront Compute Savings Plan"
	Length      struct {
		Duration json.Number `json:"duration"`
		Unit     string      `json:"unit"`
	} `json:"leaseContractLength"`
	Rates []struct {
		Usage     string `json:"discountedUsageType"` // BoxUsage:p4d.24xlarge, with the region's prefix
		Operation string `json:"discountedOperation"` // RunInstances means Linux
		Service   string `json:"discountedServiceCode"`
		Unit      string `json:"unit"`
		Region    string `json:"discountedRegionCode"`
		Machine   string `json:"discountedInstanceType"`
		Rate      struct {
			Price    string `json:"price"`
			Currency string `json:"currency"`
		} `json:"discountedRate"`
	} `json:"rates"`
}

// term returns the plan's Term, or "".
func (p awsPlan) term() catalog.Term {
	kind := ""
	switch {
	case strings.Contains(p.Description, "Compute Savings Plan"):
		kind = "savings-plan"
	case strings.Contains(p.Description, "EC2 Instance Savings Plan"):
		kind = "instance-savings-plan"
	}
	for option, name := range options {
		if strings.Contains(p.Description, option) && strings.HasPrefix(p.Length.Unit, "year") {
			if t, err := catalog.ParseTerm(kind + "-" + p.Length.Duration.String() + "y-" + name); err == nil {
				return t
			}
		}
	}
	return ""
}

// pays splits the rate of a savings plan, which is the total per hour: all upfront pays the sum of all hours at once,
// partial upfront half of it, and otherwise nothing.
func pays(t catalog.Term, rate money.Rate) catalog.Terms {
	p := catalog.Terms{Term: t, Hourly: rate}
	switch {
	case strings.HasSuffix(string(t), "all-upfront"):
		p.Hourly = 0
	case strings.HasSuffix(string(t), "partial-upfront"):
		p.Hourly = rate / 2
	}
	p.Upfront = (rate - p.Hourly).Until(time.Duration(t.Hours()) * time.Hour)
	return p
}

// ReadSavings reads the price list of savings plans as a stream.
func ReadSavings(p intake.Page, r io.Reader) (catalog.Catalog, error) {
	s := savings{page: p, d: json.NewDecoder(r), t: intake.Tally{Source: p.Source}, at: p.At}
	err := object(s.d, s.field)
	if err == nil && !s.saw {
		err = fmt.Errorf("no savingsPlan among its terms")
	}
	if err != nil {
		return catalog.Catalog{}, fmt.Errorf("read savings plans of %s: %w: %w", p.Source, intake.ErrForm, err)
	}
	return catalog.New(p.Source, s.rows, s.t.Skips), nil
}

// savings is the state of reading a price list of savings plans.
type savings struct {
	page   intake.Page
	d      *json.Decoder
	t      intake.Tally
	at     time.Time
	region string
	saw    bool
	rows   []catalog.Listing
}

func (s *savings) field(key string) error {
	switch key {
	case "publicationDate":
		var text string
		if err := s.d.Decode(&text); err != nil {
			return err
		}
		at, err := catalog.ParseTime(text)
		s.at = at
		return err
	case "regionCode":
		return s.d.Decode(&s.region)
	case "terms":
		return object(s.d, func(kind string) error {
			if kind != "savingsPlan" {
				return discard(s.d)
			}
			s.saw = true
			return s.plans()
		})
	}
	return discard(s.d)
}

// plans reads one plan after another and keeps only one in memory.
func (s *savings) plans() error {
	open, err := s.d.Token()
	if err != nil {
		return err
	}
	if open != json.Delim('[') {
		return fmt.Errorf("%v where a list should start", open)
	}
	for s.d.More() {
		var plan awsPlan
		if err := s.d.Decode(&plan); err != nil {
			return err
		}
		s.plan(plan)
	}
	_, err = s.d.Token()
	return err
}

func (s *savings) plan(plan awsPlan) {
	term := plan.term()
	for _, r := range plan.Rates {
		_, usage, isBox := strings.Cut(r.Usage, "BoxUsage:")
		machine := r.Machine
		if machine == "" {
			machine = usage
		}
		region := r.Region
		if region == "" {
			region = s.region
		}
		if term == "" || !isBox || r.Operation != "RunInstances" || r.Service != "AmazonEC2" || r.Unit != "Hrs" {
			s.t.Skip(catalog.OtherUse, r.Usage, strings.TrimSpace(plan.Description+" "+r.Operation))
			continue
		}
		shape, ok := s.page.Shapes.Machine("aws", machine)
		if !ok {
			s.t.Skip(catalog.NoMachine, machine, "import a price list first: it says what the machine is")
			continue
		}
		rate, why := catalog.ParsePrice(r.Rate.Price)
		currency, known := catalog.ParseCurrency(r.Rate.Currency)
		switch {
		case why != "":
			s.t.Skip(why, machine, r.Rate.Price)
		case !known:
			s.t.Skip(catalog.BadCurrency, machine, r.Rate.Currency)
		case region == "":
			s.t.Skip(catalog.BadRow, machine, "discountedRegionCode is missing")
		default:
			q := market.Quote{At: s.at, Source: s.page.Source}
			s.rows = append(s.rows, intake.SellFor(shape, region, pays(term, rate), currency, q))
		}
	}
}
