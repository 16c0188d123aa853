//go:build !local

package kube

import (
	"flag"
	"os"
	"testing"

	"scrimp/internal/engine/kube/kubetest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil { // they wait for clusters, most of the time
		panic(err)
	}
	os.Exit(m.Run())
}

// clusters are how many run at once: each has programs of its own, which wait most of the time.
var clusters = make(chan struct{}, 3)

// cluster starts one as soon as there is room for it, until the test ends.
func cluster(t testing.TB, env ...string) *kubetest.Cluster {
	t.Helper()
	clusters <- struct{}{}
	t.Cleanup(func() { <-clusters })
	return kubetest.Start(t, env...)
}
