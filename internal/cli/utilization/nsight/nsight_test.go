package nsight_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/cli/utilization/nsight"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/work/diagnose"
	"scrimp/internal/work/diagnose/profile"
)

// tables is the schema as nsys export documents it, of the columns that are read and some that are not.
const tables = `CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER,
	streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, gridX INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, streamId INTEGER,
	bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, value INTEGER, bytes INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, textId INTEGER, globalTid INTEGER, domainId INTEGER);
CREATE TABLE OSRT_API (start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, nameId INTEGER NOT NULL);`

// db is an SQLite file of a test.
type db struct {
	t    testing.TB
	path string
	db   *sql.DB
	ids  map[string]int
}

func newDB(t testing.TB, schema string) *db {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a report #1?.sqlite")
	d, err := sql.Open("sqlite", "file:"+strings.NewReplacer("?", "%3f", "#", "%23").Replace(path))
	must.Do(t, err)
	d.SetMaxOpenConns(1)
	x := &db{t, path, d, map[string]int{}}
	t.Cleanup(func() { _ = d.Close() })
	x.do("BEGIN; " + schema + "; COMMIT")
	return x
}

func (d *db) do(text string, args ...any) {
	d.t.Helper()
	if _, err := d.db.ExecContext(d.t.Context(), text, args...); err != nil {
		d.t.Fatalf("%.200s: %v", text, err)
	}
}

// id returns the number of a string, and adds it.
func (d *db) id(name string) int {
	if d.ids[name] == 0 {
		d.ids[name] = len(d.ids) + 1
		d.do("INSERT INTO StringIds VALUES (?, ?)", d.ids[name], name)
	}
	return d.ids[name]
}

func (d *db) kernel(start, end int64, device int, name string) {
	d.do("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, 1, 7, 1, 1, ?, ?, 1)", start, end, device, d.id(name), d.id("short"))
}

func (d *db) ranged(start, end any, thread int64, text any, id any) {
	d.do("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, ?, ?, 0)", start, end, text, id, thread)
}

func (d *db) call(table string, start, end, thread int64, name string) {
	columns := map[string]string{"OSRT_API": "(start, end, globalTid, nameId)", "CUPTI_ACTIVITY_KIND_RUNTIME": "(start, end, globalTid, nameId)"}[table]
	d.do("INSERT INTO "+table+columns+" VALUES (?, ?, ?, ?)", start, end, thread, d.id(name))
}

func (d *db) read() ([]profile.Profile, error) {
	d.t.Helper()
	_ = d.db.Close()
	return nsight.Read(d.t.Context(), d.path)
}

func (d *db) mustRead() []profile.Profile {
	d.t.Helper()
	list, err := d.read()
	must.Do(d.t, err)
	return list
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

// statistics writes the sums of names as nsys stats does.
func statistics(head string, by map[string][]int64) string {
	text := head + "\n"
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for n := range by {
			if !yield(n) {
				return
			}
		}
	}) {
		sum := int64(0)
		for _, v := range by[name] {
			sum += v
		}
		text += fmt.Sprintf("1.0,%d,%d,1.0,1.0,1,1,0.0,%q\n", sum, len(by[name]), name)
	}
	return text + "\n"
}

// A run gives the same operators and shares from its SQLite file as from its CSV tables, whatever is in it; and the
// SQLite file names no cause that the CSV tables do not, each with the part of the saving in which GPUs worked.
func TestRead_AgreesWithCSV(t *testing.T) {
	kernels := []string{"void gemm<float, 1>(T1 *, \"x\")", "ncclDevKernel_AllReduce_Sum", "elementwise", "Memset kernel", "relu"}
	copies := map[int]string{1: "[CUDA memcpy Host-to-Device]", 2: "[CUDA memcpy Device-to-Host]", 8: "[CUDA memcpy Device-to-Device]"}
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		d := newDB(t, tables)
		d.do("BEGIN")
		byKernel, byCopy := map[string][]int64{}, map[string][]int64{}
		gpus := 1 + rng.IntN(3)
		at, first, last, sum := int64(1e9), int64(0), int64(0), int64(0)
		for i := range 50 + rng.IntN(300) {
			at += rng.Int64N(2_000_000)
			took := 1 + rng.Int64N(1+int64(1)<<rng.IntN(24))
			end := at + took
			if i == 0 {
				first = at
			}
			last, sum = max(last, end), sum+took
			switch device := rng.IntN(gpus); {
			case i < gpus || rng.IntN(3) > 0:
				if i < gpus {
					device = i
				}
				name := kernels[rng.IntN(len(kernels))]
				byKernel[name] = append(byKernel[name], took)
				d.kernel(at, end, device, name)
			case rng.IntN(5) == 0:
				byCopy["[CUDA memset]"] = append(byCopy["[CUDA memset]"], took)
				d.do("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (?, ?, ?, 0, 1)", at, end, device)
			default:
				kind := []int{1, 2, 8}[rng.IntN(3)]
				byCopy[copies[kind]] = append(byCopy[copies[kind]], took)
				d.do("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, ?, 7, 1, ?)", at, end, device, kind)
			}
		}
		d.do("COMMIT")
		list := d.mustRead()
		const columns = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),"
		text := statistics(columns+"Name", byKernel) + statistics(strings.Replace(columns, "Instances", "Count", 1)+"Operation", byCopy)
		want, err := profile.Read("x.csv", strings.NewReader(strings.ReplaceAll(text, `\"`, `""`)))
		if err != nil || len(list) != 1 {
			t.Fatalf("seed %d: %v, %d profiles", seed, err, len(list))
		}
		got := list[0]
		if got.Tool != want.Tool || !got.OnGPU || !got.OfBusy || len(got.Operators) != len(want.Operators) || len(got.Shares) != len(want.Shares) {
			t.Fatalf("seed %d: %+v\nwant %+v", seed, got, want)
		}
		for i, o := range want.Operators {
			if g := got.Operators[i]; g.Name != o.Name || g.Count != o.Count || g.Part != o.Part || !near(g.Seconds, o.Seconds) || !near(g.Share, o.Share) {
				t.Errorf("seed %d: operator %d is %+v, want %+v", seed, i, got.Operators[i], o)
			}
		}
		for part, v := range want.Shares {
			if !near(got.Shares[part], v) {
				t.Errorf("seed %d: %s is %v, want %v", seed, part, got.Shares[part], v)
			}
		}
		busy := min(1, float64(sum)/float64(last-first)/float64(gpus))
		if !near(got.Seconds, float64(last-first)/1e9) || !near(*got.GPUBusy, busy) {
			t.Errorf("seed %d: busy %v of %v s, want %v of %v", seed, *got.GPUBusy, got.Seconds, busy, float64(last-first)/1e9)
		}
		all := map[string]diagnose.Cause{}
		for _, c := range diagnose.Diagnose(diagnose.Input{Profiles: []profile.Profile{want}}).Causes {
			all[string(c.Class)] = c
		}
		for _, c := range diagnose.Diagnose(diagnose.Input{Profiles: list}).Causes {
			if old, known := all[string(c.Class)]; !known || !near(c.Share.Value, min(0.95, busy*got.Shares[partOf[string(c.Class)]])) || c.Share.Value > old.Share.Value+1e-9 {
				t.Errorf("seed %d: %s saves %+v, and by the CSV %+v", seed, c.Class, c.Share, old.Share)
			}
		}
	}
}

var partOf = map[string]profile.Part{"host_device_copies": profile.Copying, "communication": profile.Communication}

// Ranges of the thread that launches kernels count, each moment once and as the outermost range; those of other threads
// do not.
func TestRead_CountsRangesOfTheLaunchingThread(t *testing.T) {
	const process, main, other = int64(5) << 24, int64(5)<<24 + 1, int64(5)<<24 + 2
	d := newDB(t, tables)
	d.kernel(0, 100, 0, "gemm")
	d.kernel(900, 1000, 0, "gemm")
	for i := range int64(5) {
		d.call("CUPTI_ACTIVITY_KIND_RUNTIME", 10*i, 10*i+1, main, "cudaLaunchKernel_v7000")
	}
	d.call("CUPTI_ACTIVITY_KIND_RUNTIME", 0, 1000, other, "cudaDeviceSynchronize_v3020")
	d.ranged(100, 400, main, "DataLoader.next", nil)
	d.ranged(150, 250, main, "", d.id("validate"))        // within it
	d.call("OSRT_API", 350, 450, main, "read")            // 50 of it are after the range
	d.call("OSRT_API", 460, 470, main, "poll")            // for no known reason
	d.call("OSRT_API", 500, 700, main, "fsync")           // saves
	d.ranged(0, 10, main, "", d.id("torch.save"))         // its text is empty
	d.ranged(500, 0, main, "save_checkpoint", nil)        // a mark of an older file
	d.ranged(500, nil, main, "save_checkpoint", nil)      // a mark
	d.ranged(0, 1000, other, "DataLoader worker", nil)    // beside
	d.ranged(0, 1000, main, "aten::linear, seq = 4", nil) // no purpose
	d.ranged(0, 1000, process+7, "torch.save", nil)       // beside
	d.call("CUPTI_ACTIVITY_KIND_RUNTIME", 700, 800, main, "cudaMemcpyAsync_v3020")
	d.call("CUPTI_ACTIVITY_KIND_RUNTIME", 800, 850, main, "cudaStreamSynchronize_v3020")
	list := d.mustRead()
	if len(list) != 2 {
		t.Fatalf("%+v", list)
	}
	p := list[1]
	want := map[profile.Part]float64{profile.Loading: 0.35, profile.Saving: 0.21, profile.Waiting: 0.05}
	if len(p.Shares) != len(want) || *p.GPUBusy != 0.2 || p.OnGPU {
		t.Errorf("%+v", p)
	}
	for part, v := range want {
		if !near(p.Shares[part], v) {
			t.Errorf("%s is %v, want %v", part, p.Shares[part], v)
		}
	}
	causes := diagnose.Diagnose(diagnose.Input{Profiles: list}).Causes
	if len(causes) != 2 || causes[0].Class != "data_loading" || causes[1].Class != "checkpointing" {
		t.Errorf("%+v", causes)
	}
}

// Reading a file leaves no other file beside it, and the file as it is.
func TestRead_WritesNothing(t *testing.T) {
	d := newDB(t, tables)
	d.kernel(0, 100, 0, "gemm")
	_ = d.db.Close()
	dir := filepath.Dir(d.path)
	before, err := os.ReadFile(d.path)
	must.Do(t, err)
	for _, mode := range []os.FileMode{0o500, 0o700} {
		must.Do(t, os.Chmod(dir, mode))
		if list := d.mustRead(); len(list) != 1 {
			t.Errorf("%+v", list)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
	if after, err := os.ReadFile(d.path); err != nil || !bytes.Equal(after, before) {
		t.Error("the file has changed")
	}
	must.Do(t, os.WriteFile(d.path+"-wal", []byte("x"), 0o600))
	if _, err := d.read(); err == nil || !strings.Contains(err.Error(), "-wal") {
		t.Errorf("a file with a log beside it: %v", err)
	}
}

// many returns the schema of many tables.
func many(n int) (text string) {
	for i := range n {
		text += fmt.Sprintf("CREATE TABLE t%d (x);", i)
	}
	return text
}

// A database of another tool, a hostile one and a damaged one are refused with the file's name and a fix.
func TestRead_RefusesWhatNsightDoesNotWrite(t *testing.T) {
	kernel := strings.Split(tables, ";")[1]
	for name, x := range map[string]struct{ schema, want string }{
		"empty":           {"CREATE TABLE x (y); DROP TABLE x", "another tool (its tables: none)"},
		"another tool":    {"CREATE TABLE orders (id); CREATE TABLE people (id)", "another tool (its tables: orders, people)"},
		"names only":      {"CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)", "another tool"},
		"no rows":         {tables, "neither GPU work"},
		"missing columns": {"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (begin, finish); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2)", "neither GPU work"},
		"words as times":  {kernel + "; INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ('a', 'b', 0, 0, 0, 0, 0, 0, 0, 0)", "1 rows are not those"},
		"backwards":       {kernel + "; INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (9, 3, 0, 0, 0, 0, 0, 0, 0, 0)", "1 rows are not those"},
		"far future":      {kernel + "; INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (9, 9223372036854775807, 0, 0, 0, 0, 0, 0, 0, 0)", "1 rows are not those"},
		"a view without end": {"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) " +
			"SELECT i AS start, i AS end, 0 AS deviceId, 1 AS demangledName FROM n", "another tool"},
		"a long name": {tables + "; INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 0, 0, 0, 0, 1, 1, 0);" +
			"INSERT INTO StringIds VALUES (1, CAST(zeroblob(3000000) AS TEXT))", "does not write"},
		"many tables": {many(1001), "more than 1000 tables"},
	} {
		list, err := newDB(t, x.schema).read()
		if err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), "a report #1?.sqlite") ||
			!strings.Contains(err.Error(), "nsys export") {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
	}
}

// A file that was cut or damaged anywhere is read or refused, and never read without end.
func TestRead_OfDamagedFiles(t *testing.T) {
	d := newDB(t, tables)
	d.do("BEGIN")
	for i := range int64(2000) {
		d.kernel(10*i, 10*i+5, int(i%2), fmt.Sprintf("kernel %d", i%300))
		d.ranged(10*i, 10*i+9, 1<<24+1, "dataloader", nil)
	}
	d.do("COMMIT")
	d.mustRead()
	good, err := os.ReadFile(d.path)
	must.Do(t, err)
	rng := rand.New(rand.NewPCG(3, 4))
	refused := 0
	for range lane.Pick(300, 5000) {
		bad := slices.Clone(good)
		switch rng.IntN(3) {
		case 0:
			bad = bad[:16+rng.IntN(len(bad)-16)]
		case 1: // whole pages, so that trees loop
			from, to := rng.IntN(len(bad)/4096), 1+rng.IntN(len(bad)/4096-1)
			copy(bad[4096*to:4096*(to+1)], bad[4096*from:4096*(from+1)])
		default:
			for range 1 + rng.IntN(50) {
				bad[16+rng.IntN(len(bad)-16)] = byte(rng.Uint32())
			}
		}
		must.Do(t, os.WriteFile(d.path, bad, 0o600))
		list, err := nsight.Read(t.Context(), d.path)
		if err != nil {
			refused++
			if !strings.Contains(err.Error(), d.path) {
				t.Errorf("the error names no file: %v", err)
			}
		}
		for _, p := range list {
			if err := p.Check(); err != nil {
				t.Errorf("%v: %+v", err, p)
			}
		}
	}
	if refused == 0 {
		t.Error("no damaged file was refused")
	}
}

// A file with many rows, names and ranges is read in bounded memory.
func TestRead_TakesBoundedMemory(t *testing.T) {
	rows := lane.Pick(60_000, 8_000_000)
	d := newDB(t, tables)
	d.do("PRAGMA journal_mode = off")
	d.do("PRAGMA synchronous = off")
	d.do(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO StringIds SELECT i, 'kernel with quite a long name, template<int, float, ' || i || '>' FROM n`, rows/4)
	d.do(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL
		SELECT 1000 * i, 1000 * i + 700, i % 8, 1, 7, i, 1, 1 + i % ?, 1, 1 FROM n`, rows, rows/4)
	d.do(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO NVTX_EVENTS
		SELECT 1000 * i, 1000 * i + 500, 59, 'DataLoader ' || i, NULL, 16777217, 0 FROM n`, rows/2)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	list := d.mustRead()
	runtime.ReadMemStats(&after)
	info, err := os.Stat(d.path)
	must.Do(t, err)
	if most := after.HeapSys - before.HeapSys; after.HeapSys > before.HeapSys && most > 400<<20 {
		t.Errorf("reading %d MiB took %d MiB", info.Size()>>20, most>>20)
	}
	if !near(*list[0].GPUBusy, 0.7/8*float64(rows)/(float64(rows)-0.3)) {
		t.Errorf("%+v", list)
	}
	t.Logf("%d MiB, %d rows: the heap grew by %d MiB", info.Size()>>20, rows, int64(after.HeapSys-before.HeapSys)>>20)
}
