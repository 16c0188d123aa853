//go:build !local

package kube

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"scrimp/internal/engine/kube/kubetest"
)

// program is the scrimp that servers and pods run, built once it is needed.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "kube")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "scrimp")
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil { // they wait for clusters, most of the time
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
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
