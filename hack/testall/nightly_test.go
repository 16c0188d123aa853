package main

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/must"
	"scrimp/internal/test/testbin"
)

func TestSteps_NamesAreUniqueAndEveryGroupIsThere(t *testing.T) {
	t.Chdir(testbin.Root())
	list, err := steps([]mark{{"./internal/cli", "TestLong", ""}, {"./internal/cli", "TestReal", "ssh"}})
	must.Do(t, err)
	var names, groups []string
	for _, s := range list {
		if slices.Contains(names, s.name) {
			t.Errorf("two steps have the name %s", s.name)
		}
		names = append(names, s.name)
		groups = append(groups, group(s.name))
		if s.name == "long:internal/cli" && (!strings.Contains(s.command, "TestLong") || strings.Contains(s.command, "TestReal")) {
			t.Errorf("%s runs %q, want the nightly test alone", s.name, s.command)
		}
	}
	for _, want := range []string{"long", "many", "fuzz", "race", "chaos", "chaos-kube", "demo", "sim", "laws", "without", "dist"} {
		if !slices.Contains(groups, want) {
			t.Errorf("there is no step of %s", want)
		}
	}
	for _, name := range names {
		folder, many := strings.CutPrefix(name, "many:")
		if many && !slices.Contains(names, "race:"+folder) {
			t.Errorf("%s: go test -tags local finds no Go file there", name)
		}
	}
	again, err := steps([]mark{{"./internal/cli", "TestLong", ""}})
	if err != nil || !slices.EqualFunc(list, again, func(a, b step) bool { return a.name == b.name }) {
		t.Errorf("the order of the steps differs between two calls (%v), and PART counts them", err)
	}
}

func TestChosen_PartsAreDisjointAndComplete(t *testing.T) {
	all := []step{{"race:a", ""}, {"race:b", ""}, {"demo", ""}, {"laws", ""}, {"fuzz:x", ""}}
	var got []string
	for _, part := range []string{"0/3", "1/3", "2/3"} {
		list, err := chosen(all, options{part: part})
		must.Do(t, err)
		for _, s := range list {
			got = append(got, s.name)
		}
	}
	slices.Sort(got)
	if want := []string{"demo", "fuzz:x", "laws", "race:a", "race:b"}; !slices.Equal(got, want) {
		t.Errorf("the three parts have %v, want %v", got, want)
	}
	if list, err := chosen(all, options{turn: 7}); err != nil || len(list) != 5 || list[0].name != "demo" {
		t.Errorf("turn 7 of 5 steps: %v, %v, want them from the third on", list, err)
	}
	if list, err := chosen(all, options{only: []string{"race"}}); err != nil || len(list) != 2 {
		t.Errorf("-only race chooses %v, %v, want both steps of the group", list, err)
	}
	for _, bad := range []string{"3/3", "-1/3", "1", "x/y", "0/0"} {
		if _, err := chosen(all, options{part: bad}); err == nil {
			t.Errorf("-part %s is accepted", bad)
		}
	}
}

func TestRunSteps_FailsOnAFindingUnlessItIsKnown(t *testing.T) {
	list := []step{{"sound", "true"}, {"broken", "echo what is wrong; exit 3"}, {"sim:5000", "exit 4"}}
	err := runSteps(t.Context(), t.TempDir(), nil, list, nil, 0, forEver)
	if err == nil || !strings.Contains(err.Error(), "broken, sim:5000") || strings.Contains(err.Error(), "sound") {
		t.Errorf("%v, want the step that failed named", err)
	}
	known := map[string]string{"broken": "issue 7", "sim": "all of the group"}
	if err := runSteps(t.Context(), t.TempDir(), nil, list, known, 0, forEver); err != nil {
		t.Errorf("a failure that is listed fails the run: %v", err)
	}
}

func TestRunSteps_IgnoresAStepThatTheLimitEnds(t *testing.T) {
	list := []step{{"long", "sleep 1000"}, {"next", "false"}}
	if err := runSteps(t.Context(), t.TempDir(), nil, list, nil, 1, forEver); err != nil {
		t.Errorf("%v, want no finding", err)
	}
}

// The first step does not end by itself; the second still starts, and its failure is found.
func TestRunSteps_OneLongStepLeavesTimeForTheOthers(t *testing.T) {
	list := []step{{"endless", "sleep 1000"}, {"broken", "false"}}
	err := runSteps(t.Context(), t.TempDir(), nil, list, nil, time.Hour, func(s step) time.Duration {
		if s.name == "endless" {
			return 1
		}
		return time.Hour
	})
	if err == nil || !strings.Contains(err.Error(), "broken") || strings.Contains(err.Error(), "endless") {
		t.Errorf("%v, want the failure of the step after the endless one", err)
	}
}

func forEver(step) time.Duration { return math.MaxInt64 }

func TestTail_HasTheFirstFailureOfALongText(t *testing.T) {
	long := strings.Repeat("a line\n", 5_000)
	for _, text := range []string{"--- FAIL: TestOne\n" + long, long + "--- FAIL: TestOne\n", long + "--- FAIL: TestOne\n" + long} {
		if got := tail(text); !strings.Contains(got, "--- FAIL: TestOne") || len(got) > 11_000 {
			t.Errorf("a text of %d bytes becomes %d bytes, with its failure: %v", len(text), len(got),
				strings.Contains(got, "--- FAIL: TestOne"))
		}
	}
	if got := tail(long); !strings.HasSuffix(long, strings.TrimPrefix(got, "...\n")) || len(got) > 9_000 {
		t.Errorf("the tail has %d bytes", len(got))
	}
}
