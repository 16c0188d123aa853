// Package figure holds numbers that may be unknown.
package figure

import (
	"encoding/json"
)

// Figure is a number that may be unknown; the zero value is unknown.
type Figure struct {
	V  float64
	OK bool
}

// Known returns the figure v.
func Known(v float64) Figure { return Figure{V: v, OK: true} }

// MarshalJSON writes null for an unknown figure.
func (f Figure) MarshalJSON() ([]byte, error) {
	if !f.OK {
		return []byte("null"), nil
	}
	return json.Marshal(f.V)
}

// UnmarshalJSON reads the output of MarshalJSON.
func (f *Figure) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*f = Figure{}
		return nil
	}
	f.OK = true
	return json.Unmarshal(b, &f.V)
}
