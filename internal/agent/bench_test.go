package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// playBurn does TEST_ROUNDS rounds of arithmetic, with a line of output for
// each hundredth, and prints the time it took. Every tenth it saves.
func playBurn() int {
	rounds, _ := strconv.Atoi(os.Getenv("TEST_ROUNDS"))
	dir := os.Getenv("SCRIMP_CHECKPOINT_DIR")
	start, x := time.Now(), uint64(1)
	for i := range rounds {
		for range 1 << 20 {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		if i%10 == 0 {
			fmt.Printf("step=%d loss=%d\n", i+1, x%10)
		}
		if dir != "" && i%200 == 100 {
			if err := os.WriteFile(filepath.Join(dir, "state.tmp"), make([]byte, 1<<20), 0o600); err != nil {
				return 2
			}
			if err := os.Rename(filepath.Join(dir, "state.tmp"), filepath.Join(dir, "state")); err != nil {
				return 2
			}
		}
	}
	fmt.Printf("took %d\n", time.Since(start).Nanoseconds())
	return 0
}
