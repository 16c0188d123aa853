package budget

import (
	"fmt"

	"scrimp/internal/lib/quantity"
)

// checkRate returns an error if the dollars an hour are out of bounds.
func (l Limit) checkRate() error {
	if *l.Rate < 0 || !quantity.Price.Allows(l.Rate.Float()) {
		return fmt.Errorf("%s: the rate is out of bounds: write %s", l.Name(), quantity.Price.Range())
	}
	return l.checkTelling()
}
