package load

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Hours are hours of the day in UTC from From to below To, over midnight where To is the smaller.
// Where both are equal there are none.
type Hours struct{ From, To int }

// ParseHours reads 8-18.
func ParseHours(text string) (h Hours, err error) {
	from, to, ok := strings.Cut(text, "-")
	h.From, err = strconv.Atoi(from)
	var wrong error
	h.To, wrong = strconv.Atoi(to)
	if !ok || err != nil || wrong != nil || h.From < 0 || h.From > 23 || h.To < 0 || h.To > 24 || h.From == h.To%24 {
		return Hours{}, fmt.Errorf("%.40q is no part of a day: write hours in UTC such as 8-18", text)
	}
	h.To %= 24
	return h, nil
}

// Has reports whether an hour of the day is among them.
func (h Hours) Has(hour int) bool {
	if h.From <= h.To {
		return h.From <= hour && hour < h.To
	}
	return hour >= h.From || hour < h.To
}

func (h Hours) String() string { return fmt.Sprintf("%02d-%02d UTC", h.From, h.To) }

// busyShare is the share of the requests that the hours of a warm pool hold.
const busyShare = 0.9

// Busiest returns the shortest run of hours of the day that holds 90 % of the requests, the earliest of those. It is
// false where that is the whole day, and where the trace is shorter than a day or has no dates and so tells nothing of
// hours.
func (t Trace) Busiest() (Hours, bool) {
	if !t.Dated || t.Window < 24*time.Hour {
		return Hours{}, false
	}
	var by [24]int
	for _, at := range t.At {
		by[int((t.Start+at)/time.Hour%24)]++
	}
	for length := 1; length < 24; length++ {
		for from := range 24 {
			n := 0
			for h := range length {
				n += by[(from+h)%24]
			}
			if float64(n) >= busyShare*float64(len(t.At)) {
				return Hours{from, (from + length) % 24}, true
			}
		}
	}
	return Hours{}, false
}
