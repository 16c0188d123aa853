package exports

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocloud "gocloud.dev/blob"

	"scrimp/client"
	"scrimp/internal/content/blob/folderblob"
	"scrimp/internal/engine"
	"scrimp/internal/server/bills"
	"scrimp/internal/server/disk"
	"scrimp/internal/test/blobtest"
	"scrimp/internal/test/must"
)

// metas is a store of values in memory.
type metas struct {
	mu  sync.Mutex
	all map[string]string
}

func (m *metas) PutMeta(_ context.Context, key, value string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[key] = value
	return nil
}

func (m *metas) Meta(_ context.Context, key string) (string, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.all[key]
	return v, ok, nil
}

// rig is a server's fetcher and service, and a bucket.
type rig struct {
	*Fetcher
	t       *testing.T
	bucket  string // folder
	now     time.Time
	pauses  []time.Duration
	before  func(blobtest.Op) error
	reads   []string // keys
	service *bills.Service
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return rigOf(t, t.TempDir())
}

// rigOf returns a server that reads a bucket.
func rigOf(t *testing.T, bucket string) *rig {
	t.Helper()
	room := func() (disk.Left, bool) { return disk.Left{}, false }
	r := &rig{t: t, bucket: bucket, now: time.Date(2026, 11, 3, 10, 0, 0, 0, time.UTC)}
	m := &metas{all: map[string]string{}}
	dir := t.TempDir()
	r.service = &bills.Service{Meta: m, Dir: dir, Room: room}
	r.Fetcher = New(&Fetcher{Bills: r.service, Meta: m, Dir: dir, Room: room, Log: slog.New(slog.DiscardHandler)}, nil)
	r.service.Exports = r.List
	r.Sources = []Source{{"aws", engine.Export{Bucket: "my-exports", Prefix: "cur", Every: 24 * time.Hour}}}
	r.Now = func() time.Time { return r.now }
	r.Pause = func(ctx context.Context, d time.Duration) error {
		r.pauses = append(r.pauses, d)
		return ctx.Err()
	}
	r.Open = func(context.Context, engine.Export) (*gocloud.Bucket, error) {
		d, err := folderblob.New(bucket)
		if err != nil {
			return nil, err
		}
		return gocloud.NewBucket(blobtest.Watch(d, func(op blobtest.Op) error {
			if op.Kind == "read" {
				r.reads = append(r.reads, op.Key)
			}
			if r.before != nil {
				return r.before(op)
			}
			return nil
		}, nil)), nil
	}
	return r
}

// cur is a file of CUR 2.0 with a line for each cost, in gzip.
func cur(month string, costs ...string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = fmt.Fprintln(z, "bill_billing_period_start_date,line_item_currency_code,line_item_line_item_type,"+
		"line_item_product_code,line_item_usage_account_id,line_item_usage_start_date,line_item_usage_end_date,"+
		"line_item_unblended_cost,line_item_usage_type,line_item_resource_id")
	for n, cost := range costs {
		_, _ = fmt.Fprintf(z, "%s-01T00:00:00.000Z,USD,Usage,AmazonEC2,42,%s-05T%02d:00:00.000Z,%s-05T%02d:00:00.000Z,%s,"+
			"BoxUsage:c7i.large,i-%d\n", month, month, n%20, month, n%20+1, cost, n)
	}
	_ = z.Close()
	return b.Bytes()
}

// put writes an object, with a time later than any before.
func (r *rig) put(key string, b []byte) {
	r.t.Helper()
	path := filepath.Join(r.bucket, filepath.FromSlash(key))
	must.Do(r.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(r.t, os.WriteFile(path, b, 0o600))
	r.now = r.now.Add(time.Minute)
	must.Do(r.t, os.Chtimes(path, r.now, r.now))
}

const data, meta = "cur/daily/data/BILLING_PERIOD=", "cur/daily/metadata/BILLING_PERIOD="

// export delivers a month as AWS does: the files, then the manifest.
func (r *rig) export(month string, files ...[]byte) {
	r.t.Helper()
	var m struct {
		Files []string `json:"dataFiles"`
	}
	for n, b := range files {
		key := fmt.Sprintf("%s%s/daily-%05d.csv.gz", data, month, n+1)
		r.put(key, b)
		m.Files = append(m.Files, "s3://my-exports/"+key)
	}
	text, err := json.Marshal(m)
	must.Do(r.t, err)
	r.put(meta+month+"/daily-Manifest.json", text)
}

func (r *rig) fetch() client.BillExport {
	r.t.Helper()
	r.reads = nil
	v, err := r.Fetch(r.t.Context(), "aws", "ann")
	must.Do(r.t, err)
	if left, _ := filepath.Glob(filepath.Join(bills.Folder(r.Dir), ".*")); len(left) > 0 {
		r.t.Errorf("left behind: %v", left)
	}
	return v
}

// kept lists the kept bills: month, lines and total.
func (r *rig) kept() (list []string) {
	r.t.Helper()
	text, _, err := r.Meta.Meta(r.t.Context(), "bills")
	must.Do(r.t, err)
	var v client.Bills
	if text != "" {
		must.Do(r.t, json.Unmarshal([]byte(text), &v))
	}
	for _, b := range v.Bills {
		list = append(list, fmt.Sprintf("%s %d %s %s", b.Month, b.Lines, b.Totals[0].Amount, b.By))
	}
	return list
}

func (r *rig) wants(list ...string) {
	r.t.Helper()
	if got := r.kept(); !slices.Equal(got, list) {
		r.t.Errorf("kept are %q, want %q", got, list)
	}
}

func TestFetch_ImportsWhatIsNewOrChanged(t *testing.T) {
	r := newRig(t)
	r.export("2026-09", cur("2026-09", "1.25"))
	r.export("2026-10", cur("2026-10", "2.5", "0.000000001"), cur("2026-10", "3"), cur("2026-10"))
	v := r.fetch()
	r.wants("2026-10 3 5.500000001 ann", "2026-09 1 1.25 ann")
	if v.Error != "" || len(v.Periods) != 2 || v.Periods[0].Parts != 3 || v.Periods[0].Problem != "" || v.From != "s3://my-exports/cur" ||
		!v.Next.Equal(v.Tried.Add(24*time.Hour)) {
		t.Errorf("%+v", v)
	}
	imported := v.Periods[0].Imported
	v = r.fetch()
	if len(r.reads) != 2 || v.Periods[0].Imported != imported { // the manifests
		t.Errorf("unchanged files were read again: %v", r.reads)
	}
	r.export("2026-10", cur("2026-10", "2"), cur("2026-10", "3"))
	r.export("2026-11", cur("2026-11", "7"))
	v = r.fetch()
	r.wants("2026-11 1 7 ann", "2026-10 2 5 ann", "2026-09 1 1.25 ann")
	if len(v.Periods) != 3 || !v.Periods[1].Imported.After(imported) {
		t.Errorf("%+v", v)
	}
	// A server that has forgotten what it fetched imports the same again, which changes nothing.
	before, _, _ := r.Meta.Meta(t.Context(), "bills")
	must.Do(t, r.Meta.PutMeta(t.Context(), stateMeta, "{}"))
	r.fetch()
	if after, _, _ := r.Meta.Meta(t.Context(), "bills"); after != before {
		t.Errorf("from\n%s\nto\n%s", before, after)
	}
}

// scrimp imports a whole month or nothing of it, and its error names the file.
func TestFetch_KeepsTheBillWhenAPartIsUnreadable(t *testing.T) {
	good := cur("2026-10", "2", "3")
	part := data + "2026-10/daily-00002.csv.gz"
	for name, c := range map[string]struct {
		spoil func(r *rig)
		key   string
		says  string
	}{
		"torn":    {func(r *rig) { r.export("2026-10", good, good[:len(good)-12]) }, part, "it ends early"},
		"no bill": {func(r *rig) { r.export("2026-10", good, []byte("a,b\n1,2\n")) }, part, "is no bill"},
		"binary":  {func(r *rig) { r.export("2026-10", good, []byte{0, 1, 2, 0xff}) }, part, "not text"},
		"gone": {func(r *rig) {
			r.export("2026-10", good, good)
			_ = os.Remove(filepath.Join(r.bucket, part))
		}, part, "the bucket has no such file"},
		"torn manifest": {func(r *rig) { r.put(meta+"2026-10/daily-Manifest.json", []byte(`{"dataFiles":["s3`)) },
			meta + "2026-10/daily-Manifest.json", "not a manifest"},
		"another bucket": {func(r *rig) {
			r.put(meta+"2026-10/daily-Manifest.json", []byte(`{"dataFiles":["s3://other/cur/x.csv.gz"]}`))
		}, meta + "2026-10/daily-Manifest.json", "not in the bucket my-exports"},
		"outside": {func(r *rig) {
			r.put("secret.csv.gz", good)
			r.put(meta+"2026-10/daily-Manifest.json", []byte(`{"dataFiles":["s3://my-exports/secret.csv.gz"]}`))
		}, "secret.csv.gz", "the bucket has no such file"},
		"two exports": {func(r *rig) { r.put("cur/focus/data/BILLING_PERIOD=2026-10/f-00001.csv.gz", good) }, "",
			"write the prefix of one"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.export("2026-09", cur("2026-09", "1"))
			r.export("2026-10", cur("2026-10", "9"))
			r.fetch()
			c.spoil(r)
			v := r.fetch()
			r.wants("2026-10 1 9 ann", "2026-09 1 1 ann")
			for _, p := range v.Periods {
				if p.Month == "2026-10" && (p.Key != c.key || !strings.Contains(p.Problem, c.says)) || p.Month == "2026-09" && p.Problem != "" {
					t.Errorf("%+v", p)
				}
			}
			_ = os.RemoveAll(filepath.Join(r.bucket, "cur/focus"))
			r.export("2026-10", cur("2026-10", "4"), cur("2026-10", "5"))
			if v := r.fetch(); v.Periods[0].Problem != "" || v.Periods[0].Key != "" {
				t.Errorf("%+v", v)
			}
			r.wants("2026-10 2 9 ann", "2026-09 1 1 ann")
		})
	}
}

// A row that cannot be read is kept and counted, as scrimp bill import does.
func TestFetch_CountsUnreadRows(t *testing.T) {
	r := newRig(t)
	r.export("2026-10", cur("2026-10", "2", "abc", "3"))
	if v := r.fetch(); v.Periods[0].Unread != 1 || v.Periods[0].Problem != "" {
		t.Errorf("%+v", v)
	}
	r.wants("2026-10 2 5 ann")
}

func TestFetch_TriesAgainWhenAConnectionIsCut(t *testing.T) {
	r := newRig(t)
	r.export("2026-10", cur("2026-10", "2"))
	cut := map[string]int{}
	r.before = func(op blobtest.Op) error {
		if cut[op.Kind+op.Key]++; cut[op.Kind+op.Key] < 3 {
			return io.ErrUnexpectedEOF
		}
		return nil
	}
	if v := r.fetch(); v.Error != "" || v.Periods[0].Problem != "" {
		t.Errorf("%+v", v)
	}
	r.wants("2026-10 1 2 ann")
	if len(r.pauses) != 6 { // two before each of list, manifest and file
		t.Errorf("%v", r.pauses)
	}
}

// A bucket that does not answer is looked at again sooner than on schedule, and the kept bills stay.
func TestFetch_SaysThatABucketHasVanished(t *testing.T) {
	r := newRig(t)
	r.export("2026-10", cur("2026-10", "2"))
	r.fetch()
	gone := errors.New("NoSuchBucket")
	open := r.Open
	r.Open = func(context.Context, engine.Export) (*gocloud.Bucket, error) { return nil, gone }
	var waits []time.Duration
	for range 9 {
		v := r.fetch()
		if !strings.Contains(v.Error, "NoSuchBucket") || v.Fetched.Equal(v.Tried) && r.now.After(v.Fetched) || len(v.Periods) != 1 {
			t.Errorf("%+v", v)
		}
		waits = append(waits, v.Next.Sub(v.Tried))
		r.now = v.Next
	}
	if waits[0] != 15*time.Minute || waits[1] != 30*time.Minute || waits[8] != 24*time.Hour {
		t.Errorf("%v", waits)
	}
	r.wants("2026-10 1 2 ann")
	r.Open = open
	if v := r.fetch(); v.Error != "" || v.Next.Sub(v.Tried) != 24*time.Hour || !v.Fetched.Equal(v.Tried) {
		t.Errorf("%+v", v)
	}
	must.Do(t, os.RemoveAll(filepath.Join(r.bucket, "cur")))
	if v := r.fetch(); !strings.Contains(v.Error, "has no export of a bill") {
		t.Errorf("%+v", v)
	}
	r.wants("2026-10 1 2 ann")
}

// A file that AWS replaces between the list and the read is not mixed with the others.
func TestFetch_ImportsNothingOfAFileThatIsReplacedMeanwhile(t *testing.T) {
	r := newRig(t)
	r.export("2026-10", cur("2026-10", "2"), cur("2026-10", "3"))
	done := false
	r.before = func(op blobtest.Op) error {
		if strings.HasSuffix(op.Key, "00002.csv.gz") && !done {
			done = true
			r.put(op.Key, cur("2026-10", "44", "45"))
		}
		return nil
	}
	v := r.fetch()
	if !strings.Contains(v.Periods[0].Problem, "replaced while it was read") || v.Next.Sub(v.Tried) != 15*time.Minute {
		t.Errorf("%+v", v)
	}
	r.wants()
	r.fetch()
	r.wants("2026-10 3 91 ann")
}

// In the mode that creates new files, each version has a folder, and the newest manifest counts.
func TestFetch_TakesTheNewestVersion(t *testing.T) {
	r := newRig(t)
	for n, cost := range []string{"9", "2"} {
		key := fmt.Sprintf("%s2026-10/run-%d/daily-00001.csv.gz", data, 9-n)
		r.put(key, cur("2026-10", cost))
		r.put(fmt.Sprintf("%s2026-10/run-%d/daily-Manifest.json", meta, 9-n), fmt.Appendf(nil, `{"dataFiles":["s3://my-exports/%s"]}`, key))
	}
	r.fetch()
	r.wants("2026-10 1 2 ann")
}

func TestFetch_LeavesAClosedMonth(t *testing.T) {
	r := newRig(t)
	r.export("2026-10", cur("2026-10", "2"))
	r.fetch()
	text, _, _ := r.Meta.Meta(t.Context(), "bills")
	closed := strings.Replace(text, `"closed":null`, `"closed":[{"month":"2026-10","closed":true,"by":"ann"}]`, 1)
	if closed == text {
		t.Fatal(text)
	}
	must.Do(t, r.Meta.PutMeta(t.Context(), "bills", closed))
	if v := r.fetch(); v.Periods[0].Problem != "" { // unchanged
		t.Errorf("%+v", v)
	}
	r.export("2026-10", cur("2026-10", "3"))
	if v := r.fetch(); !strings.Contains(v.Periods[0].Problem, "scrimp bill reopen 2026-10") || len(r.reads) != 1 {
		t.Errorf("%+v, read %v", v, r.reads)
	}
	r.wants("2026-10 1 2 ann")
}

// Two servers that read one bucket keep the same bills, and fetches at once on one server import once.
func TestFetch_TwoAtOnceKeepTheSameBills(t *testing.T) {
	a := newRig(t)
	a.export("2026-10", cur("2026-10", "2"), cur("2026-10", "3"))
	b := rigOf(t, a.bucket)
	var all sync.WaitGroup
	for _, r := range []*rig{a, b} {
		for range 3 {
			all.Go(func() {
				if _, err := r.Fetch(t.Context(), "aws", "ann"); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	for _, r := range []*rig{a, b} {
		r.wants("2026-10 2 5 ann")
		files := slices.DeleteFunc(slices.Clone(r.reads), func(key string) bool { return strings.Contains(key, "metadata") })
		if len(files) != 2 || len(r.reads) != 5 {
			t.Errorf("%v", r.reads)
		}
	}
}

// The schedule fetches when the server starts, then after the export's time, also across restarts.
func TestRun_FetchesOnSchedule(t *testing.T) {
	r := newRig(t)
	r.export("2026-10", cur("2026-10", "2"))
	begin := r.now
	var at []time.Duration
	opens := r.Open
	r.Open = func(ctx context.Context, e engine.Export) (*gocloud.Bucket, error) {
		at = append(at, r.now.Sub(begin))
		return opens(ctx, e)
	}
	run := func(until time.Duration) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r.Pause = func(ctx context.Context, d time.Duration) error {
			if r.now = r.now.Add(d); r.now.Sub(begin) > until {
				cancel()
			}
			return ctx.Err()
		}
		r.Run(ctx)
	}
	run(25 * time.Hour)
	run(71 * time.Hour)
	if want := []time.Duration{0, 24 * time.Hour, 48 * time.Hour}; !slices.Equal(at, want) {
		t.Errorf("fetched at %v, want %v", at, want)
	}
	r.wants("2026-10 1 2 engine aws")
}

func TestFetch_RefusesAnEngineWithoutAnExport(t *testing.T) {
	r := newRig(t)
	if _, err := r.Fetch(t.Context(), "slurm", "ann"); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
}
