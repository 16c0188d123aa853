package marketfile

import (
	"fmt"
	"os"
	"runtime"

	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// Load reads a market file, or makes a built-in market of this machine's size.
func Load(file string) (market.Trace, error) {
	if file == "" {
		file = "calm"
	}
	if _, err := os.Stat(file); err != nil {
		return market.Builtin(file, runtime.NumCPU(), memory())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return market.Trace{}, fmt.Errorf("read market: %w", err)
	}
	return Parse(file, text)
}

// memory returns this machine's memory, or a guess if it is unreadable.
func memory() size.Bytes {
	text, err := os.ReadFile("/proc/meminfo")
	var kib int64
	if err == nil {
		if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kib); err == nil {
			return size.Bytes(kib) * size.KiB
		}
	}
	return 8 * size.GiB
}
