package sim

import (
	"bytes"
	"flag"
	"fmt"
	"testing"
)

var (
	seeds = flag.Int("seeds", 1000, "how many lives to simulate")
	first = flag.Int("first", 0, "the first seed")
)

func TestInvariants(t *testing.T) {
	for n := range *seeds {
		seed := uint64(*first + n)
		w := Run(seed, PlantNone)
		for _, b := range w.Broken {
			t.Errorf("%s\nrepeat: go test ./internal/sim -run TestInvariants -first %d -seeds 1", b, seed)
		}
		if again := Run(seed, PlantNone); !bytes.Equal(w.Story.Bytes(), again.Story.Bytes()) {
			t.Errorf("seed %d told two stories", seed)
		}
		if t.Failed() {
			fmt.Println(w.Story.String())
			t.FailNow()
		}
	}
}
