package estimate

import (
	"fmt"
	"math"
	"os"
	"sort"
	"strings"
	"testing"
)

func TestDiag(t *testing.T) {
	if os.Getenv("DIAG") == "" {
		t.Skip("SKIPPED: DIAG is not set")
	}
	b := newBench(t)
	y := b.truthY()
	x, _ := standard().examine(b.points)
	key := stackKey
	if os.Getenv("DIAG") == "source" {
		key = sourceKey
	}
	m, sd := x.leftOut(groups(b.rows, key))
	type line struct {
		k    string
		n    int
		sum  float64
		bias float64
		phys float64
		sd   float64
	}
	at := map[string]*line{}
	for i, r := range b.rows {
		if !b.asked(i) {
			continue
		}
		s := r.Source
		if p := strings.Split(s, "/"); len(p) > 5 {
			s = p[4] + "/" + p[len(p)-2]
		}
		k := fmt.Sprintf("%-45.45s %-12.12s %-24.24s", s, r.Task, r.Model)
		if key(r) == stackKey(r) {
			k += " " + r.GPU
		}
		l := at[k]
		if l == nil {
			l = &line{k: k}
			at[k] = l
		}
		l.n++
		l.sum += math.Abs(math.Exp(m[i]-y[i]) - 1)
		l.bias += m[i] - y[i]
		l.phys += -y[i]
		l.sd += sd[i]
	}
	var list []*line
	for _, l := range at {
		list = append(list, l)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].sum > list[j].sum })
	for _, l := range list[:min(60, len(list))] {
		n := float64(l.n)
		fmt.Printf("%-100s n %3d ape %4.0f%% bias %5.2f phys %5.2f sd %.2f\n", l.k, l.n, 100*l.sum/n, l.bias/n, l.phys/n, l.sd/n)
	}
}
