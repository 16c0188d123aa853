package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/engine"
	"scrimp/internal/market"
	"scrimp/internal/server/auth"
)

// boxes is firm with machines that are containers. It records requests.
type boxes struct {
	firm
	mu     sync.Mutex
	images map[string]string // by key
}

func (b *boxes) Launch(ctx context.Context, r engine.Request) ([]engine.Instance, error) {
	b.mu.Lock()
	b.images[r.Key] = r.Image
	b.mu.Unlock()
	return b.firm.Launch(ctx, r)
}

func (b *boxes) Offers(ctx context.Context) ([]market.Offer, []market.Quote, error) {
	sale, quotes, err := b.firm.Offers(ctx)
	for n := range sale {
		sale[n].Images = true
	}
	return sale, quotes, err
}

// The image of a job file reaches the engine with the request for its machine, and the market and the machine show
// it; a job without one requests none.
func TestImage_ReachesTheEngine(t *testing.T) {
	t.Parallel()
	sells := &boxes{images: map[string]string{}}
	w := newWorldOf(t, sells, nil)
	w.until(func(m *core.Machine) bool { return len(m.State().Sale()) > 0 })
	want := map[string]string{"boxed": "ghcr.io/lab/train:v3", "bare": "", "other": "a/b"}
	for name, rest := range map[string]string{"boxed": `,"image":"ghcr.io/lab/train:v3"`, "bare": "",
		"other": `,"any_of":[{"image":"a/b","throughput":2}]`} {
		if rec, p := w.ask("POST", "/v1/jobs", auth.OwnerName, costing(name, "", rest)); rec.Code != http.StatusOK {
			t.Fatalf("%s: %d %+v", name, rec.Code, p)
		}
	}
	for _, attempt := range w.booting(3) {
		job, _, _ := strings.Cut(attempt, ".")
		sells.mu.Lock()
		for key, image := range sells.images {
			if strings.Contains(key, attempt) && image != want[job] {
				t.Errorf("%s asks for image %q", key, image)
			}
		}
		if len(sells.images) != 3 {
			t.Errorf("asked for were %v", sells.images)
		}
		sells.mu.Unlock()
	}
	var list []client.Machine
	rec, _ := w.ask("GET", "/v1/machines", auth.OwnerName, "")
	if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil || len(list) != 3 {
		t.Fatalf("%v: %s", err, rec.Body)
	}
	for _, m := range list {
		if m.Image != want[m.Job] {
			t.Errorf("the machine of %s runs %q", m.Job, m.Image)
		}
	}
	var sale client.Market
	rec, _ = w.ask("GET", "/v1/market", auth.OwnerName, "")
	if err := json.Unmarshal(rec.Body.Bytes(), &sale); err != nil || len(sale.Offers) != 1 || !sale.Offers[0].Offer.Images {
		t.Errorf("%v: %s", err, rec.Body)
	}
}

// If no offer runs images, a job with one is refused, with the field and the fix, unless the user accepts a wait; a
// job with an alternative without an image is accepted.
func TestImage_ThatNoOfferRunsIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	w.until(func(m *core.Machine) bool { return len(m.State().Sale()) > 0 })
	boxed := costing("j", "", `,"image":"a/b"`)
	rec, p := w.ask("POST", "/v1/jobs", auth.OwnerName, boxed)
	if rec.Code != http.StatusUnprocessableEntity || p.Field != "image" || !strings.Contains(p.Fix, "leave image out") {
		t.Errorf("%d %+v", rec.Code, p)
	}
	for what, body := range map[string]string{
		"it may wait":      strings.Replace(boxed, "{", `{"accept_wait":true,`, 1),
		"one way has none": costing("k", "", `,"any_of":[{"image":"a/b"}]`),
	} {
		if rec, p := w.ask("POST", "/v1/jobs", auth.OwnerName, body); rec.Code != http.StatusOK {
			t.Errorf("%s: %d %+v", what, rec.Code, p)
		}
	}
	if rec, p := w.ask("POST", "/v1/jobs", auth.OwnerName, costing("l", "", `,"image":"docker:a/b"`)); rec.Code !=
		http.StatusUnprocessableEntity || p.Field != "image" || !strings.Contains(p.Fix, "write a/b") {
		t.Errorf("%d %+v", rec.Code, p)
	}
}

// A job whose model fits no offer is refused, with the memory that it needs, unless the user accepts a wait or the
// job states its own needs.
func TestModel_ThatFitsNoOfferIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	w.until(func(m *core.Machine) bool { return len(m.State().Sale()) > 0 })
	const model = `,"model":{"parameters":7e9,"sequence":2048}`
	large := costing("j", "", model)
	rec, p := w.ask("POST", "/v1/jobs", auth.OwnerName, large)
	if rec.Code != http.StatusUnprocessableEntity || p.Field != "model" || !strings.Contains(p.Title, " GB of memory on one accelerator") ||
		!strings.Contains(p.Fix, "model.sharding") {
		t.Errorf("%d %+v", rec.Code, p)
	}
	for what, body := range map[string]string{
		"it may wait":         strings.Replace(large, "{", `{"accept_wait":true,`, 1),
		"memory is stated":    costing("k", "", model+`,"resources":{"memory":"1GiB+"}`),
		"it is a small one":   costing("l", "", `,"model":{"parameters":1e6,"sequence":16,"layers":2,"hidden":64}`),
		"nobody knows of it":  costing("m", "", `,"model":{"config":"mine.json"}`),
		"another way is open": costing("n", "", model+`,"any_of":[{"name":"small","args":["a"]}]`),
	} {
		if rec, p := w.ask("POST", "/v1/jobs", auth.OwnerName, body); rec.Code != http.StatusOK {
			t.Errorf("%s: %d %+v", what, rec.Code, p)
		}
	}
}
