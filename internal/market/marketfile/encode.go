package marketfile

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Encode writes a market file; Parse reads it back to the same market. note becomes the leading comment.
func Encode(t market.Trace, note string) []byte {
	var b bytes.Buffer
	for line := range strings.Lines(note) {
		fmt.Fprintf(&b, "# %s\n", strings.TrimRight(line, "\n"))
	}
	fmt.Fprintf(&b, "name: %q\ncurrency: %s\n", t.Name, t.Currency)
	if t.Speed != 1 {
		fmt.Fprintf(&b, "speed: %g\n", t.Speed)
	}
	if t.Repeat > 0 {
		fmt.Fprintf(&b, "repeat: %s\n", short(t.Repeat))
	}
	b.WriteString("offers:\n")
	for _, l := range t.Lines {
		encodeOffer(&b, l.Offer)
		encodeTimes(&b, l)
	}
	return b.Bytes()
}

// encodeOffer writes the constant fields of an offer.
func encodeOffer(b *bytes.Buffer, o market.Offer) {
	fmt.Fprintf(b, "  - zone: %q\n    region: %q\n    machine: %q\n    capacity: %s\n    cpus: %d\n"+
		"    memory: %s\n", o.Zone, o.Region, o.Machine, o.Capacity, o.CPUs, o.Memory)
	if o.Accelerator != "" {
		fmt.Fprintf(b, "    accelerator: %q\n    accelerators: %d\n", o.Accelerator, o.Accelerators)
	}
	if o.Speed != 0 {
		fmt.Fprintf(b, "    speed: %g\n", o.Speed)
	}
	for _, f := range []struct {
		name string
		d    time.Duration
	}{{"notice", o.Notice}, {"boot", o.Boot}, {"max_lifetime", o.MaxLifetime}} {
		if f.d > 0 {
			fmt.Fprintf(b, "    %s: %s\n", f.name, short(f.d))
		}
	}
	if r := o.Billing; r != (market.Billing{}) {
		fmt.Fprintf(b, "    billing: {minimum: %s, free_if_interrupted_within: %s}\n", short(r.Minimum),
			short(r.FreeIfInterruptedWithin))
	}
}

// encodeTimes writes the available periods and the prices of an offer.
func encodeTimes(b *bytes.Buffer, l market.TraceLine) {
	if r := l.Reserved; r.Count > 0 {
		fmt.Fprintf(b, "    reserved: {count: %d, from: %s, until: %s, paid: %q, team: %q}\n", r.Count, short(r.From),
			short(r.To), r.Paid, r.Team)
		return
	}
	if len(l.Price) == 1 {
		fmt.Fprintf(b, "    price: %s\n", price(l.Price[0].Rate))
	} else {
		b.WriteString("    price:\n")
		for _, p := range l.Price {
			fmt.Fprintf(b, "      - {at: %s, price: %s}\n", short(p.At), price(p.Rate))
		}
	}
	if l.Available != nil {
		b.WriteString("    available:")
		if len(l.Available) == 0 {
			b.WriteString(" []")
		}
		b.WriteString("\n")
		for _, s := range l.Available {
			fmt.Fprintf(b, "      - {from: %s, to: %s, notice: %s}\n", short(s.From), short(s.To), short(s.Notice))
		}
	}
}

func price(r money.Rate) string { return strings.TrimPrefix(r.String(), "$") }

// short formats d without the zeros of time.Duration: 1h30m instead of 1h30m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
