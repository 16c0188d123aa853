//go:build !local

package exports

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	gocloud "gocloud.dev/blob"

	"scrimp/internal/content/blob"
	"scrimp/internal/engine"
	"scrimp/internal/test/blobtest"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// focus is a row of FOCUS as AWS exports it to Parquet.
type focus struct {
	Cost     float64   `parquet:"BilledCost"`
	Currency string    `parquet:"BillingCurrency"`
	Account  string    `parquet:"BillingAccountId"`
	Period   time.Time `parquet:"BillingPeriodStart,timestamp(millisecond)"`
	Start    time.Time `parquet:"ChargePeriodStart,timestamp(millisecond)"`
	End      time.Time `parquet:"ChargePeriodEnd,timestamp(millisecond)"`
	Category string    `parquet:"ChargeCategory"`
	Service  string    `parquet:"ServiceName"`
	Provider string    `parquet:"ProviderName"`
}

// parts is a file of FOCUS in Parquet with a row for each cost.
func parts(t *testing.T, costs ...float64) []byte {
	t.Helper()
	begin := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	var rows []focus
	for n, cost := range costs {
		at := begin.Add(time.Duration(n) * time.Hour)
		rows = append(rows, focus{cost, "USD", "42", begin, at, at.Add(time.Hour), "Usage", "EC2", "AWS"})
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[focus](&b)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	must.Do(t, w.Close())
	return b.Bytes()
}

// realRig is a rig whose bucket is on a real S3 server, behind a proxy that the test can disturb.
type realRig struct {
	*rig
	store *gocloud.Bucket
	cut   atomic.Int32 // files that break off midway
	said  bytes.Buffer
}

func newRealRig(t *testing.T) *realRig {
	t.Helper()
	address, dir := blobtest.S3(t)
	u, err := url.Parse(address)
	must.Do(t, err)
	to, err := url.Parse(u.Query().Get("endpoint"))
	must.Do(t, err)
	r := &realRig{rig: rigOf(t, dir)}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.FlushInterval = -1 // so that the client has the header when the body breaks off
	direct := proxy.Director
	proxy.Director = func(q *http.Request) { host := q.Host; direct(q); q.Host = host } // the host is signed
	proxy.ModifyResponse = func(a *http.Response) error {
		if strings.Contains(a.Request.URL.Path, "/data/") && a.Request.Method == http.MethodGet && r.cut.Add(-1) >= 0 {
			a.Body = http.MaxBytesReader(nil, a.Body, 20)
		}
		return nil
	}
	proxy.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	front := httptest.NewUnstartedServer(proxy)
	front.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	front.Start()
	t.Cleanup(front.Close)
	if r.store, err = blob.Open(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.store.Close() })
	r.Log = slog.New(slog.NewTextHandler(&r.said, nil))
	r.Open = New(&Fetcher{}, nil).Open
	r.Sources[0].Export = engine.Export{Address: "s3://scrimp-test?region=us-east-1&endpoint=" + front.URL, Bucket: "scrimp-test",
		Prefix: "cur", Every: 24 * time.Hour}
	return r
}

// export delivers a month to the real bucket.
func (r *realRig) export(month, suffix string, files ...[]byte) {
	r.t.Helper()
	text := ""
	for n, b := range files {
		key := fmt.Sprintf("%s%s/daily-%05d.%s", data, month, n+1, suffix)
		r.write(key, b)
		text += fmt.Sprintf(`,"s3://scrimp-test/%s"`, key)
	}
	r.write(meta+month+"/daily-Manifest.json", []byte(`{"dataFiles":[`+text[1:]+`]}`))
}

func (r *realRig) write(key string, b []byte) {
	r.t.Helper()
	must.Do(r.t, r.store.WriteAll(r.t.Context(), key, b, nil))
}

// CUR 2.0 in gzip and FOCUS in Parquet arrive from a real S3 server, over connections that break off, and a revision
// of the same size replaces its month.
func TestFetch_FromARealBucket(t *testing.T) {
	lane.Component(t, "objects")
	r := newRealRig(t)
	r.export("2026-09", "csv.gz", cur("2026-09", "1.25", "0.000000001"))
	r.export("2026-10", "snappy.parquet", parts(t, 2.5, 0.125), parts(t, 3))
	r.cut.Store(2)
	v := r.fetch()
	r.wants("2026-10 3 5.625 ann", "2026-09 2 1.250000001 ann")
	if v.Error != "" || v.Periods[0].Problem != "" || v.Periods[0].Parts != 2 || len(r.pauses) != 2 {
		t.Errorf("%+v, after pauses %v", v, r.pauses)
	}
	r.export("2026-10", "snappy.parquet", parts(t, 2.5, 0.125), parts(t, 4))
	r.fetch()
	r.wants("2026-10 3 6.625 ann", "2026-09 2 1.250000001 ann")
	was := r.fetch().Periods[0].Imported
	if again := r.fetch().Periods[0].Imported; !was.Equal(again) {
		t.Errorf("imported again: %v, %v", was, again)
	}
	torn := parts(t, 1, 2, 3)
	r.export("2026-10", "snappy.parquet", parts(t, 7), torn[:len(torn)/2])
	if p := r.fetch().Periods[0]; p.Key != data+"2026-10/daily-00002.snappy.parquet" || p.Problem == "" {
		t.Errorf("%+v", p)
	}
	r.wants("2026-10 3 6.625 ann", "2026-09 2 1.250000001 ann")
	if strings.Contains(r.said.String(), "testsecret") || !strings.Contains(r.said.String(), "daily-00002") {
		t.Error(r.said.String())
	}
}

// If the bucket is missing or refuses access, the error has the fix and no secret, and the imported bills stay.
func TestFetch_SaysWhyARealBucketIsNotRead(t *testing.T) {
	lane.Component(t, "objects")
	r := newRealRig(t)
	r.export("2026-10", "csv.gz", cur("2026-10", "2"))
	r.fetch()
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrongsecret")
	v := r.fetch()
	if !strings.Contains(v.Error, "access denied") || !strings.Contains(v.Error, "list and read") || strings.Contains(v.Error, "secret") {
		t.Errorf("%+v", v)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "testsecret")
	must.Do(t, os.Rename(r.bucket, filepath.Join(filepath.Dir(r.bucket), "elsewhere")))
	if v := r.fetch(); !strings.Contains(v.Error, "does not exist") {
		t.Errorf("%+v", v)
	}
	r.wants("2026-10 1 2 ann")
	if strings.Contains(r.said.String(), "secret") {
		t.Error(r.said.String())
	}
}
