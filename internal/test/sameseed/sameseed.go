// Package sameseed makes property tests draw the same cases in every run, so that a commit fails for what it changed
// and not by chance; the nightly lane draws others each time. A test package that uses rapid imports it for its effect:
//
//	import _ "scrimp/internal/test/sameseed"
//
// The flag -rapid.seed chooses another seed.
package sameseed

import (
	"flag"

	"pgregory.net/rapid" // defines the flag

	"scrimp/internal/test/lane"
)

var _ = rapid.Check

func init() {
	if lane.Current() == lane.Night {
		return
	}
	if err := flag.Set("rapid.seed", "1"); err != nil {
		panic(err)
	}
}
