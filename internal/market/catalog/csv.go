package catalog

import (
	_ "embed" // the listings are part of the program
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/lib/figure"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/accelerator"
	"scrimp/internal/market/table"
)

//go:embed listings.csv
var listingRows string

// Builtin returns the built-in catalogue.
func Builtin() Catalog {
	c, err := Read("built in", listingRows)
	if err != nil || len(c.Skipped) > 0 {
		// The rows are part of the program, and a test reads them.
		panic(fmt.Sprintf("catalog: %v, skipped %v", err, c.Skipped))
	}
	return c
}

// head lists the columns of a listings file, which Write writes and Read reads. The columns may be in any order, with
// others among them.
var head = []string{"provider", "region", "zone", "machine", "capacity", "accelerator", "accelerators",
	"accelerator_memory_gb", "cpus", "memory_gib", "disk_gb", "network_gbps", "price", "currency", "at", "source",
	"risk_low", "risk_high", "term", "platform", "upfront", "hourly"}

// Read reads a listings file. It skips and counts invalid rows; a file without the required columns is an error.
func Read(source, text string) (Catalog, error) {
	rows, err := table.Read(text)
	if err != nil {
		return Catalog{}, fmt.Errorf("read listings of %s: %w", source, err)
	}
	if len(rows) == 0 {
		return Catalog{}, fmt.Errorf("read listings of %s: no rows", source)
	}
	for _, name := range []string{"provider", "region", "machine", "capacity", "price", "currency"} {
		if _, ok := rows[0][name]; !ok {
			return Catalog{}, fmt.Errorf("read listings of %s: no column %s", source, name)
		}
	}
	var list []Listing
	var skipped []Skip
	for i, r := range rows {
		l, skip := listing(r)
		if skip.Why != "" {
			skip.Source, skip.Row = source, i+2
			if skip.Name == "" {
				skip.Name = r["provider"] + " " + r["machine"]
			}
			skipped = append(skipped, skip)
			continue
		}
		list = append(list, l)
	}
	return New(source, list, skipped), nil
}

// listing parses one row, or returns why it is skipped.
func listing(r map[string]string) (Listing, Skip) {
	var l Listing
	switch {
	case r["!"] != "":
		return l, Skip{Why: BadRow, Detail: r["!"]}
	case r["provider"] == "" || r["region"] == "" || r["machine"] == "":
		return l, Skip{Why: BadRow, Detail: "provider, region or machine is missing"}
	}
	l.Offer = market.Offer{Provider: r["provider"], Region: r["region"], Zone: r["zone"], Machine: r["machine"],
		Capacity: market.Capacity(r["capacity"])}
	switch l.Offer.Capacity {
	case market.Spot, market.OnDemand, market.Reserved:
	default:
		return l, Skip{Why: BadRow, Detail: fmt.Sprintf("capacity %q is not spot, on-demand or reserved", r["capacity"])}
	}
	if skip := l.quote(r); skip.Why != "" {
		return l, skip
	}
	if skip := l.terms(r); skip.Why != "" {
		return l, skip
	}
	if bad := l.machine(r); bad != "" || l.Risk.Known && l.Risk.Low > l.Risk.High {
		return l, Skip{Why: BadRow, Detail: bad}
	}
	return l.settle(), Skip{}
}

// quote parses the price of a row, or returns why it is skipped.
func (l *Listing) quote(r map[string]string) Skip {
	rate, why := ParsePrice(r["price"])
	if why != "" && why != NoPrice {
		return Skip{Why: why, Detail: r["price"]}
	}
	currency, ok := ParseCurrency(r["currency"])
	if !ok {
		return Skip{Why: BadCurrency, Detail: r["currency"]}
	}
	l.Offer.Currency = currency
	l.Quote = market.Quote{Rate: rate, Priced: why == "", Source: r["source"]}
	if at := r["at"]; at != "" {
		t, err := ParseTime(at)
		if err != nil {
			return Skip{Why: BadRow, Detail: err.Error()}
		}
		l.Quote.At = t
	}
	return Skip{}
}

// machine parses a row's facts about the machine, and returns the name of an invalid cell.
func (l *Listing) machine(r map[string]string) (bad string) {
	number := func(name string, most float64) figure.Figure {
		if r[name] == "" {
			return figure.Figure{}
		}
		v, err := strconv.ParseFloat(r[name], 64)
		if err != nil || math.IsNaN(v) || v < 0 || v > most {
			bad = fmt.Sprintf("%s is %q", name, r[name])
		}
		return figure.Known(v)
	}
	l.Offer.CPUs = int(number("cpus", 1e6).V)
	l.Offer.Memory = size.Bytes(number("memory_gib", 1e7).V * float64(size.GiB))
	l.Offer.Accelerators = int(number("accelerators", 1e6).V)
	l.AcceleratorMemory = size.Bytes(number("accelerator_memory_gb", 1e5).V * float64(size.GB))
	l.Disk, l.Network = number("disk_gb", 1e9), number("network_gbps", 1e6)
	low, high := number("risk_low", 1), number("risk_high", 1)
	l.Risk = Risk{Low: low.V, High: high.V, Known: low.OK && high.OK}
	if r["accelerator"] != "" {
		l.Offer.Accelerator = accelerator.Resolve(r["accelerator"], r["machine"], l.AcceleratorMemory)
		if l.Offer.Accelerators == 0 {
			bad = "accelerators is missing"
		}
	}
	return bad
}

// ParsePrice parses an hourly price, or returns why it is invalid. Zero in a list means no price; a user states free
// machines in an overlay.
func ParsePrice(s string) (money.Rate, string) {
	s = strings.TrimSpace(s)
	if s == "" {
		return 0, NoPrice
	}
	plain, ok := Plain(s)
	if !ok {
		return 0, BadPrice
	}
	if strings.HasPrefix(plain, "-") && strings.Trim(plain, "-0.") != "" {
		return 0, Negative
	}
	rate, err := money.ParseRate(strings.TrimPrefix(plain, "-"))
	switch {
	case err != nil, !quantity.Price.Allows(rate.Float()):
		return 0, BadPrice
	case rate == 0:
		return 0, ZeroPrice
	}
	return rate, ""
}

// Plain writes a JSON number without its exponent, truncated below 1e-12: 1.5e-2 becomes 0.015.
func Plain(s string) (string, bool) {
	mantissa, exp, has := strings.Cut(strings.ToLower(s), "e")
	shift := 0
	if has {
		n, err := strconv.Atoi(exp)
		if err != nil || n < -40 || n > 40 {
			return "", false
		}
		shift = n
	}
	sign := ""
	if strings.HasPrefix(mantissa, "-") {
		sign, mantissa = "-", mantissa[1:]
	}
	whole, frac, point := strings.Cut(mantissa, ".")
	if point && frac == "" {
		frac = "0" // as Python prints 2.0 without the zero
	}
	if whole == "" || strings.Trim(whole+frac, "0123456789") != "" || len(whole)+len(frac) > 40 {
		return "", false
	}
	whole, frac = shifted(whole, frac, shift)
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if len(frac) > 12 {
		frac = frac[:12]
	}
	if frac == "" {
		return sign + whole, true
	}
	return sign + whole + "." + frac, true
}

// shifted moves the point of whole.frac by the given number of digits, to the right if by is positive.
func shifted(whole, frac string, by int) (string, string) {
	for ; by > 0; by-- {
		if frac == "" {
			frac = "0"
		}
		whole, frac = whole+frac[:1], frac[1:]
	}
	for ; by < 0; by++ {
		if whole == "" {
			whole = "0"
		}
		whole, frac = whole[:len(whole)-1], whole[len(whole)-1:]+frac
	}
	return whole, frac
}

// ParseTime parses a day, or a time with its zone.
func ParseTime(s string) (time.Time, error) {
	for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", time.DateOnly} {
		if t, err := time.Parse(form, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%.40q is neither a day such as 2026-07-20 nor a time with its zone", s)
}

// Write formats listings as a file that Read reads.
func Write(list []Listing) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(head) // writing to a strings.Builder cannot fail
	for _, l := range list {
		text := func(f figure.Figure) string {
			if !f.OK {
				return ""
			}
			return strconv.FormatFloat(f.V, 'f', -1, 64)
		}
		whole := func(n float64) string {
			return text(figure.Figure{V: n, OK: n > 0})
		}
		price, at := "", ""
		if l.Quote.Priced {
			price = l.Quote.Rate.String()
		}
		upfront, hourly := "", ""
		if l.Term.Commits() {
			upfront, hourly = l.Upfront.String(), l.Hourly.String()
		}
		if !l.Quote.At.IsZero() {
			at = l.Quote.At.UTC().Format(time.RFC3339)
		}
		_ = w.Write([]string{
			l.Offer.Provider, l.Offer.Region, l.Offer.Zone, l.Offer.Machine, string(l.Offer.Capacity),
			l.Offer.Accelerator, whole(float64(l.Offer.Accelerators)), whole(float64(l.AcceleratorMemory) / float64(size.GB)),
			whole(float64(l.Offer.CPUs)), whole(float64(l.Offer.Memory) / float64(size.GiB)), text(l.Disk), text(l.Network),
			price, string(l.Offer.Currency), at, l.Quote.Source, text(figure.Figure{V: l.Risk.Low, OK: l.Risk.Known}),
			text(figure.Figure{V: l.Risk.High, OK: l.Risk.Known}), string(l.Term), l.Platform, upfront, hourly,
		})
	}
	w.Flush()
	return b.String()
}
