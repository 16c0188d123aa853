package simulation_test

import (
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"scrimp/internal/test/must"
	"scrimp/internal/test/onnxrun"
	"scrimp/internal/work/onnx/forward"
	"scrimp/internal/work/serving/load"
	"scrimp/internal/work/serving/simulation"
)

// A classifierServer answers HTTP requests with a trained classifier of digits, by one worker that takes up to most
// waiting requests as a batch.
type classifierServer struct {
	net     *forward.Net
	input   string
	most    int
	waiting chan chan struct{}
	times   drawn // of the requests in the order in which they were computed
	since   func(time.Time) time.Duration
}

// images are classified for one request, so that it takes some milliseconds.
const images = 256

func newClassifierServer(b *testing.B, most int, since func(time.Time) time.Duration) (*classifierServer, *httptest.Server) {
	m, err := onnxrun.Load(onnxrun.Classifier(7))
	must.Do(b, err)
	net, err := forward.New(m)
	must.Do(b, err)
	c := &classifierServer{net: net, input: net.Inputs()[0], most: most, since: since,
		waiting: make(chan chan struct{}, 10_000)}
	go c.work(b)
	site := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		done := make(chan struct{})
		c.waiting <- done
		<-done
	}))
	b.Cleanup(func() { site.Close(); close(c.waiting) })
	return c, site
}

func (c *classifierServer) work(b *testing.B) {
	x := forward.Value{Dims: []int{images, 64}, V: make([]float32, images*64)}
	for i := range x.V {
		x.V[i] = float32(i%17) / 17
	}
	for first := range c.waiting {
		batch := []chan struct{}{first}
		for more := true; more && len(batch) < c.most; {
			select {
			case next, open := <-c.waiting:
				if more = open; open {
					batch = append(batch, next)
				}
			default:
				more = false
			}
		}
		for range batch {
			begun := time.Now()
			if err := c.net.Run(map[string]forward.Value{c.input: x}, func(string, forward.Value) error { return nil }); err != nil {
				b.Error(err)
			}
			c.times = append(c.times, c.since(begun))
		}
		for _, done := range batch {
			close(done)
		}
	}
}

// ask returns the latency of a request.
func (c *classifierServer) ask(b *testing.B, url string, begun time.Time) time.Duration {
	r, err := http.Post(url, "text/plain", strings.NewReader("x"))
	if err != nil {
		b.Error(err)
		return 0
	}
	_, _ = io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	return c.since(begun)
}

// measured returns the times of batches of 1 to most requests, each as the median of several.
func (c *classifierServer) measured(b *testing.B, url string) load.Measured {
	times := load.Measured{}
	for n := 1; n <= c.most; n++ {
		var list []time.Duration
		for range 40 {
			begun := time.Now()
			one := c.ask(b, url, begun)
			list = append(list, one)
		}
		slices.Sort(list)
		// A batch computes its requests one after another, and has the overhead of HTTP once.
		times = append(times, load.Point{Batch: n, Seconds: float64(n) * list[len(list)/2].Seconds()})
	}
	return times
}

// BenchmarkSimulation_AgainstARealServer replays a trace of arrivals to an HTTP server with one worker that classifies
// images, and simulates the same trace twice: with the time that was measured of single requests before, and with the
// times that the requests took. It reports the measured latency over the simulated one.
func BenchmarkSimulation_AgainstARealServer(b *testing.B) {
	for _, c := range []struct {
		name string
		most int
		load float64
	}{{"fixed", 1, 0.6}, {"batched", 4, 0.6}} {
		b.Run(c.name, func(b *testing.B) {
			server, site := newClassifierServer(b, c.most, time.Since)
			for range 20 {
				server.ask(b, site.URL, time.Now())
			}
			times := server.measured(b, site.URL)
			const requests = 1500
			trace := poisson(rand.New(rand.NewPCG(1, 2)), requests, c.load/times[0].Seconds)
			kind := simulation.Fixed
			if c.most > 1 {
				kind = simulation.Batched
			}
			took := make([]time.Duration, requests)
			before := 0
			for b.Loop() {
				var all sync.WaitGroup
				begun := time.Now()
				before = len(server.times) // nothing runs now
				for i, at := range trace.At {
					time.Sleep(time.Until(begun.Add(at)))
					all.Go(func() { took[i] = server.ask(b, site.URL, begun.Add(at)) })
				}
				all.Wait()
			}
			slices.Sort(took)
			b.ReportMetric(1000*times[0].Seconds, "ms/request")
			for name, service := range map[string]simulation.Service{"planned": times, "recorded": server.times[before:]} {
				said := simulation.NewSimulation(trace, service, 1, nil).Run(simulation.Rule{Kind: kind, Batch: c.most, Min: 1, Max: 1})
				for what, perMille := range map[string]int{"p50/": 500, "p99/": 990} {
					b.ReportMetric(float64(took[requests*perMille/1000])/float64(said.Quantiles[perMille]), what+name)
				}
			}
		})
	}
}
