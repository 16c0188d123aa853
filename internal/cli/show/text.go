package show

import (
	"fmt"
	"math"
	"strings"
	"time"

	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// words turns a machine-readable reason into words.
func words[S ~string](reason S) string { return clean(strings.ReplaceAll(string(reason), "_", " ")) }

// rate writes the price of an hour.
func rate(r money.Rate, c money.Currency) string {
	return money.Format(money.Picos(int64(r)), c, 4) + "/h"
}

// seconds writes a span that is given in seconds.
func seconds(s float64) string { return draw.Span(time.Duration(s * float64(time.Second))) }

// machinesOf writes n machines of an offer: "4 × p5.48xlarge".
func machinesOf(n int, offer string) string {
	if n < 2 {
		return offer
	}
	return fmt.Sprintf("%d × %s", n, offer)
}

// usd writes an estimated amount.
func usd(v float64) string { return money.ShortFloat(v, money.USD) }

// orDash returns s, or "-" for an empty cell of a table.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// three writes a number with three significant digits, and millions as flags take them: 2.77M, 25.3B.
func three(v float64) string {
	switch {
	case v == 0 || math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Sprint(v)
	case math.Abs(v) >= 999.5e9 || math.Abs(v) < 0.001:
		return fmt.Sprintf("%.3g", v)
	case math.Abs(v) >= 999.5e6:
		return three(v/1e9) + "B"
	case math.Abs(v) >= 999.5e3:
		return three(v/1e6) + "M"
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	return fmt.Sprintf("%.*f", digits, v)
}

// about writes a size with three significant digits.
func about(bytes int64) string {
	v, unit := float64(bytes), 0
	for ; v >= 1000 && unit < 4; unit++ {
		v /= 1024
	}
	return fmt.Sprintf("%.3g%s", v, [...]string{"B", "KiB", "MiB", "GiB", "TiB"}[unit])
}

// named returns the name of a line, or "(none)".
func named(name string) string {
	if name == "" {
		return "(none)"
	}
	return clean(name)
}
