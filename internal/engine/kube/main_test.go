//go:build !local

package kube

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
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
	if err := flag.Set("test.parallel", "3"); err != nil { // they wait for clusters, most of the time
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}
