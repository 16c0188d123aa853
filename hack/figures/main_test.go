package main

import (
	"strings"
	"testing"
	"testing/fstest"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

const branches = `package core

type T[K comparable] struct{}

func (t *T[K]) M() {}
func (t T[K]) N()  {}

func F(a, b bool, c chan int, list []int) {
	for range list {
		if a && b || !a {
		}
	}
	for i := 0; i < 3; i++ {
	}
	switch {
	case a:
	case b:
	default:
	}
	select {
	case <-c:
	default:
	}
	func() {
		if a {
		}
	}()
}
`

func read(t *testing.T, fsys fstest.MapFS) *Tree {
	t.Helper()
	tree, err := Read(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestRead_CountsComplexityAsGocycloDoes(t *testing.T) {
	tree := read(t, fstest.MapFS{"internal/decide/core/f.go": file(branches)})
	if f := tree.Functions[0]; f.N != 10 || f.Name != "internal/decide/core/f.go F" {
		t.Errorf("%v, want 1, two loops, two ifs, && and ||, two cases and a receive: 10", f)
	}
	if types := tree.Types(); len(types) != 1 || types[0] != (Count{2, "internal/decide/core T"}) {
		t.Errorf("%v, want the two methods of T, whichever the receiver", types)
	}
}

func TestRead_LeavesOutTestsAndTestData(t *testing.T) {
	tree := read(t, fstest.MapFS{
		"a.go":                      file("package a\n\nvar A = 1"), // no newline at the end
		"a_test.go":                 file("package a\n"),
		"testdata/b.go":             file("package b\n"),
		".git/c.go":                 file("package c\n"),
		"build/d.go":                file("package d\n"),
		"internal/test/x/e.go":      file("package x\n"),
		"internal/testing/f.go":     file("package testing\n"),
		"internal/decide/broken.go": file("package broken\nfunc {\n"),
	})
	if sum(tree.Files) != 7 || len(tree.Files) != 4 {
		t.Errorf("%v, want 3 lines of a.go, 1 of each package below internal and 2 of the file that does not parse",
			tree.Files)
	}
}

func TestQuantile_IsTheSmallestThatCoversTheShare(t *testing.T) {
	var list []Count
	for n := 10; n > 0; n-- {
		list = append(list, Count{N: n})
	}
	for percent, want := range map[int]int{0: 1, 50: 5, 90: 9, 91: 10, 100: 10} {
		if got := quantile(list, percent); got != want {
			t.Errorf("the %dth percentile of 1 to 10 is %d, want %d", percent, got, want)
		}
	}
	if got := quantile(nil, 50); got != 0 {
		t.Errorf("%d of nothing", got)
	}
}

func TestPrint_NamesTheLargestPackagesAndThoseOfTheCore(t *testing.T) {
	tree := read(t, fstest.MapFS{
		"internal/decide/core/f.go":       file(branches),
		"internal/decide/core/queue/q.go": file("package queue\n"),
		"internal/decide/corelike/r.go":   file("package corelike\n" + strings.Repeat("\n", 2000)),
		"internal/test/x/x.go":            file("package x\n"),
	})
	var text strings.Builder
	tree.Print(&text)
	want := `Go lines without tests and test support: 2030 (test support: 1)
    2001  internal/decide/corelike
      28  internal/decide/core
       1  internal/decide/core/queue
       1  internal/test/x
packages above 1500 lines: 1 of 4
functions above complexity 15: 0 of 3 (0.00 %); above 25: 0
      10  internal/decide/core/f.go F
       1  internal/decide/core/f.go T.M
       1  internal/decide/core/f.go T.N
lines of a file: median 1, 90th percentile 2001, longest 2001
methods on one type: at most 2 (internal/decide/core T)
packages of the core:
      28  internal/decide/core
       1  internal/decide/core/queue
`
	if text.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", text.String(), want)
	}
}
