// Package quantity defines how large each kind of number from outside may be, and computes with such numbers without
// overflow. It is the only such table: job files, requests, reports, events, prices and settings are checked against it
// before they are used.
package quantity

import (
	"fmt"
	"math"
	"time"
)

// Kind is a kind of number: its unit and its bounds. A span is counted in nanoseconds, money in currency units. The
// bounds of a time depend on the present: see AllowsTime.
type Kind struct {
	Name        string // plural, for messages: steps
	Unit        string // "": the name is the unit
	Least, Most float64
	Why         string // reason for the bounds
}

// Decade is the longest span that may be given, and how far ahead a time may lie.
const Decade = 10 * 365 * 24 * time.Hour

// oldest is the earliest accepted time, in seconds of Unix time: the first day of 1700. Clocks of machines that have
// just started, and simulated markets, may begin at any later time.
const oldest = -8_520_336_000

// The kinds. A server holds at most some ten million jobs (mostJobs). Sums over all of them use 128 bits (money) or
// float64 (hours, metrics), or saturate (Add).
var (
	Span = &Kind{"spans", "ns", 0, float64(Decade),
		"ten years; 29 such spans add up within 64 bits"}
	Offset = &Kind{"offsets of a clock", "ns", -float64(24 * time.Hour), float64(24 * time.Hour),
		"no zone is further from UTC"}
	Time = &Kind{"times", "RFC 3339", 0, 0,
		"from 1700 to ten years ahead, so that nanoseconds since 1970 are within 64 bits"}
	Steps = &Kind{"steps", "", 0, 1e11,
		"no training has that many, and the sum over ten million jobs fits in 64 bits"}
	Items = &Kind{"samples or tokens", "", 0, 1e15,
		"float64 holds each exactly"}
	Number = &Kind{"numbers of messages and events", "", 0, 1e15,
		"a thousand a second for 30,000 years; float64 holds each exactly"}
	Count = &Kind{"counts", "", 0, 1e9,
		"the product of two is within 64 bits"}
	Nodes = &Kind{"machines of a job", "", 0, 1000, "no job is started on more at once"}
	Exit  = &Kind{"exit statuses", "", math.MinInt32, math.MaxUint32, "systems have 32 bits for it"}
	Bytes = &Kind{"sizes", "bytes", 0, 1 << 53,
		"8 PiB; float64 holds each exactly, and a thousand add up within 64 bits"}
	Dollars = &Kind{"amounts", "currency units", 0, 1e12,
		"more than any budget; those of ten million jobs are a millionth of what 128 bits hold"}
	Billed = &Kind{"amounts of bills", "currency units", -1e12, 1e12,
		"as amounts; a credit is below zero"}
	Sum = &Kind{"sums of amounts", "currency units", -1e20, 1e20,
		"ten million jobs of the highest amount, and ten times as much"}
	Price = &Kind{"prices", "currency units an hour", 0, 1e6,
		"a thousand times what a large machine costs; a Rate holds nine times as much"}
	GPUHours = &Kind{"GPU-hours", "", 0, 2e6,
		"a million GPUs for two days; as nanoseconds they are within 64 bits"}
	Fraction = &Kind{"shares", "", 0, 1, "0 is none and 1 is all"}
	Factor   = &Kind{"factors", "", 0, 1e6, "a machine that is a million times as fast is a typing error"}
	Epochs   = &Kind{"epochs", "", 0, 1e9, "no training has that many"}
	Metric   = &Kind{"values of a metric", "", -1e150, 1e150,
		"a square is finite, and so is the sum of ten million squares"}
	Measured = &Kind{"measurements", "", -1e18, 1e18, "no meter shows more"}
	Seconds  = &Kind{"times", "s since 1970", 0, 253_402_300_799, "they end with the year 9999"}
	Training = &Kind{"spans of training", "s", 0, 10 * 365 * 24 * 3600, "ten years"}
	Priority = &Kind{"priorities", "", 0, 2, "2 is critical, 1 normal, 0 low"}
)

// Kinds lists all kinds.
var Kinds = []*Kind{Span, Time, Steps, Items, Number, Count, Exit, Nodes, Bytes, Dollars, Billed, Sum, Price, GPUHours,
	Fraction, Factor, Epochs, Metric, Measured, Seconds,
	Training, Priority, Offset}

// Named maps the words in struct tags to kinds.
var Named = map[string]*Kind{"steps": Steps, "items": Items, "count": Count, "exit": Exit, "factor": Factor,
	"fraction": Fraction, "metric": Metric, "epochs": Epochs, "gpu-hours": GPUHours}

// Allows reports whether v is a finite number within the bounds.
func (k *Kind) Allows(v float64) bool { return v >= k.Least && v <= k.Most }

// AllowsInt is like Allows for a whole number, exactly.
func (k *Kind) AllowsInt(v int64) bool { return v >= Int(k.Least) && v <= Int(k.Most) }

// AllowsTime reports whether t is a valid time from outside at now. The zero time means none.
func AllowsTime(t, now time.Time) bool {
	return t.IsZero() || t.Unix() >= oldest && !t.After(now.Add(Decade))
}

// Range writes the bounds for people: "0 to 1000000".
func (k *Kind) Range() string {
	if k == Time {
		return "1700 to ten years from now"
	}
	if k == Span {
		return "0 to 87600h (ten years)"
	}
	text := fmt.Sprintf("%s to %s", plain(k.Least), plain(k.Most))
	if k.Unit != "" {
		text += " " + k.Unit
	}
	return text
}

// plain writes a bound for people: without an exponent if that is short.
func plain(v float64) string {
	if math.Abs(v) < 1e16 && v == math.Trunc(v) {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%g", v)
}
