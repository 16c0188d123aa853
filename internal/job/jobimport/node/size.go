package node

import (
	"regexp"
	"strings"
)

var bareNumber = regexp.MustCompile(`^([0-9.]+)(\+?)$`)

// GiB adds SkyPilot's unit to a number without one, and writes 32GB as the binary unit that SkyPilot means.
func GiB(s string) string {
	if m := bareNumber.FindStringSubmatch(s); m != nil {
		return m[1] + "GiB" + m[2]
	}
	m := regexp.MustCompile(`(?i)^([0-9.]+)\s*([kmgt])b?(\+?)$`).FindStringSubmatch(s)
	if m == nil {
		return s
	}
	unit := map[string]string{"k": "KiB", "m": "MiB", "g": "GiB", "t": "TiB"}[strings.ToLower(m[2])]
	return m[1] + unit + m[3]
}

// Binary writes dstack's GB, which is 1024³, as GiB.
func Binary(s string) string {
	if bareNumber.MatchString(s) {
		return s + "GiB"
	}
	return regexp.MustCompile(`(?i)\s*([kmgt])i?b?$`).ReplaceAllStringFunc(s, func(u string) string {
		return strings.ToUpper(strings.TrimSpace(u)[:1]) + "iB"
	})
}
