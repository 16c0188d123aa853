package step

import (
	"fmt"
)

// Count formats a number of things: "1 job", "2 jobs".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
