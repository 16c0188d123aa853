package step

import (
	"fmt"
)

// Count is a number of things in words: "1 job", "2 jobs".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
