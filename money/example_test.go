package money_test

import (
	"fmt"
	"time"

	"scrimp/money"
)

// What a span costs is the difference of the cumulative cost at its two ends,
// so that cutting it loses nothing: three thirds of an hour are the hour.
func ExampleRate_Until() {
	rate, _ := money.ParseRate("1")
	first := rate.Until(20 * time.Minute)
	second := rate.Until(40 * time.Minute).Sub(first)
	third := rate.Until(time.Hour).Sub(first).Sub(second)
	fmt.Println(first, second, third, first.Add(second).Add(third))
	// Output: 0.333333333333 0.333333333333 0.333333333334 1
}

func ExampleFormat() {
	a, _ := money.Parse("-0.125")
	fmt.Println(a, money.Format(a, money.USD, 2), money.Format(a, "EUR", 2))
	// Output: -0.125 -$0.13 -0.13 EUR
}
