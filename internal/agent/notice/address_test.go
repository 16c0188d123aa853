package notice

import (
	"net/http"
	"testing"
	"testing/synctest"
)

// Address speaks each cloud's protocol, and ignores a response that is not an address.
func TestAddress_ReadsEveryCloud(t *testing.T) {
	const own = "10.1.2.3"
	answer := func(path, header, value, text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RequestURI() != path || r.Header.Get(header) != value {
				http.NotFound(w, r)
				return
			}
			_, _ = w.Write([]byte(text))
		})
	}
	aws := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
			_, _ = w.Write([]byte("secret"))
		case r.URL.Path == "/latest/meta-data/local-ipv4" && r.Header.Get("X-aws-ec2-metadata-token") == "secret":
			_, _ = w.Write([]byte(own + "\n"))
		default:
			http.NotFound(w, r)
		}
	})
	gce := "/computeMetadata/v1/instance/network-interfaces/0/ip"
	azure := "/metadata/instance/network/interface/0/ipv4/ipAddress/0/privateIpAddress?api-version=2021-02-01&format=text"
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name string
			e    Endpoints
			h    http.Handler
			want string
		}{
			{"aws", Endpoints{AWS: "http://meta/"}, aws, own},
			{"gce", Endpoints{GCE: "meta"}, answer(gce, "Metadata-Flavor", "Google", own), own},
			{"azure", Endpoints{Azure: "http://meta"}, answer(azure, "Metadata", "true", own), own},
			{"a page of a proxy", Endpoints{GCE: "meta"}, answer(gce, "Metadata-Flavor", "Google", "<html>"), ""},
			{"a service that does not know", Endpoints{AWS: "http://meta"}, http.NotFoundHandler(), ""},
			{"none", Endpoints{}, http.NotFoundHandler(), ""},
		} {
			got, err := Address(t.Context(), c.e, &http.Client{Transport: inside{c.h}})
			if got != c.want || err != nil {
				t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
			}
		}
		down := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "away", http.StatusServiceUnavailable) })
		if got, err := Address(t.Context(), Endpoints{AWS: "http://meta"}, &http.Client{Transport: inside{down}}); err == nil {
			t.Errorf("a service that is away says %q, and that it has none", got)
		}
	})
}
