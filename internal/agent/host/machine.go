package host

import (
	"fmt"
	"os"
	"strings"
)

// Memory is the machine's, in bytes; 0: it does not say.
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

// BootID tells this boot of the machine from others; "" where the system does not say.
func BootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // not there, or not to be read
	return strings.TrimSpace(string(b))
}
