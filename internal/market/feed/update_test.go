package feed

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"scrimp/internal/market/catalog"
)

// web serves pages by path, and records the requests and the client's waits.
type web struct {
	*httptest.Server
	asked []string
	waits []time.Duration
}

func serve(t *testing.T, answer func(w *web, rw http.ResponseWriter, r *http.Request)) *web {
	w := &web{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.asked = append(w.asked, r.URL.String())
		answer(w, rw, r)
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *web) updater() Updater {
	c := Client{HTTP: w.Client(), Limit: 1 << 20, Tries: 3, Agent: "test",
		Wait: func(_ context.Context, d time.Duration) error {
			w.waits = append(w.waits, d)
			return nil
		}}
	return Updater{Client: c, Endpoints: Endpoints{AWS: w.URL + "/aws", Advisor: w.URL + "/risk",
		Azure: w.URL + "/azure", GCP: w.URL + "/gcp", SkyPilot: w.URL + "/sky"}, Known: catalog.Builtin(),
		GCPKey: "hush", Now: now}
}

func TestUpdate_FollowsPagesOfEverySource(t *testing.T) {
	w := serve(t, func(w *web, rw http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/aws/us-east-1/index.json":
			_, _ = rw.Write(page(t, "aws-prices.json"))
		case r.URL.Path == "/azure" && !r.URL.Query().Has("$skip"):
			if !strings.Contains(r.URL.Query().Get("$filter"), "armRegionName eq 'eastus'") {
				t.Errorf("asked %s", r.URL)
			}
			_,
				_ = rw.Write(bytes.ReplaceAll(page(t, "azure-1.json"),
				[]byte("https://prices.azure.com:443/api/retail/prices"), []byte(w.URL+"/azure")))
		case r.URL.Path == "/azure":
			_, _ = rw.Write(page(t, "azure-2.json"))
		case r.URL.Path == "/gcp" && r.URL.Query().Get("key") == "hush":
			name := "gcp-1.json"
			if r.URL.Query().Get("pageToken") == "APKCS1HVa0Yp==" {
				name = "gcp-2.json"
			}
			_, _ = rw.Write(page(t, name))
		case r.URL.Path == "/sky/lambda/vms.csv":
			_, _ = rw.Write(page(t, "skypilot-lambda.csv"))
		case r.URL.Path == "/risk":
			_, _ = rw.Write(page(t, "aws-advisor.json"))
		default:
			http.NotFound(rw, r)
		}
	})
	for source, want := range map[string]string{
		"aws":             "aws/us-east-1/p5.48xlarge/on-demand",
		"azure":           "azure/eastus/Standard_NC4as_T4_v3/on-demand", // on the second page
		"gcp":             "gcp/us-central1/a2-highgpu-1g/on-demand",
		"skypilot/lambda": "lambda/us-west-3/gpu_8x_h100_sxm5/on-demand",
	} {
		c, err := w.updater().Update(t.Context(), source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		found := false
		for _, l := range c.Listings {
			found = found || string(l.Offer.ID) == want
			if strings.Contains(l.Quote.Source, "hush") || l.Quote.Source == "" {
				t.Errorf("%s: source %q", source, l.Quote.Source)
			}
		}
		if !found {
			t.Errorf("%s: no %s", source, want)
		}
	}
	if _, err := w.updater().Update(t.Context(), "aws-risk"); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"ibm", "skypilot/../x", "skypilot/", ""} {
		if _, err := w.updater().Update(t.Context(), bad); err == nil {
			t.Errorf("%q is a source", bad)
		}
	}
	u := w.updater()
	u.Regions = []string{"westeurope"}
	if _, err := u.Update(t.Context(), "aws"); err == nil || !strings.Contains(err.Error(), "westeurope") {
		t.Errorf("AWS in westeurope: %v", err)
	}
	u.GCPKey = ""
	if _, err := u.Update(t.Context(), "gcp"); err == nil || !strings.Contains(err.Error(), "GOOGLE_API_KEY") {
		t.Errorf("without a key: %v", err)
	}
}

func TestClient_RetriesBusySourceButNotRefusal(t *testing.T) {
	codes := []int{503, 429, 200}
	w := serve(t, func(w *web, rw http.ResponseWriter, _ *http.Request) {
		code := codes[len(w.asked)-1]
		if code == 429 {
			rw.Header().Set("Retry-After", "7")
		}
		rw.WriteHeader(code)
		if code == 200 {
			_, _ = rw.Write(page(t, "skypilot-lambda.csv"))
		}
	})
	if _, err := w.updater().Update(t.Context(), "skypilot/lambda"); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(w.waits); got != "[1s 7s]" {
		t.Errorf("waited %s", got)
	}
	w = serve(t, func(_ *web, rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "no", http.StatusForbidden) })
	if _, err := w.updater().Update(t.Context(), "gcp"); err == nil || strings.Contains(err.Error(), "hush") ||
		len(w.asked) != 1 {
		t.Errorf("refused: %v after %d", err, len(w.asked))
	}
	w = serve(t, func(_ *web, rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "down", http.StatusBadGateway) })
	if _, err := w.updater().Update(t.Context(), "azure"); err == nil || len(w.asked) != 3 {
		t.Errorf("down: %v after %d", err, len(w.asked))
	}
	w.Close()
	if _, err := w.updater().Update(t.Context(), "gcp"); err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("no network: %v", err)
	}
}

func TestUpdate_BoundsPageSizeAndCount(t *testing.T) {
	big := serve(t, func(_ *web, rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Encoding", "gzip") // 4 MiB of blanks compressed to 4 KiB
		z := gzip.NewWriter(rw)
		_, _ = z.Write(bytes.Repeat([]byte(" "), 4<<20))
		_ = z.Close()
	})
	if _, err := big.updater().Update(t.Context(), "azure"); err == nil ||
		!strings.Contains(err.Error(), errTooLarge.Error()) || len(big.asked) != 1 {
		t.Errorf("too large: %v after %d", err, len(big.asked))
	}
	loop := serve(t, func(w *web, rw http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(rw, `{"Items":[],"NextPageLink":"%s/azure?x=1"}`, w.URL)
	})
	if _, err := loop.updater().Update(t.Context(), "azure"); err == nil ||
		!strings.Contains(err.Error(), "do not end") || len(loop.asked) != 2 {
		t.Errorf("a loop: %v after %d", err, len(loop.asked))
	}
	elsewhere := serve(t, func(_ *web, rw http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(rw, `{"Items":[],"NextPageLink":"http://169.254.169.254/latest/meta-data"}`)
	})
	if _, err := elsewhere.updater().Update(t.Context(), "azure"); err == nil || len(elsewhere.asked) != 1 {
		t.Errorf("the next page at another host: %v", err)
	}
	token := serve(t, func(_ *web, rw http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(rw, `{"skus":[],"nextPageToken":"again"}`)
	})
	if _, err := token.updater().Update(t.Context(), "gcp"); err == nil ||
		!strings.Contains(err.Error(), "do not end") || len(token.asked) != 2 {
		t.Errorf("a token twice: %v after %d", err, len(token.asked))
	}
}

func TestUpdate_FollowsLinksOnSameHostOnly(t *testing.T) {
	azure := Public().Azure
	for link, want := range map[string]bool{
		"https://prices.azure.com:443/api/retail/prices?$skip=1000": true, // as Azure writes it
		"https://prices.azure.com/api":                              true,
		"http://prices.azure.com/api":                               false,
		"https://prices.azure.com:8443/api":                         false,
		"https://prices.azure.com.evil.example/api":                 false,
		"//prices.azure.com/api":                                    false,
	} {
		if sameHost(link, azure) != want {
			t.Errorf("%s at the host of %s is not %v", link, azure, want)
		}
	}
}
