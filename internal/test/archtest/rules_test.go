package archtest

import (
	"strings"
	"testing"
	"testing/fstest"
)

// A rule that cannot fail checks nothing, so each gets a small bad example.
func TestRules_CatchTheirFaults(t *testing.T) {
	layers := func(p Package) []string { return Layers(p, House) }
	for _, c := range []struct {
		name  string
		rule  func(Package) []string
		file  string
		text  string
		fault string // "": the rule must pass
	}{
		{"up a floor", layers, "internal/decide/core/a.go", `package core; import "scrimp/internal/store"`, "stands above it"},
		{"within a folder", layers, "internal/store/a.go", `package store; import "scrimp/internal/store/backup"`, ""},
		{"down", layers, "internal/store/a.go", `package store; import ("scrimp/internal/wire/api"; "scrimp/internal/decide/core")`, ""},
		{"a package without a place", layers, "internal/helper/a.go", `package helper`, "folder of House"},
		{"from a package without a place", layers, "internal/decide/core/a.go", `package core; import "scrimp/internal/helper"`,
			"folder of House"},
		{"a program", layers, "internal/cli/a.go", `package cli; import "scrimp/cmd/scrimp"`, "nobody imports a program"},
		{"a test looks up", layers, "internal/decide/core/a_test.go", `package core_test; import "scrimp/internal/store"`, ""},
		{"a tool sees all", layers, "hack/tool/main.go", `package main; import "scrimp/internal/cli"`, ""},

		{"a span of a float", Conversions, "internal/decide/core/a.go", `package core; import "time"; var d = time.Duration(float64(x) * y)`,
			"saturates"},
		{"a span of hours", Conversions, "internal/decide/policy/zonechoice/a.go", `package place; import "time"; var d = time.Duration(min(x.Hours(), 1e9))`,
			"saturates"},
		{"a count of a float", Conversions, "internal/decide/state/a.go", `package state; import "math"; var n = int64(math.Round(x))`, "saturates"},
		{"a span of a count", Conversions, "internal/decide/core/a.go", `package core; import "time"; var d = time.Duration(n) * time.Second`, ""},
		{"a float elsewhere", Conversions, "internal/market/a.go", `package market; var n = int(float64(x))`, ""},

		{"a public package looks inside", Public, "money/a.go", `package money; import "scrimp/internal/wire/api"`, "its own"},
		{"a public package needs another", Public, "money/a.go", `package money; import "scrimp/client"`, "its own"},
		{"a public package by itself", Public, "money/a.go", `package money; import "math/big"`, ""},

		{"a neighbour that is not its own", Apart, "internal/server/keymutex/a.go",
			`package turn; import "scrimp/internal/server/auth"`, "small interface"},
		{"the roof", Apart, "internal/server/keymutex/a.go", `package turn; import "scrimp/internal/server"`, "small interface"},
		{"a neighbour that it needs no more", Apart, "internal/server/auth/a.go", `package auth`, "server/reply no more"},
		{"a neighbour that nobody knows", Apart, "internal/server/cellar/a.go", `package cellar`, "is not in neighbours"},
		{"a neighbour of its own", Apart, "internal/server/auth/a.go",
			`package auth; import ("net/http"; "scrimp/internal/decide/core"; "scrimp/internal/server/reply")`, ""},
		{"the roof sees all", Apart, "internal/server/a.go", `package server; import "scrimp/internal/server/keymutex"`, ""},

		{"an error's text", ErrorTexts, "internal/cli/a.go",
			`package cli; import "strings"; func f(err error) bool { return strings.Contains(err.Error(), "gone") }`, "errors.As"},
		{"an error's whole text", ErrorTexts, "internal/cli/a.go",
			`package cli; func f(err error) bool { return err.Error() == "EOF" }`, "errors.As"},
		{"an error's text as it is shown", ErrorTexts, "internal/cli/a.go",
			`package cli; import "strings"; func f(err error) string { return strings.TrimSpace(err.Error()) }`, ""},
		{"a test of a text", ErrorTexts, "internal/cli/a_test.go",
			`package cli; func f(err error) bool { return err.Error() == "EOF" }`, ""},

		{"a program with the server's environment", Children, "internal/engine/a/a.go",
			`package a; import "os/exec"; func f() error { return exec.Command("ssh").Run() }`, "child.Command"},
		{"a program with an environment", Children, "internal/engine/a/a.go",
			`package a; import "os/exec"; func f() { c := exec.Command("ssh"); c.Env = []string{"A=b"} }`, ""},
		{"a program of a command", Children, "internal/cli/a.go",
			`package cli; import "os/exec"; func f() error { return exec.Command("ssh").Run() }`, ""},

		{"a test that sleeps", Timed, "internal/cli/a_test.go",
			`package cli; import "time"; func f() { time.Sleep(1) }`, "time.Sleep"},
		{"a test that measures", Timed, "internal/cli/a_test.go",
			`package cli; import "time"; func f(t time.Time) bool { return time.Since(t) < time.Second }`, "time.Since"},
		{"a time-out of its own", Timed, "internal/cli/a_test.go",
			`package cli; import "time"; func f(c chan int) { select { case <-c: case <-time.After(1): } }`, "time.After"},
		{"a context that ends early", Timed, "internal/cli/a_test.go", `package cli; import ("context"; "time"); ` +
			`func f() { context.WithTimeout(context.Background(), time.Second) }`, "eventually.Limit"},
		{"a context that ends a test that hangs", Timed, "internal/cli/a_test.go", `package cli; import ("context"; "time"; ` +
			`"scrimp/internal/test/eventually"); var t time.Time; func f() { context.WithTimeout(context.Background(), eventually.Limit) }`, ""},
		{"a clock that is compared", Timed, "internal/cli/a_test.go",
			`package cli; import "time"; func f(t time.Time) bool { return time.Now().After(t) }`, "time.Now in After"},
		{"a clock that is compared with", Timed, "internal/cli/a_test.go",
			`package cli; import "time"; func f(t time.Time) bool { return t.Before(time.Now()) }`, "time.Now in Before"},
		{"a clock as data", Timed, "internal/cli/a_test.go",
			`package cli; import "time"; var t = time.Now().Add(time.Hour)`, ""},
		{"a mark that is not the first statement", Timed, "internal/cli/a_test.go", `package cli; import ("testing"; "time"; ` +
			`"scrimp/internal/test/lane"); func TestA(t *testing.T) { t.Parallel(); lane.Nightly(t, "x"); time.Sleep(1) }`,
			"time.Sleep"},
		{"a test of the nightly lane", Timed, "internal/cli/a_test.go", `package cli; import ("testing"; "time"; ` +
			`"scrimp/internal/test/lane"); func TestA(t *testing.T) { lane.Nightly(t, "x"); time.Sleep(1) }`, ""},
		{"a test of a component", Timed, "internal/cli/a_test.go", `package cli; import ("testing"; "time"; ` +
			`"scrimp/internal/test/lane"); func TestA(t *testing.T) { lane.Component(t, "ssh"); time.Sleep(1) }`, ""},
		{"a package of a suite", Timed, "internal/engine/aws/a_test.go",
			`package aws; import "time"; func f() { time.Sleep(1) }`, ""},
		{"a benchmark", Timed, "internal/cli/a_test.go", `package cli; import ("testing"; "time"); ` +
			`func BenchmarkA(b *testing.B) { t := time.Now(); _ = time.Since(t) }`, ""},
		{"a test that sleeps in a bubble", Timed, "internal/cli/a_test.go", `package cli; import ("testing"; ` +
			`"testing/synctest"; "time"); func f(t *testing.T) { synctest.Test(t, func(*testing.T) { time.Sleep(1) }) }`, ""},
		{"a program that sleeps", Timed, "internal/cli/a.go", `package cli; import "time"; func f() { time.Sleep(1) }`, ""},
		{"what waits for tests", Timed, "internal/test/eventually/a_test.go",
			`package await; import "time"; func f() { time.Sleep(1) }`, ""},

		{"a program that imports test support", Support, "internal/cli/a.go",
			`package cli; import "scrimp/internal/test/eventually"`, "tests and tools only"},
		{"a program that imports a test store", Support, "cmd/scrimp/a.go",
			`package main; import "scrimp/internal/test/storetest"`, "tests and tools only"},
		{"a test that imports test support", Support, "internal/cli/a_test.go",
			`package cli; import "scrimp/internal/test/lane"`, ""},
		{"a tool that imports test support", Support, "hack/testall/a.go",
			`package main; import "scrimp/internal/test/lane"`, ""},
		{"test support that imports test support", Support, "internal/test/pgtest/a.go",
			`package pgtest; import "scrimp/internal/test/eventually"`, ""},

		{"context", Pure, "internal/decide/core/a.go", `package core; import "context"`, "cancelled"},
		{"a logger", Pure, "internal/decide/core/a.go", `package core; import "log/slog"`, "does not log"},
		{"the network", Pure, "internal/decide/core/a.go", `package core; import "net/http"`, "talks to nobody"},
		{"a file", Pure, "internal/decide/core/a.go", `package core; import "os"`, "reads no file"},
		{"a database", Pure, "internal/decide/core/a.go", `package core; import "database/sql"`, "comes in as events"},
		{"a lock", Pure, "internal/decide/core/a.go", `package core; import "sync/atomic"`, "single-threaded"},
		{"old chance", Pure, "internal/market/a.go", `package market; import "math/rand"`, "v2"},
		{"the machine's chance", Pure, "internal/market/a.go", `package market; import "crypto/rand"`,
			"seed that was passed in"},
		{"a neighbour of a bad name", Pure, "internal/decide/core/a.go", `package core; import "html/template"`, ""},
		{"another project", Pure, "internal/decide/core/a.go", `package core; import "go.yaml.in/yaml/v3"`, "another project"},
		{"an allowed project", Pure, "internal/job/spec/a.go", `package spec; import "go.yaml.in/yaml/v3"`, ""},
		{"a clock", Pure, "internal/decide/core/a.go", `package core; import "time"; var t = time.Now()`, "time.Now"},
		{"a clock as a value", Pure, "internal/decide/core/a.go", `package core; import "time"; var now = time.Now`, "time.Now"},
		{"a clock under another name", Pure, "internal/decide/core/a.go",
			`package core; import clock "time"; func f(t clock.Time) { _ = clock.Since(t) }`, "time.Since"},
		{"a clock through a dot", Pure, "internal/decide/core/a.go", `package core; import . "time"; var t = Now()`, "with a dot"},
		{"a pause", Pure, "internal/decide/core/a.go", `package core; import "time"; func f() { time.Sleep(1) }`, "time.Sleep"},
		{"a timer", Pure, "internal/decide/core/a.go", `package core; import "time"; func f() { time.NewTimer(1) }`,
			"time.NewTimer"},
		{"a time zone of the machine", Pure, "internal/decide/core/a.go",
			`package core; import "time"; func f() { time.LoadLocation("x") }`, "time.LoadLocation"},
		{"a span", Pure, "internal/decide/core/a.go", `package core; import "time"; const d = time.Hour`, ""},
		{"a goroutine", Pure, "internal/decide/core/a.go", `package core; func f() { go f() }`, "goroutine"},
		{"a channel", Pure, "internal/decide/core/a.go", `package core; var c chan int`, "channel"},
		{"a receive", Pure, "internal/decide/core/a.go", `package core; func f() { <-c }`, "channel"},
		{"a select", Pure, "internal/decide/core/a.go", `package core; func f() { select {} }`, "channel"},
		{"a printed line", Pure, "internal/decide/core/a.go", `package core; import "fmt"; func f() { fmt.Println() }`,
			"cli prints"},
		{"a text", Pure, "internal/decide/core/a.go", `package core; import "fmt"; var s = fmt.Sprint(1)`, ""},
		{"above the line", Pure, "internal/store/a.go",
			`package store; import ("os"; "time"); var t = time.Now(); func f() { go f() }`, ""},
		{"a test below the line", Pure, "internal/decide/core/a_test.go",
			`package core; import ("os"; "testing"; "time"); var t = time.Now()`, ""},

		{"chance in the core", Chance, "internal/decide/core/a.go", `package core; import "math/rand/v2"`,
			"chance enters as an event"},
		{"chance that was passed in", Chance, "internal/market/a.go",
			`package market; import "math/rand/v2"; func f(r *rand.Rand) int { return r.IntN(3) }`, ""},
		{"the machine's seed", Chance, "internal/sim/a.go",
			`package sim; import "math/rand/v2"; func f() int { return rand.IntN(3) }`, "machine's seed"},
		{"a seed of its own", Chance, "internal/sim/a.go",
			`package sim; import "math/rand/v2"; func f(s uint64) *rand.Rand { return rand.New(rand.NewPCG(s, 0)) }`, ""},
		{"chance in a shell", Chance, "internal/store/a.go", `package store; import "math/rand/v2"; var n = rand.IntN(3)`,
			""},

		{"a server with a driver", Drivers, "internal/server/a.go",
			`package server; import "scrimp/internal/engine/local"`, "by name and kind"},
		{"a server with engines", Drivers, "internal/server/a.go", `package server; import "scrimp/internal/engine"`, ""},
		{"a command line with a driver", Drivers, "internal/cli/a.go",
			`package cli; import "scrimp/internal/engine/local"`, ""},

		{"no comment", Documented, "internal/decide/core/a.go", "package core", "no package comment"},
		{"a comment", Documented, "internal/decide/core/a.go", "// Package core decides.\npackage core", ""},
		{"a comment about something else", Documented, "internal/decide/core/a.go", "// Copyright.\npackage core", "begins with"},
		{"a program's comment", Documented, "cmd/scrimp/main.go", "// Command scrimp runs jobs.\npackage main", ""},
		{"a program's name", Documented, "cmd/scrimp/main.go", "// Scrimp runs jobs.\npackage main", ""},
		{"only tests", Documented, "sdk/a_test.go", "package sdk", ""},

		{"a cloud in the local build", Local, "internal/store/a.go",
			`package store; import "github.com/aws/aws-sdk-go-v2/aws"`, "!local"},
		{"a cloud under another constraint", Local, "internal/store/a.go",
			"//go:build linux\n\npackage store\n\nimport \"gocloud.dev/blob/s3blob\"", "!local"},
		{"a cloud in the full build", Local, "internal/store/a.go",
			"//go:build linux && !local\n\npackage store\n\nimport \"gocloud.dev/blob/s3blob\"", ""},
		{"an interface of a cloud", Local, "internal/store/a.go", `package store; import "gocloud.dev/blob"`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			list, err := Read(fstest.MapFS{c.file: &fstest.MapFile{Data: []byte(c.text)}})
			if err != nil || len(list) != 1 {
				t.Fatalf("read %d packages: %v", len(list), err)
			}
			got := strings.Join(c.rule(list[0]), "\n")
			switch {
			case c.fault == "" && got != "":
				t.Errorf("the rule complains about good code:\n%s", got)
			case c.fault != "" && !strings.Contains(got, c.fault):
				t.Errorf("the rule says %q, without %q", got, c.fault)
			}
		})
	}
}

func TestDocumented_RefusesTwoPackageComments(t *testing.T) {
	list, err := Read(fstest.MapFS{
		"internal/decide/core/a.go": {Data: []byte("// Package core decides.\npackage core")},
		"internal/decide/core/b.go": {Data: []byte("// Package core steps.\npackage core")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := Documented(list[0]); len(got) != 1 || !strings.Contains(got[0], "keep one") {
		t.Errorf("two package comments: %q", got)
	}
}

func TestTraces_FindsPatterns(t *testing.T) {
	fsys := fstest.MapFS{
		"good.md":     {Data: []byte("run it in any folder\n")},
		"bad.md":      {Data: []byte("first\nsee /ho" + "me/me/notes\n")},
		"go.env":      {Data: []byte("GOPROXY=https://proxy.go" + "lang.org\n")},
		"here.txt":    {Data: []byte("built in /srv/checkouts/one\n")},
		"build/a.txt": {Data: []byte("/ho" + "me/me\n")},
		"picture.bin": {Data: []byte("\x00/ho" + "me/me\n")},
		".git/a":      {Data: []byte("/ho" + "me/me\n")},
		".ci/run":     {Data: []byte("cd /ro" + "ot/x\n")},
	}
	problems, err := Traces(fsys, "/srv/checkouts/one")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(problems, "\n")
	for _, want := range []string{"bad.md:2", "go.env:1", "here.txt:1", ".ci/run:1"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s was not found in %q", want, got)
		}
	}
	if len(problems) != 4 {
		t.Errorf("found %d traces, want 4:\n%s", len(problems), got)
	}
}

func TestRead_FailsOnUnreadableSource(t *testing.T) {
	if _, err := Read(fstest.MapFS{"a.go": {Data: []byte("package")}}); err == nil {
		t.Error("broken source was read without complaint: the rules would hold over nothing")
	}
}
