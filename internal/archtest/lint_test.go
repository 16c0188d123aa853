package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheLinterKnowsTheSameHouse holds .golangci.yml to House: its globs and its
// forbidden imports are floors, so a package that one of them does not know
// would be held by this test's neighbours only.
func TestTheLinterKnowsTheSameHouse(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if problems := linterMisses(string(text)); len(problems) > 0 {
		t.Errorf("mend .golangci.yml:\n%s", strings.Join(problems, "\n"))
	}
}

func TestAPackageThatTheLinterForgetsIsNamed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	forgetful := strings.Replace(string(text), "ledger,", "", 1)
	if problems := linterMisses(forgetful); !slices.ContainsFunc(problems,
		func(p string) bool { return strings.Contains(p, "ledger") }) {
		t.Errorf("a list without ledger is taken for whole: %q", problems)
	}
}

// linterMisses names the packages that a rule of the linter ought to name.
func linterMisses(config string) (problems []string) {
	rule := func(name string) string {
		_, after, _ := strings.Cut(config, "\n        "+name+":\n")
		end := regexp.MustCompile(`(?m)^ {0,8}\S`).FindStringIndex(after)
		if end != nil {
			after = after[:end[0]]
		}
		return after
	}
	glob := func(rule string) []string {
		m := regexp.MustCompile(`internal/\{([a-z,]+)\}`).FindStringSubmatch(rule)
		if m == nil {
			return nil
		}
		return strings.Split(m[1], ",")
	}
	for _, r := range []struct {
		name                 string
		low, high, bans, top int // files of floors low to high may not import floors bans to top
	}{{"pure", 1, 4, 5, 7}, {"floor-3-and-below", 1, 3, 4, 4}, {"floor-2-and-below", 1, 2, 3, 3}, {"floor-1", 1, 1, 2, 2},
		{"floor-5", 5, 5, 6, 7}, {"floor-6", 6, 6, 7, 7}} {
		text := rule(r.name)
		for _, room := range House {
			name, _, _ := strings.Cut(room.Path, "/")
			if name == "archtest" {
				continue
			}
			if room.Floor >= r.low && room.Floor <= r.high && !slices.Contains(glob(text), name) {
				problems = append(problems, "rule "+r.name+" is not said to hold for "+name)
			}
			if room.Floor >= r.bans && room.Floor <= r.top && !strings.Contains(text, "scrimp/internal/"+name+",") {
				problems = append(problems, "rule "+r.name+" lets "+name+" be imported")
			}
		}
	}
	clock := regexp.MustCompile(`path-except: internal/\(([a-z|]+)\)/`).FindStringSubmatch(config)
	for _, room := range House {
		if name, _, _ := strings.Cut(room.Path, "/"); room.Floor <= Line &&
			(clock == nil || !slices.Contains(strings.Split(clock[1], "|"), name)) {
			problems = append(problems, "the ban on clocks does not hold for "+name)
		}
	}
	return slices.Compact(problems)
}
