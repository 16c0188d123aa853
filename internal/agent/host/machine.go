package host

import (
	"fmt"
	"os"
	"strings"
)

// Memory returns the machine's memory in bytes, or 0 if unknown.
func Memory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	var kib int64
	if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kib); err != nil {
		return 0
	}
	return kib << 10
}

// BootID returns an identifier of this boot of the machine, or "" if the system has none.
func BootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // the file may be missing or unreadable
	return strings.TrimSpace(string(b))
}
