package commit

import (
	"fmt"
	"math/big"
	"strings"

	"scrimp/internal/lib/money"
)

// ParseShare parses a share such as 28% or 0.28 as ten thousandths from least to most.
func ParseShare(text string, least, most int64) (int64, error) {
	said := strings.TrimSpace(text)
	number, percent := strings.CutSuffix(said, "%")
	scale := int64(One)
	if percent {
		scale /= 100
	}
	a, err := money.Parse(strings.TrimSpace(number))
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a share: write one such as 28%% or 0.28", said)
	}
	n, rest := new(big.Int).QuoRem(new(big.Int).Mul(a.Big(), big.NewInt(scale)), picos, new(big.Int))
	switch {
	case n.Cmp(big.NewInt(least)) < 0 || n.Cmp(big.NewInt(most)) > 0 || a.Sign() < 0:
		return 0, fmt.Errorf("%.40s is not from %s to %s: write a share such as 28%% or 0.28", said, FormatShare(least),
			FormatShare(most))
	case rest.Sign() != 0:
		return 0, fmt.Errorf("%.40s is finer than a hundredth of a per cent: round it", said)
	}
	return n.Int64(), nil
}

// picos is the number of counts in one unit of money.
var picos = big.NewInt(1e12)

// FormatShare formats ten thousandths as a percentage: 28%, 0.01%.
func FormatShare(n int64) string {
	return plainPercent(fmt.Sprintf("%d.%02d", n/100, n%100))
}

// plainPercent removes trailing zeros from a percentage with decimals.
func plainPercent(text string) string {
	return strings.TrimRight(strings.TrimRight(text, "0"), ".") + "%"
}
