package serving

import (
	"math/big"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/work/serving/load"
)

// epoch is the time at which the windows of simulations begin, for bills: only spans count.
var epoch = time.Unix(0, 0).UTC()

// Cost returns what the machines of an outcome cost: each span by the second, and what the provider bills at least.
func (o Outcome) Cost(rate money.Rate, rules market.Billing) (sum money.Amount) {
	for _, s := range o.Spans {
		from := epoch.Add(s.From)
		for _, line := range market.Bill(rules, []market.Segment{{From: from, Rate: rate}}, epoch.Add(s.To), false) {
			sum = sum.Add(line.Amount)
		}
	}
	return sum
}

// Egress returns what sending the answers costs at a price of a gigabyte, cut off below 1e-12.
func Egress(bytes int64, gigabyte money.Rate) money.Amount {
	n := new(big.Int).Mul(big.NewInt(bytes), big.NewInt(int64(gigabyte)))
	return settled(n.Quo(n, big.NewInt(1e9)))
}

// PerMillion returns a sum by millions of n, cut off below 1e-12, and false where n is zero.
func PerMillion(sum money.Amount, n int64) (money.Amount, bool) {
	if n == 0 {
		return money.Amount{}, false
	}
	v := new(big.Int).Mul(sum.Big(), big.NewInt(1e6))
	return settled(v.Quo(v, big.NewInt(n))), true
}

// settled turns picos into an amount. Traces, prices and machines are bounded, so that every sum fits.
func settled(n *big.Int) money.Amount {
	a, ok := money.FromBig(n)
	if !ok {
		a, _ = money.FromBig(new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 126), big.NewInt(1)))
	}
	return a
}

// Split divides a sum between the prompts and the answers of a trace by the time that both take in the batches of an
// outcome. It is false where the service does not tell them apart.
func Split(sum money.Amount, t load.Trace, s Service, o Outcome) (in, out money.Amount, ok bool) {
	r, known := s.(*load.Roofline)
	if _, _, counted := t.Tokens(); !known || !counted || o.Batches == 0 {
		return in, out, false
	}
	size := max(1, (o.Requests+o.Batches/2)/o.Batches) // of a batch, on average
	var prompt, decode float64
	for first := 0; first < len(t.At); first += size {
		p, d := r.Phases(first, min(size, len(t.At)-first))
		prompt += p
		decode += d
	}
	const parts = 1 << 40
	share := int64(prompt / (prompt + decode) * parts)
	in = money.Portion(sum, money.Picos(share), money.Picos(parts))
	return in, sum.Sub(in), true
}
