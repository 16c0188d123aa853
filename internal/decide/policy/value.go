package policy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Value is one value of the metric that a job is judged by.
type Value struct {
	At     time.Time
	Step   int64
	Epoch  float64 // 0: the program counts none
	Value  float64
	Broken bool // not a finite number; Value is 0
}

// Values are in the order in which a program reported them, and are never merged. The log keeps them forever, so in
// JSON they are one string: "176720760000 1 2.31,100 1 2.29 0.5" is two values. Each has a time in hundredths of a
// second and a step, both as differences from the previous value, then the value, and the epoch if it differs from
// the previous one. A value that is not finite is "-". A value that is exact in 32 bits is written in that
// precision, with an f.
type Values []Value

// tick is the resolution of a value's time in the log.
const tick = 10 * time.Millisecond

// MarshalJSON encodes the values as one string.
func (v Values) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 24*len(v)+32), '"')
	var last Value
	var at int64
	for i := range v {
		if i > 0 {
			b = append(b, ',')
		}
		now := v[i].At.UnixMilli() / tick.Milliseconds()
		b = append(strconv.AppendInt(b, now-at, 10), ' ')
		b = append(strconv.AppendInt(b, v[i].Step-last.Step, 10), ' ')
		if v[i].Broken {
			b = append(b, '-')
		} else {
			b = appendNumber(b, v[i].Value)
		}
		if v[i].Epoch != last.Epoch {
			b = appendNumber(append(b, ' '), v[i].Epoch)
		}
		last, at = v[i], now
	}
	return append(b, '"'), nil
}

// appendNumber appends the shortest text that parses as exactly f.
func appendNumber(b []byte, f float64) []byte {
	from := len(b)
	b = strconv.AppendFloat(b, f, 'g', -1, 64)
	if float64(float32(f)) == f {
		if short := strconv.AppendFloat(nil, f, 'g', -1, 32); len(short)+1 < len(b)-from {
			b = append(append(b[:from], short...), 'f')
		}
	}
	return b
}

// UnmarshalJSON decodes the output of MarshalJSON.
func (v *Values) UnmarshalJSON(b []byte) error {
	text, begins := strings.CutPrefix(string(b), `"`)
	text, ends := strings.CutSuffix(text, `"`)
	if !begins || !ends {
		return fmt.Errorf("the values of a metric are not a JSON string: %.40s", b)
	}
	*v = nil
	if text == "" {
		return nil
	}
	var last Value
	var at int64
	for entry := range strings.SplitSeq(text, ",") {
		if err := last.read(strings.Split(entry, " "), &at); err != nil {
			return fmt.Errorf("value %q of a metric: %w", entry, err)
		}
		*v = append(*v, last)
	}
	return nil
}

// read parses the fields of an entry. v and at are those of the previous entry.
func (v *Value) read(fields []string, at *int64) error {
	if len(fields) != 3 && len(fields) != 4 {
		return fmt.Errorf("an entry has %d fields, want 3 or 4", len(fields))
	}
	later, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return err
	}
	steps, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return err
	}
	*at += later
	v.At, v.Step = time.UnixMilli(*at*tick.Milliseconds()).UTC(), v.Step+steps
	v.Value, v.Broken = 0, fields[2] == "-"
	if !v.Broken {
		if v.Value, err = readNumber(fields[2]); err != nil {
			return err
		}
	}
	if len(fields) == 4 {
		v.Epoch, err = readNumber(fields[3])
	}
	return err
}

func readNumber(text string) (float64, error) {
	bits := 64
	// in -Inf, the f is not a suffix
	if short, ok := strings.CutSuffix(text, "f"); ok && !strings.HasSuffix(text, "nf") {
		text, bits = short, 32
	}
	f, err := strconv.ParseFloat(text, bits)
	if err == nil && (math.IsNaN(f) || math.IsInf(f, 0)) {
		err = fmt.Errorf("%s is not a finite number", text)
	}
	return f, err
}

// Of returns what one report says about the metric: one value, or none. broken names the metrics that are not
// finite. If the user watches none, a loss that is not finite counts.
func (m Metric) Of(at time.Time, step int64, epoch float64, values map[string]float64, broken []string) Values {
	v, ok := values[m.Name]
	switch {
	case slices.Contains(broken, m.Name), m.Name == "" && slices.Contains(broken, "loss"),
		ok && m.Name != "" && (math.IsNaN(v) || math.IsInf(v, 0)):
		return Values{{At: at, Step: step, Epoch: epoch, Broken: true}}
	case ok && m.Name != "":
		return Values{{At: at, Step: step, Epoch: epoch, Value: v}}
	}
	return nil
}
