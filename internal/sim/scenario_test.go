package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/test/must"
)

// TestScenarios plays each file of testdata/scenario: commands above the line of dashes, the expected story below.
// -update rewrites the stories.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenario/*.txt")
	if err != nil || len(files) < 25 {
		t.Fatalf("%d scenario files, want 25 or more (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			must.Do(t, err)
			commands, want, found := strings.Cut(string(b), "----\n")
			if !found && !*update {
				t.Fatalf("%s has no line of dashes: go test ./internal/sim -run TestScenarios -update", file)
			}
			if !strings.HasPrefix(commands, "# ") {
				t.Errorf("%s begins with no sentence that says what must hold", file)
			}
			got, broken, err := tellStory(commands)
			must.Do(t, err)
			for _, b := range broken {
				t.Errorf("%s", b)
			}
			if *update { // otherwise the file detects a different story
				if again, _, _ := tellStory(commands); again != got {
					t.Fatal("the same scenario told two stories")
				}
				must.Do(t, os.WriteFile(file, []byte(commands+"----\n"+got), 0o644))
				return
			}
			if got != want {
				t.Errorf("go test ./internal/sim -run 'TestScenarios/%s' -update, and read the diff\n%s", filepath.Base(file[:len(file)-4]), diff(want, got))
			}
		})
	}
}

// diff shows the first difference with its surroundings.
func diff(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	part := func(s []string) string { return strings.Join(s[max(0, min(n-2, len(s))):min(n+6, len(s))], "\n") }
	return fmt.Sprintf("from line %d:\n%s\nwant:\n%s", n+1, part(b), part(a))
}

// tellStory plays the commands and returns the story and the violations.
func tellStory(commands string) (text string, broken []string, err error) {
	s := &stage{w: newWorld(rand.New(rand.NewPCG(1, 1)), epoch), said: map[string]string{}, saves: map[string]int{}, step: map[string]int64{}, since: map[string]time.Time{}, quota: map[string]string{}}
	s.w.script = &script{unlisted: map[string]bool{}, silent: 10 * time.Minute}
	s.w.watch = s.tell
	s.w.note = func(verb, text string) { s.line(verb, "%s", text) }
	s.cfg = core.DefaultConfig()
	for n, line := range strings.Split(commands, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		if err := s.command(line); err != nil {
			return "", nil, fmt.Errorf("line %d: %q: %w", n+1, strings.TrimSpace(line), err)
		}
	}
	if !s.ran {
		return "", nil, fmt.Errorf("nothing is run: end with `run until done`")
	}
	s.receipts()
	return s.b.String(), s.w.Broken, nil
}

// stage is a running scenario.
type stage struct {
	w     *World
	b     bytes.Buffer
	cfg   core.Config
	ran   bool
	said  map[string]string // last printed decision of each job
	saves map[string]int    // checkpoints not printed yet, by attempt
	step  map[string]int64  // in the newest of them
	live  map[string]bool   // billed instances
	since map[string]time.Time
	quota map[string]string // printed quota that a job waits for
	todo  int               // commands whose time has not come

	minutes int
	back    time.Time // the server's last restart: no agent counts as silent before it
}

func (s *stage) line(verb, format string, args ...any) {
	for _, attempt := range sortedKeys(s.saves) {
		n := s.saves[attempt]
		delete(s.saves, attempt)
		plural := ""
		if n > 1 {
			plural = "s"
		}
		fmt.Fprintf(&s.b, "%s  %-8s %s: %d checkpoint%s, the newest holds step %d\n", clock(s.w), "saved", attempt, n, plural, s.step[attempt])
	}
	fmt.Fprintf(&s.b, "%s  %-8s %s\n", clock(s.w), verb, fmt.Sprintf(format, args...))
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func clock(w *World) string { return hms(w.now.Sub(w.start)) }

// hms formats a duration as 12h05m09s.
func hms(d time.Duration) string {
	d = d.Round(time.Second)
	return fmt.Sprintf("%2dh%02dm%02ds", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
}

// run runs the world until everything has ended, or up to the limit.
func (s *stage) run(limit time.Duration) {
	w := s.w
	if !s.ran {
		if !w.script.still {
			w.step(core.Configured{Config: s.cfg})
			w.quotes()
			w.after(time.Minute, s.looks)
		}
		s.ran = true
	}
	end := w.now.Add(limit)
	for len(w.heap) > 0 && !w.heap[0].at.After(end) {
		w.next()
		if w.up && s.todo == 0 && (len(w.jobs) > 0 || w.script.still) && w.m.Quiet() && w.allTold() && !w.anyHeld() {
			return
		}
	}
}

// looks does what the shell does by the clock: it sweeps, and detects silent agents.
func (s *stage) looks() {
	w := s.w
	s.minutes++
	if s.minutes%5 == 0 {
		w.sweep()
	}
	if w.up {
		for _, a := range w.m.Live() {
			i := w.instances[a.Instance()]
			switch {
			case i == nil:
			case !i.running():
				w.endTold(i)
			case i.agent != nil && a.Task() == core.TaskRunning && !a.Releasing() && w.now.Sub(i.agent.answered) > w.script.silent && w.now.Sub(s.back) > w.script.silent:
				w.step(core.AgentSilent{Attempt: a.ID(), Since: i.agent.answered})
			}
		}
	}
	w.after(time.Minute, s.looks)
}

// keepLife writes a drawn life as a scenario: its events as the core got them, for a core around which nothing happens
// by itself. The story depends only on the core, not on later changes to how lives are drawn.
func keepLife(t *testing.T, w *World, name string) {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Seed %d", w.seed)
	for _, broken := range w.Broken {
		fmt.Fprintf(&b, "\n# %s", broken)
	}
	b.WriteString("\nstill\n")
	for _, l := range w.log {
		var e core.Event
		must.Do(t, json.Unmarshal(l.event, &e))
		fmt.Fprintf(&b, "at %v event %s\n", e.At.Sub(epoch), l.event)
	}
	b.WriteString("run until done\n")
	story, _, err := tellStory(b.String())
	must.Do(t, err)
	must.Do(t, os.WriteFile(filepath.Join("testdata/scenario", name+".txt"), []byte(b.String()+"----\n"+story), 0o644))
}
