package agents

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/wire/api"
)

// No two running gangs share a port, a gang keeps its port for as long as it runs, and a restarted server computes
// the same ports, whichever gangs started since.
func TestPortsOf_RunningGangKeepsItsPort(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(1, 1))
	var gangs []string // in the order of their start
	ports := map[string]int{}
	for n := range lane.Pick(1000, 3000) {
		gangs = append(gangs, fmt.Sprintf("j-%d.1", n))
		if n%100 == 99 { // some end
			gangs = slices.DeleteFunc(gangs, func(string) bool { return chance.IntN(10) == 0 })
			ports = portsOf("x", gangs, ports)
		}
		now := portsOf("x", gangs, ports)
		taken := map[int]bool{}
		for _, g := range gangs {
			if ports[g] != 0 && now[g] != ports[g] || taken[now[g]] || now[g] == 0 {
				t.Fatalf("gang %s of %d meets at %d, and had %d", g, len(gangs), now[g], ports[g])
			}
			taken[now[g]] = true
		}
		ports = now
	}
	anew := portsOf("x", gangs, nil)
	for n := range gangs { // as each of them started, with a restart in between
		if first := portsOf("x", gangs[:n+1], nil); first[gangs[n]] != anew[gangs[n]] {
			t.Fatalf("%s met at %d when it began, and after a restart at %d", gangs[n], first[gangs[n]], anew[gangs[n]])
		}
	}
	if alone := portsOf("x", []string{"a.1"}, nil); !maps.Equal(alone, map[string]int{"a.1": api.MasterPort("x/a.1", func(int) bool { return false })}) {
		t.Errorf("a gang alone meets at %v", alone)
	}
	if a, b := portsOf("x", []string{"a.1"}, nil), portsOf("y", []string{"a.1"}, nil); maps.Equal(a, b) {
		t.Errorf("gangs of two servers with the same name meet at %v and %v", a, b)
	}
}
