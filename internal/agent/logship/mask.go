package logship

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// shortestSecret is the length below which a value is not masked. Masking a shorter one would hide
// half of the log, and it protects no secret.
const shortestSecret = 4

// shortestLine is the same limit for one line of a multi-line secret, such as a PEM key.
const shortestLine = 12

// Masker replaces secrets by stars, byte for byte. It preserves the length, so that offsets in the
// program's output and in the shipped log agree, and masking again from any offset gives the same
// result.
type Masker struct {
	secrets [][]byte
	longest int
}

// NewMasker returns a Masker for the values of secrets, in the forms in which programs print them.
func NewMasker(secrets map[string]string) Masker {
	var m Masker
	add := func(s string, shortest int) {
		if len(s) >= shortest && !slices.ContainsFunc(m.secrets, func(b []byte) bool { return string(b) == s }) {
			m.secrets = append(m.secrets, []byte(s))
			m.longest = max(m.longest, len(s))
		}
	}
	for _, s := range secrets {
		add(s, shortestSecret)
		if t := strings.TrimSpace(s); t != s {
			add(t, shortestSecret)
		}
		if b, err := json.Marshal(s); err == nil { // as printed inside JSON
			add(string(b[1:len(b)-1]), shortestSecret)
		}
		add(url.QueryEscape(s), shortestSecret)
		if lines := strings.Split(s, "\n"); len(lines) > 1 {
			for _, l := range lines {
				add(strings.TrimSpace(l), shortestLine)
			}
		}
	}
	return m
}

// reach returns how many bytes on both sides of a chunk affect its masking.
func (m Masker) reach() int { return max(0, m.longest-1) }

// Mask replaces every occurrence of a secret by stars, including overlapping ones.
func (m Masker) Mask(b []byte) []byte {
	if len(m.secrets) == 0 {
		return b
	}
	var out []byte
	for _, s := range m.secrets {
		for from := 0; ; {
			i := bytes.Index(b[from:], s)
			if i < 0 {
				break
			}
			if out == nil {
				out = bytes.Clone(b)
			}
			for j := range s {
				out[from+i+j] = '*'
			}
			from += i + 1
		}
	}
	if out == nil {
		return b
	}
	return out
}

// pending returns how many bytes at the end of b may be the start of a secret whose rest is not written yet.
func (m Masker) pending(b []byte) int {
	for n := min(m.reach(), len(b)); n > 0; n-- {
		tail := b[len(b)-n:]
		for _, s := range m.secrets {
			if len(s) > n && bytes.HasPrefix(s, tail) {
				return n
			}
		}
	}
	return 0
}
