package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/test/must"
)

// twoSaves trains a little and leaves the checkpoints of steps 3 and 5 in dir.
func twoSaves(t *testing.T, dir string) *trainer {
	t.Helper()
	tr := newTrainer(tinyText(), 1)
	for tr.step < 5 {
		tr.advance()
		if tr.step == 1 || tr.step == 3 || tr.step == 5 {
			must.Do(t, tr.save(dir))
		}
	}
	return tr
}

// A resumed run is in the same state as one that never stopped.
func TestResume_IsExact(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one := twoSaves(t, dir)
	names, err := checkpoints(dir)
	if err != nil || len(names) != kept {
		t.Fatalf("kept %v, %v: want the newest %d", names, err, kept)
	}
	two := newTrainer(tinyText(), 1)
	if ok, err := two.resume(dir, io.Discard); !ok || err != nil || two.step != 5 {
		t.Fatalf("resume: %v, %v, step %d", ok, err, two.step)
	}
	for range 5 {
		one.advance()
		one.validate() // validation changes nothing
		two.advance()
	}
	a, err := one.encode()
	must.Do(t, err)
	b, err := two.encode()
	must.Do(t, err)
	if !bytes.Equal(a, b) {
		t.Fatal("after a resume and 5 steps the state differs")
	}
}

// A newest checkpoint that is torn, truncated or flipped anywhere is skipped.
func TestResume_SkipsADamagedCheckpoint(t *testing.T) {
	t.Parallel()
	damage := map[string]func([]byte) []byte{
		"empty":     func([]byte) []byte { return nil },
		"cut":       func(b []byte) []byte { return b[:len(b)-1] },
		"half":      func(b []byte) []byte { return b[:len(b)/2] },
		"longer":    func(b []byte) []byte { return append(b, 0) },
		"bit first": func(b []byte) []byte { b[0] ^= 1; return b },
		"bit mid":   func(b []byte) []byte { b[len(b)/3] ^= 64; return b },
		"bit last":  func(b []byte) []byte { b[len(b)-1] ^= 128; return b },
		"hole":      func(b []byte) []byte { clear(b[len(b)/2 : len(b)/2+4096]); return b },
	}
	saved := t.TempDir()
	twoSaves(t, saved)
	for name, f := range damage {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			must.Do(t, os.CopyFS(dir, os.DirFS(saved)))
			newest := filepath.Join(dir, "step-000000000005.ckpt")
			b, err := os.ReadFile(newest)
			must.Do(t, err)
			must.Do(t, os.WriteFile(newest, f(b), 0o600))
			must.Do(t, os.WriteFile(newest+".tmp", b[:10], 0o600))
			var said strings.Builder
			tr := newTrainer(tinyText(), 1)
			if ok, err := tr.resume(dir, &said); !ok || err != nil || tr.step != 3 {
				t.Fatalf("resume: %v, %v, step %d: want step 3", ok, err, tr.step)
			}
			if !strings.Contains(said.String(), "passed over: damaged") {
				t.Errorf("said %q", said.String())
			}
			if _, err := os.Stat(newest + ".tmp"); !os.IsNotExist(err) {
				t.Errorf("what a killed save left is still there: %v", err)
			}
		})
	}
}

// A checkpoint of another text or seed is refused, neither skipped nor used.
func TestResume_RefusesACheckpointOfAnotherRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	twoSaves(t, dir)
	other := tinyText()
	other.hash = "other"
	for want, tr := range map[string]*trainer{
		"trained on the text tiny": newTrainer(other, 1),
		"the seed 1":               newTrainer(tinyText(), 2),
	} {
		if ok, err := tr.resume(dir, io.Discard); ok || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("resume: %v, %v: want an error with %q", ok, err, want)
		}
		if tr.step != 0 {
			t.Errorf("a refused checkpoint moved the run to step %d", tr.step)
		}
	}
}

func TestParse_ReadsFlagsAndEnvironment(t *testing.T) {
	env := func(kv ...string) func(string) string {
		return func(k string) string {
			for i := 0; i < len(kv); i += 2 {
				if kv[i] == k {
					return kv[i+1]
				}
			}
			return ""
		}
	}
	o, err := parse(nil, env("STEPS", "12", "SCRIMP_CHECKPOINT_DIR", "/c", "SCRIMP_CHECKPOINT_INTERVAL_S", "2.5"))
	if err != nil || o.steps != 12 || o.checkpoint != "/c" || o.saveEvery.Seconds() != 2.5 {
		t.Errorf("from the environment: %+v, %v", o, err)
	}
	o, err = parse([]string{"--steps", "3", "--checkpoint", "d", "--save-every", "1s"}, env("STEPS", "12", "SCRIMP_CHECKPOINT_DIR", "/c", "SCRIMP_CHECKPOINT_INTERVAL_S", "9"))
	if err != nil || o.steps != 3 || o.checkpoint != "d" || o.saveEvery.Seconds() != 1 {
		t.Errorf("flags come before the environment: %+v, %v", o, err)
	}
	for want, get := range map[string]func(string) string{
		"how many steps":               env(),
		"STEPS is":                     env("STEPS", "many"),
		"SCRIMP_CHECKPOINT_INTERVAL_S": env("STEPS", "1", "SCRIMP_CHECKPOINT_INTERVAL_S", "NaN"),
	} {
		if _, err := parse(nil, get); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parse: %v, want an error with %q", err, want)
		}
	}
}
