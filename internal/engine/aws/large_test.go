//go:build !local && linux

package aws

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/engine/aws/stock"
	"scrimp/internal/lib/size"
	"scrimp/internal/test/awstest/catalog"
	"scrimp/internal/test/enginetest"
	"scrimp/internal/test/must"
)

// The size of a full account: the number of types and zones in all regions of AWS, at three zones per region.
const (
	largeTypes = 1300
	largeZones = 90
)

// largeSite starts a full account in its own process and returns a driver for each region.
func largeSite(t testing.TB) (drivers []*Driver) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), largeCloud+"=yes"), os.Stderr
	in, err := cmd.StdinPipe()
	must.Do(t, err)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	must.Do(t, err)
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	var said []string
	if err := json.NewDecoder(out).Decode(&said); err != nil || len(said) != 3 {
		t.Fatalf("the cloud says %v: %v", said, err)
	}
	setenv(t, map[string]string{"AWS_ACCESS_KEY_ID": said[1], "AWS_SECRET_ACCESS_KEY": said[2], "AWS_SESSION_TOKEN": "",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
		"AWS_PROFILE": "", "AWS_CA_BUNDLE": ""})
	for n := range largeZones / 3 {
		s := engine.Setting{With: engine.WithOf(setting.With{Region: fmt.Sprintf("xx-load-%d", n+1), Endpoint: said[0],
			Types: []string{"*.*"}, Image: "ami-0000000000000a64a"})}
		w, err := setting.Read(&s)
		must.Do(t, err)
		d := newDriver(fmt.Sprintf("aws-%d", n+1), w)
		d.prepare.Server, d.prepare.Build = "http://10.0.0.1:7077", "0123"
		drivers = append(drivers, d)
	}
	return drivers
}

// processor returns the processor time that this process has used.
func processor(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// largeOffers returns the number of offers of a full account on this processor: 187,920 on amd64.
func largeOffers() (n int) {
	types, zones := catalog.Large(largeTypes, largeZones)
	for _, t := range types {
		if stock.ArchOf[ec2types.ArchitectureType(t.Arch)] == runtime.GOARCH {
			n += len(zones) * 2 // spot and on-demand
		}
	}
	return n
}

func heap() size.Bytes {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return size.Bytes(m.HeapAlloc)
}

// readsAll reads the offers of each region and returns their number.
func readsAll(t testing.TB, drivers []*Driver) (n int) {
	t.Helper()
	for _, d := range drivers {
		offers, quotes, err := d.Offers(t.Context())
		if err != nil || len(offers) != len(quotes) {
			t.Fatal(err)
		}
		n += len(offers)
	}
	return n
}

// Reading a full account needs a bounded number of requests, held bytes per offer, and allocations per offer,
// including those of the AWS SDK and of HTTP, on any machine. One region represents all: they are read one after the
// other, and BenchmarkFullAccount reads them all.
func TestFullAccount_TakesLittleMemory(t *testing.T) {
	if testing.Short() || enginetest.Raced {
		t.Skip("skipped: it measures memory, which the race detector multiplies")
	}
	drivers := largeSite(t)[:2]
	_ = readsAll(t, drivers[:1]) // reads the catalogue, and fills the SDK's caches
	d := drivers[1]
	asked := countsRequests(t, d)
	before := heap()
	offers := 0
	all := allocations(func() { offers = readsAll(t, drivers[1:]) })
	held := heap() - before
	if want := largeOffers() * 3 / largeZones; offers != want {
		t.Fatalf("%d offers, want %d", offers, want)
	}
	if len(d.index.Types) != largeTypes || len(d.index.Listed) != largeTypes || len(d.index.Spot) != largeTypes*3 {
		t.Errorf("%d types, %d of them priced on demand, %d spot prices", len(d.index.Types), len(d.index.Listed),
			len(d.index.Spot))
	}
	// Types and prices come by the hundred, offerings and spot prices by the thousand; then subnets, images, and four kinds of disks.
	if want := 2*13 + 2*4 + 6; *asked != want {
		t.Errorf("%d requests, want %d", *asked, want)
	}
	if each := int(held) / offers; each > 400 {
		t.Errorf("%d bytes of each of %d offers are held, want 400", each, offers)
	}
	if each := float64(all) / float64(offers); each > maxAllocations {
		t.Errorf("%.1f allocations of each of %d offers, want %d", each, offers, maxAllocations)
	}
	t.Logf("%d offers: %d bytes and %.1f allocations of each", offers, int(held)/offers, float64(all)/float64(offers))
	runtime.KeepAlive(drivers)
}

// maxAllocations bounds the allocations per offer; the SDK's own decoders need 300.
const maxAllocations = 20

// countsRequests counts a driver's requests to EC2 and the price list from now on.
func countsRequests(t *testing.T, d *Driver) *int {
	t.Helper()
	a, err := d.connected(t.Context())
	must.Do(t, err)
	n := new(int)
	asks, prices := a.EC2.Options(), a.Prices.Options()
	asks.HTTPClient, prices.HTTPClient = counting{asks.HTTPClient, n}, counting{prices.HTTPClient, n}
	a.EC2, a.Prices = ec2.New(asks), pricing.New(prices)
	return n
}

type counting struct {
	of interface {
		Do(*http.Request) (*http.Response, error)
	}
	n *int
}

func (c counting) Do(r *http.Request) (*http.Response, error) {
	*c.n++
	return c.of.Do(r)
}

// played replays network answers from memory, so that only the driver's own time remains.
type played struct {
	of interface {
		Do(*http.Request) (*http.Response, error)
	}
	mu    sync.Mutex
	asked map[string]int // number of requests by content
	said  map[string][]response
}

type response struct {
	header http.Header
	body   []byte
}

func (p *played) Do(r *http.Request) (*http.Response, error) {
	asked, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, _ := url.ParseQuery(string(asked))
	what := r.Host + r.Header.Get("X-Amz-Target") + form.Get("Action") // times and page tokens differ
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.asked[what]
	p.asked[what]++
	if n == len(p.said[what]) {
		if p.of == nil {
			return nil, fmt.Errorf("%s is asked %d times, and was asked %d", what, n+1, n)
		}
		r.Body = io.NopCloser(bytes.NewReader(asked))
		a, err := p.of.Do(r)
		if err != nil || a.StatusCode != http.StatusOK {
			return a, err
		}
		body, err := io.ReadAll(a.Body)
		if err := errors.Join(err, a.Body.Close()); err != nil {
			return nil, err
		}
		p.said[what] = append(p.said[what], response{a.Header, body})
	}
	was := p.said[what][n]
	return &http.Response{StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: was.header,
		Body: io.NopCloser(bytes.NewReader(was.body)), ContentLength: int64(len(was.body)), Request: r}, nil
}

// plays makes a driver replay the recorded answers of another driver of the same region.
func (p *played) plays(t testing.TB, d *Driver) {
	t.Helper()
	a, err := d.connected(t.Context())
	must.Do(t, err)
	asks, prices := a.EC2.Options(), a.Prices.Options()
	p.of, p.asked = asks.HTTPClient, map[string]int{}
	if len(p.said) > 0 {
		p.of = nil
	}
	asks.HTTPClient, prices.HTTPClient = p, p
	a.EC2, a.Prices = ec2.New(asks), pricing.New(prices)
}

// anew returns a driver of the same engine that has read nothing yet.
func anew(d *Driver) *Driver {
	n := newDriver(d.name, d.with)
	n.prepare.Server, n.prepare.Build = d.prepare.Server, d.prepare.Build
	return n
}

// BenchmarkFullAccountBeyondTheNetwork reads a full account from answers in memory: it measures the driver, the AWS
// SDK and the garbage collector. read-s is the wall time of one region after the other, at-once-s that of all regions
// together, as a server reads its engines; cpu-s is the processor time of the former.
func BenchmarkFullAccountBeyondTheNetwork(b *testing.B) {
	for b.Loop() {
		drivers := largeSite(b)
		players := make([]*played, len(drivers))
		fresh := func() (list []*Driver) {
			for i, d := range drivers {
				n := anew(d)
				players[i].plays(b, n)
				list = append(list, n)
			}
			return list
		}
		for i := range players {
			players[i] = &played{said: map[string][]response{}}
		}
		readsAll(b, fresh()) // over the network

		list := fresh()
		runtime.GC()
		at, began := processor(b), time.Now()
		offers := readsAll(b, list)
		b.ReportMetric(time.Since(began).Seconds(), "read-s")
		b.ReportMetric((processor(b) - at).Seconds(), "cpu-s")
		if offers != largeOffers() {
			b.Fatalf("%d offers, want %d", offers, largeOffers())
		}

		list = fresh()
		runtime.GC()
		began = time.Now()
		var reads sync.WaitGroup
		for _, d := range list {
			reads.Go(func() { readsAll(b, []*Driver{d}) })
		}
		reads.Wait()
		b.ReportMetric(time.Since(began).Seconds(), "at-once-s")
	}
}

func allocations(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

// BenchmarkFullAccount reads a full account, region after region, from a cloud in another process. It reports this
// process's processor time from the first connection to the last offer (the driver, the AWS SDK, HTTP and the garbage
// collector), the largest heap, and what is held at the end.
func BenchmarkFullAccount(b *testing.B) {
	for b.Loop() {
		drivers := largeSite(b)
		_ = account.Known()
		before, peak, stop := heap(), uint64(0), make(chan struct{})
		var watch sync.WaitGroup
		watch.Go(func() {
			now := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
			for tick := time.NewTicker(20 * time.Millisecond); ; {
				select {
				case <-stop:
					return
				case <-tick.C:
					metrics.Read(now)
					peak = max(peak, now[0].Value.Uint64())
				}
			}
		})
		at := processor(b)
		offers := readsAll(b, drivers)
		all := processor(b) - at
		close(stop)
		watch.Wait()
		if offers != largeOffers() {
			b.Fatalf("%d offers, want %d", offers, largeOffers())
		}
		b.ReportMetric(float64(offers), "offers")
		b.ReportMetric(all.Seconds(), "cpu-s")
		b.ReportMetric(float64(heap()-before)/float64(size.MiB), "held-MiB")
		b.ReportMetric(float64(peak)/float64(size.MiB), "peak-MiB")
		runtime.KeepAlive(drivers)
	}
}
