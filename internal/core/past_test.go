package core

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/money"
)

// samePast checks what is kept of jobs that hold no machine against all jobs gone
// through one by one, of all time and since then. It returns 1 where
// there are any.
func samePast(t *testing.T, m *Machine, since time.Time, seed, event any) (gone int) {
	t.Helper()
	for _, from := range []time.Time{{}, since} {
		want, got, each := map[Whose]Past{}, map[Whose]Past{}, map[Whose]Past{}
		for j := range m.Jobs() {
			if w, p, last, ok := PastOf(j); ok && !last.Before(from) {
				want[w] = want[w].Plus(p)
				gone = 1
			}
		}
		m.Past(from, func(w Whose, p Past) { got[w] = got[w].Plus(p) })
		m.PastJobs(from, func(j *Job, p Past, c money.Currency) {
			w := Whose{WhoseOf(j), c}
			each[w] = each[w].Plus(p)
		})
		if a, b, c := pasts(got), pasts(want), pasts(each); a != b || c != b {
			t.Fatalf("seed %v, event %v, since %v: kept\n%s, scanned\n%s, job by job\n%s", seed, event, from, a, b, c)
		}
	}
	return gone
}

func pasts(all map[Whose]Past) string {
	var list []string
	for w, p := range all {
		if p != (Past{}) {
			list = append(list, fmt.Sprintf("%+v %+v\n", w, p))
		}
	}
	slices.Sort(list)
	return strings.Join(list, "")
}
