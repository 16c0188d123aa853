package link

import (
	"strings"
	"testing"

	"scrimp/internal/engine/hostd"
)

// An answer of a machine that joined controls no terminal, and its figures are within bounds.
func TestTidy_MakesAnAnswerSafe(t *testing.T) {
	t.Parallel()
	a := hostd.Answer{Problem: "\x1b]0;x\x07" + strings.Repeat("y", 1000), Facts: &hostd.Facts{
		Accelerator: "H100\x1b[2J", CPUs: -4,
		Accelerators: 1 << 40, Memory: -1}}
	tidy(&a)
	if strings.ContainsAny(a.Problem+a.Facts.Accelerator, "\x1b\x07") || len(a.Problem) > maxText || a.Facts.CPUs != 0 ||
		a.Facts.Accelerators > maxParts || a.Facts.Memory != 0 {
		t.Errorf("%+v %+v", a, a.Facts)
	}
}
