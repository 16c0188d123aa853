package ledger

import (
	"encoding/hex"
	"fmt"
)

// Hash is a SHA-256 sum. Its text form is hexadecimal.
type Hash [32]byte

// MarshalText returns 64 hexadecimal digits.
func (h Hash) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h[:])), nil }

// UnmarshalText parses the output of MarshalText.
func (h *Hash) UnmarshalText(b []byte) error {
	if len(b) == 2*len(h) { // hex.Decode writes as much as it reads
		if _, err := hex.Decode(h[:], b); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%.80q is not a SHA-256 sum", b)
}
