package telemetry

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Head holds the properties of a machine that stay constant.
type Head struct {
	Cores  int      `json:"cores,omitempty"`
	Memory int64    `json:"memory_bytes,omitempty"`
	GPUs   []Device `json:"gpus,omitempty"` // GPUs of the task
	Driver string   `json:"driver,omitempty"`
}

// Device is a GPU. Zero fields are unknown, since no GPU has zero of them.
type Device struct {
	Index  int     `json:"index"` // on its machine
	Name   string  `json:"name"`
	Memory int64   `json:"memory_bytes,omitempty"`
	Power  float64 `json:"power_limit_watts,omitempty"`
}

// A series is a list of records with their lengths: properties of the machine, and buckets. New records are
// appended, so a crash can tear only the last.
const (
	recordHead   = 'H'
	recordBucket = 'B'
	longest      = 64 << 10 // bytes of a record
)

// ErrTorn means that a series ends within a record. The part before it is good.
var ErrTorn = errors.New("the series ends within a record")

// AppendHead appends a machine's properties to a series.
func AppendHead(to []byte, h Head) []byte {
	b, _ := json.Marshal(h) // cannot fail
	return record(to, recordHead, b)
}

func record(to []byte, kind byte, b []byte) []byte {
	to = binary.AppendUvarint(to, uint64(len(b)+1))
	return append(append(to, kind), b...)
}

// AppendBucket appends a bucket to a series. The narrowest buckets store their means only.
func AppendBucket(to []byte, b Bucket) []byte {
	mask := uint64(0)
	for m := range Metrics {
		if len(b.V[m]) > 0 {
			mask |= 1 << m
		}
	}
	body := binary.AppendUvarint(nil, uint64(b.Start/Least))
	body = binary.AppendUvarint(body, uint64(b.Width/Least))
	body = binary.AppendUvarint(body, uint64(math.Round(b.Covered*10)))
	body = binary.AppendUvarint(body, mask)
	for m := range Metrics {
		if len(b.V[m]) == 0 {
			continue
		}
		if m.Width() > 1 {
			body = binary.AppendUvarint(body, uint64(len(b.V[m])))
		}
		for _, v := range b.V[m] {
			body = kinds[m].put(body, v.Mean)
			if b.Width > Least {
				body = kinds[m].put(body, v.Max)
			}
		}
	}
	return record(to, recordBucket, body)
}

// Encode returns a whole series.
func Encode(h Head, list []Bucket) []byte {
	out := AppendHead(nil, h)
	for _, b := range list {
		out = AppendBucket(out, b)
	}
	return out
}

// Decode parses a series. The last head counts.
func Decode(b []byte) (h Head, list []Bucket, err error) {
	for len(b) > 0 {
		n, used := binary.Uvarint(b)
		if used <= 0 || n == 0 || n > longest || uint64(len(b)-used) < n {
			return h, list, ErrTorn
		}
		kind, body := b[used], b[used+1:used+int(n)]
		b = b[used+int(n):]
		switch kind {
		case recordHead:
			h = Head{}
			if err := json.Unmarshal(body, &h); err != nil {
				return h, list, fmt.Errorf("read the properties of a machine: %w", err)
			}
		case recordBucket:
			one, err := decodeBucket(body)
			if err != nil {
				return h, list, err
			}
			list = append(list, one)
		} // other kinds are from a later release
	}
	return h, list, nil
}

var errBucket = errors.New("a bucket is damaged")

// reader reads numbers. Past the end it returns zeros and sets short.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) number() uint64 {
	n, used := binary.Uvarint(r.b)
	if used <= 0 {
		r.short = true
		return 0
	}
	r.b = r.b[used:]
	return n
}

func (r *reader) bytes(n int) []byte {
	if len(r.b) < n {
		r.short = true
		return make([]byte, n)
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func decodeBucket(body []byte) (b Bucket, err error) {
	r := reader{b: body}
	const most = math.MaxInt64 / Least / 2
	start, width, covered, mask := r.number(), r.number(), r.number(), r.number()
	if start > most || width == 0 || width > most {
		return b, errBucket
	}
	b = Bucket{Start: int64(start) * Least, Width: int64(width) * Least, Covered: float64(covered) / 10}
	for m := range Metrics {
		if mask&(1<<m) == 0 {
			continue
		}
		n := 1
		if m.Width() > 1 {
			n = int(min(r.number(), MaxCores+1))
		}
		if n > m.Width() {
			return b, errBucket
		}
		for range n {
			v := Exactly(kinds[m].take(&r))
			if b.Width > Least {
				v.Max = kinds[m].take(&r)
			}
			b.V[m] = append(b.V[m], v)
		}
	}
	if r.short {
		return b, errBucket
	}
	return b, nil
}

// perDoubling is the number of steps of a rough value per doubling.
const perDoubling = 8

// Codes of unknown values.
const (
	unknownShort = math.MaxUint8
	unknownLong  = math.MaxUint16
)

// put appends a value in one byte, or in two as a number with 11 significant bits: exact up to 2,047, and within one
// part in 2,000 above.
func (k Kind) put(to []byte, v float64) []byte {
	switch x := math.Round(v * k.scale); {
	case k.form == rough && (math.IsNaN(v) || v < 0):
		return append(to, unknownShort)
	case k.form == rough:
		return append(to, byte(min(math.Round(perDoubling*math.Log2(1+v*k.scale)), unknownShort-1)))
	case k.form == short && (math.IsNaN(v) || x < 0):
		return append(to, unknownShort)
	case k.form == short:
		return append(to, byte(min(x, unknownShort-1)))
	case math.IsNaN(v) || x < 0:
		return binary.BigEndian.AppendUint16(to, unknownLong)
	default:
		return binary.BigEndian.AppendUint16(to, encodeSmall(uint64(min(x, 1<<40))))
	}
}

func (k Kind) take(r *reader) float64 {
	switch k.form {
	case rough:
		if b := r.bytes(1)[0]; b != unknownShort {
			return (math.Exp2(float64(b)/perDoubling) - 1) / k.scale
		}
		return math.NaN()
	case short:
		if b := r.bytes(1)[0]; b != unknownShort {
			return float64(b) / k.scale
		}
		return math.NaN()
	case wide:
	}
	c := binary.BigEndian.Uint16(r.bytes(2))
	if c == unknownLong {
		return math.NaN()
	}
	return float64(large(c)) / k.scale
}

// encodeSmall encodes a count in 16 bits: 5 bits say by how many places the other 11 are shifted.
func encodeSmall(x uint64) uint16 {
	shift := max(0, bits.Len64(x)-digits)
	if shift > 0 {
		x += 1 << (shift - 1) // round to nearest
		shift = max(0, bits.Len64(x)-digits)
	}
	return uint16(shift)<<digits | uint16(x>>shift)
}

func large(c uint16) uint64 { return uint64(c&(1<<digits-1)) << (c >> digits) }

const digits = 11
