//go:build !local

package kube

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"scrimp/internal/test/kubetest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil { // tests mostly wait for their cluster
		panic(err)
	}
	code := m.Run()
	if err := kubetest.End(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}
