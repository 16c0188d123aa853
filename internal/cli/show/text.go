package show

import (
	"fmt"
	"math"
	"strings"
	"time"

	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Words turns a machine-readable reason into words.
func Words[S ~string](reason S) string { return Clean(strings.ReplaceAll(string(reason), "_", " ")) }

// PerHour formats an hourly price.
func PerHour(r money.Rate, c money.Currency) string {
	return money.Format(money.Picos(int64(r)), c, 4) + "/h"
}

// Seconds formats a duration given in seconds.
func Seconds(s float64) string { return draw.Span(time.Duration(s * float64(time.Second))) }

// MachinesOf formats n machines of an offer: "4 × p5.48xlarge".
func MachinesOf(n int, offer string) string {
	if n < 2 {
		return offer
	}
	return fmt.Sprintf("%d × %s", n, offer)
}

// USD formats an estimated amount.
func USD(v float64) string { return money.ShortFloat(v, money.USD) }

// OrDash returns s, or "-" if s is empty.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Digits formats a number with three significant digits, and millions as flags take them: 2.77M, 25.3B.
func Digits(v float64) string {
	switch {
	case v == 0 || math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Sprint(v)
	case math.Abs(v) >= 999.5e9 || math.Abs(v) < 0.001:
		return fmt.Sprintf("%.3g", v)
	case math.Abs(v) >= 999.5e6:
		return Digits(v/1e9) + "B"
	case math.Abs(v) >= 999.5e3:
		return Digits(v/1e6) + "M"
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	return fmt.Sprintf("%.*f", digits, v)
}

// Bytes formats a size with three significant digits.
func Bytes(bytes int64) string {
	v, unit := float64(bytes), 0
	for ; v >= 1000 && unit < 4; unit++ {
		v /= 1024
	}
	return fmt.Sprintf("%.3g%s", v, [...]string{"B", "KiB", "MiB", "GiB", "TiB"}[unit])
}

// Named returns name, or "(none)" if it is empty.
func Named(name string) string {
	if name == "" {
		return "(none)"
	}
	return Clean(name)
}
