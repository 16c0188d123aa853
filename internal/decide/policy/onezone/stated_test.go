package onezone_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"scrimp/internal/decide/policy/onezone"
	"scrimp/internal/test/must"
)

// docs/formulas.md states every number of the prior.
func TestPrior_MatchesTheDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/formulas.md")
	must.Do(t, err)
	row := func(name string, s onezone.Shape) string {
		var b strings.Builder
		b.WriteString("| " + name + " |")
		for _, l := range s.Log {
			fmt.Fprintf(&b, " %.3f |", math.Exp(l))
		}
		return b.String()
	}
	feature := func(s onezone.Shape) string {
		return fmt.Sprintf("%.3f, %.3f, %.3f, %.2f", s.Same, s.Other, s.Share, s.Middle)
	}
	p := onezone.Public
	for _, line := range []string{row("with spot", p.Up), row("without", p.Gap), "with spot " + feature(p.Up) + "; without " + feature(p.Gap)} {
		if !strings.Contains(string(text), line) {
			t.Errorf("docs/formulas.md does not say: %s", line)
		}
	}
}
