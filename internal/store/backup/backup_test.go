package backup_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/store"
	"scrimp/internal/store/backup"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/storetest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func smallBackup(t testing.TB) (file []byte, sum backup.Sum) {
	t.Helper()
	s, err := sqlite.Open(fast.Dir(t))
	must(t, err)
	defer func() { _ = s.Close() }()
	must(t, s.Append(t.Context(), new(storetest.Writer).Make(30)))
	must(t, s.SaveSnapshot(t.Context(), store.Snapshot{Seq: 20, Version: 1, State: []byte(`"x"`)}))
	must(t, s.PutMeta(t.Context(), "a", "1"))
	_, err = s.AppendLog(t.Context(), "j-1.1", 0, []byte("a line\n"))
	must(t, err)
	var b bytes.Buffer
	sum, err = backup.Write(t.Context(), s, &b)
	must(t, err)
	return b.Bytes(), sum
}

// Check finds any change of a backup's bytes, unless the change is harmless.
func TestCheck_FindsDamage(t *testing.T) {
	t.Parallel()
	file, sum := smallBackup(t)
	found := 0
	check := func(what string, bad []byte) {
		t.Helper()
		got, err := backup.Check(bytes.NewReader(bad))
		switch {
		case err == nil && got != sum:
			t.Errorf("%s: taken for %+v", what, got)
		case err != nil && !errors.Is(err, backup.ErrDamaged):
			t.Errorf("%s: %v, want ErrDamaged", what, err)
		case err != nil:
			found++
		}
	}
	cuts := 0
	for n := 0; n < len(file); n += lane.Pick(7, 1) {
		cuts++
		check(fmt.Sprintf("cut to %d of %d bytes", n, len(file)), file[:n])
	}
	if found != cuts {
		t.Errorf("%d of %d cuts were found", found, cuts)
	}
	found = 0
	flips := lane.Pick(200, 1000)
	rng := rand.New(rand.NewPCG(4, 2))
	for range flips {
		bad, at, bit := slices.Clone(file), rng.IntN(len(file)), rng.IntN(8)
		bad[at] ^= 1 << bit
		check(fmt.Sprintf("bit %d of byte %d turned", bit, at), bad)
	}
	if found < flips*96/100 { // a few bits mean nothing: the time and the system in the gzip header
		t.Errorf("%d of %d turned bits were found", found, flips)
	}
	check("something after it", append(slices.Clone(file), "more"...))
	check("twice", append(slices.Clone(file), file...))
	check("nothing", nil)
	check("not a backup", []byte("hello"))
}

// Somebody may repack a changed backup, but its sum does not match.
func TestCheck_FindsForgery(t *testing.T) {
	for name, c := range map[string]struct{ script, words string }{
		"as it was":          {"true", ""},
		"an amount":          {`sed -i s/0.000005/0.000006/ events/*`, "hash"},
		"a fact":             {`sed -i s/1/2/ facts.json`, "hash"},
		"output":             {`echo more >> output/j-1.1`, "hash"},
		"an event is gone":   {`sed -i 7d events/*`, "events 7 to 7 are missing"},
		"the last is gone":   {`sed -i '$d' events/*`, "hash"},
		"two are swapped":    {`sed -i '3{h;d};4{G}' events/*`, "event 3 follows event 4"},
		"no facts":           {`rm facts.json`, "no place there"},
		"no head":            {`rm head.json`, "begins with"},
		"a file of its own":  {`echo > events.txt`, "no place there"},
		"of a newer program": {`sed -i s/:2,/:4,/ head.json`, "use a newer program"},
		"of an old program":  {`sed -i s/:2,/:1,/ head.json`, "an older release of scrimp"},
		"a sample is gone":   {`sed -i 9d events/*`, "hash"},
		"a sample is needed": {`sed -i 21d events/*`, "events 21 to 21 are missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, _ := smallBackup(t)
			script := "set -e; tar xz; " + c.script + "; for f in head.json snapshot events/* events.txt facts.json output/* sum.json; do if [ -e $f ]; then echo $f; fi; done | tar cT - | gzip"
			cmd := exec.Command("bash", "-c", script)
			cmd.Dir, cmd.Stdin = t.TempDir(), bytes.NewReader(file)
			again, err := cmd.Output()
			must(t, err)
			_, err = backup.Check(bytes.NewReader(again))
			if c.words == "" {
				must(t, err)
			} else if err == nil || !strings.Contains(err.Error(), c.words) {
				t.Errorf("%v; want %q", err, c.words)
			}
		})
	}
}

// A member name in a backup is an attempt's, never a path.
func TestRestore_DoesNotEscapeItsFolder(t *testing.T) {
	t.Parallel()
	s, err := sqlite.Open(fast.Dir(t))
	must(t, err)
	defer func() { _ = s.Close() }()
	file, _ := smallBackup(t)
	dir := t.TempDir()
	cmd := exec.Command("bash", "-c", `set -e; tar xz; tar cf a.tar --transform 's,output/j-1.1,output/../../escaped,' -P head.json snapshot events/* facts.json output/* sum.json; gzip -c a.tar`)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(file)
	bad, err := cmd.Output()
	must(t, err)
	if _, err := backup.Restore(t.Context(), s, bytes.NewReader(bad)); err == nil || !strings.Contains(err.Error(), "not the name of an attempt") {
		t.Errorf("a name with a path: %v", err)
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "..", "*escaped*")); len(found) > 0 {
		t.Errorf("written: %q", found)
	}
}

// A small file that unpacks to a very large one is refused or read with little memory.
func TestCheck_TakesLittleMemoryForAZipBomb(t *testing.T) {
	swelling := func(head string, member string) []byte {
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		must(t, err)
		w := tar.NewWriter(z)
		add := func(name string, size int64) {
			must(t, w.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o600}))
		}
		add("head.json", int64(len(head)))
		_, err = io.WriteString(w, head)
		must(t, err)
		if member != "" {
			zeros := make([]byte, 1<<20)
			add(member, 64<<20)
			for range 64 {
				_, err := w.Write(zeros)
				must(t, err)
			}
		}
		must(t, w.Close())
		must(t, z.Close())
		return b.Bytes()
	}
	for name, c := range map[string]struct {
		file  []byte
		words string
	}{
		"head":     {swelling(`{"format":2`+strings.Repeat(" ", 64<<20)+`}`, ""), "larger than any"},
		"snapshot": {swelling(`{"format":2,"snapshot":{"seq":1,"version":1},"end":1}`, "snapshot"), "cut short"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := backup.Check(bytes.NewReader(c.file))
		runtime.ReadMemStats(&after)
		if !errors.Is(err, backup.ErrDamaged) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
			t.Errorf("%s of %d bytes: %d MiB of memory", name, len(c.file), took>>20)
		}
	}
}

// Two stores that differ anywhere have different sums.
func TestSum_CoversEverything(t *testing.T) {
	t.Parallel()
	sumWith := func(records func([]store.Record), rest func(store.Store) error) backup.Sum {
		t.Helper()
		s, err := sqlite.Open(fast.Dir(t))
		must(t, err)
		defer func() { _ = s.Close() }()
		list := new(storetest.Writer).Make(20) // the last one has a key, facts and two postings
		records(list)
		must(t, s.Append(t.Context(), list))
		must(t, s.PutMeta(t.Context(), "a", "bc"))
		_, err = s.AppendLog(t.Context(), "j.1", 0, []byte("xyz"))
		must(t, err)
		must(t, rest(s))
		sum, err := backup.SumOf(t.Context(), s)
		must(t, err)
		return sum
	}
	same, none := func([]store.Record) {}, func(store.Store) error { return nil }
	want := sumWith(same, none)
	if again := sumWith(same, none); again != want {
		t.Fatalf("the same store has sums %+v and %+v", want, again)
	}
	seen := map[ledger.Hash]string{want.Hash: "the store itself"}
	differs := func(name string, sum backup.Sum) {
		t.Helper()
		if other, ok := seen[sum.Hash]; ok {
			t.Errorf("%s: the hash is that of %s", name, other)
		}
		seen[sum.Hash] = name
	}
	fields := reflect.TypeFor[store.Record]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		if name == "Seq" || name == "Kept" || name == "Sample" {
			continue // their place determines them; samples have their own lines below
		}
		differs(name, sumWith(func(list []store.Record) {
			switch r := &list[19]; name {
			case "At":
				r.At = r.At.Add(1)
			case "Postings":
				r.Postings = r.Postings[:1]
			case "Event", "Facts":
				reflect.ValueOf(r).Elem().Field(i).SetBytes([]byte(`{"changed":1}`))
			default:
				reflect.ValueOf(r).Elem().Field(i).SetString("changed")
			}
		}, none))
	}
	differs("a posting's hash", sumWith(func(list []store.Record) { list[19].Postings[0].Hash[31] ^= 1 }, none))
	differs("a posting's line", sumWith(func(list []store.Record) { list[19].Postings[0].Line = 7 }, none))
	differs("a sample that is none", sumWith(func(list []store.Record) { list[2].Sample = false }, none))
	for name, rest := range map[string]func(store.Store) error{
		"a sample less": func(s store.Store) error {
			must(t, s.SaveSnapshot(t.Context(), store.Snapshot{Seq: 3}))
			_, err := s.DropSamples(t.Context(), 3)
			return err
		},
		"a fact":            func(s store.Store) error { return s.PutMeta(t.Context(), "a", "bd") },
		"a fact more":       func(s store.Store) error { return s.PutMeta(t.Context(), "b", "") },
		"output":            func(s store.Store) error { _, err := s.AppendLog(t.Context(), "j.1", 3, []byte("!")); return err },
		"an attempt more":   func(s store.Store) error { _, err := s.AppendLog(t.Context(), "j.2", 0, nil); return err },
		"an event more":     func(s store.Store) error { return s.Append(t.Context(), new(storetest.Writer).Make(21)[20:]) },
		"text across parts": func(s store.Store) error { return s.PutMeta(t.Context(), "ab", "c") },
	} {
		differs(name, sumWith(same, rest))
	}
}
