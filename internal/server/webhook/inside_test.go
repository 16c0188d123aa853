package webhook

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestWhatIsInsideIsNotAnAddressOfTheWorld(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1": true, "127.1.2.3": true, "::1": true, "0.0.0.0": true, "::": true, "10.1.2.3": true, "172.16.0.1": true,
		"192.168.1.1":     true,
		"169.254.169.254": true, "fe80::1": true, "fd00:ec2::254": true, "100.64.0.1": true, "224.0.0.1": true,
		"255.255.255.255":  true,
		"::ffff:127.0.0.1": true, "::ffff:169.254.169.254": true, "64:ff9b::a9fe:a9fe": true, "2002:7f00:1::": true,
		"8.8.8.8": false, "172.32.0.1": false, "100.128.0.1": false, "2606:4700::1111": false, "::ffff:8.8.8.8": false,
	} {
		if got := isInside(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is inside: %t", address, got)
		}
	}
	for address, want := range map[string]bool{
		"http://localhost/x": true, "http://LOCALHOST.:80/": true, "http://a.localhost/": true, "http://[::1]:9/": true,
		"https://169.254.169.254/latest":   true,
		"http://127.0.0.1:80@example.org/": false, "http://example.org@127.0.0.1/": true, "https://example.org/hook": false,
		"http://10.0.0.5:8080/": false, "http://10.0.0.5:8081/": true, "http://hooks.internal/": false,
	} {
		if got := inside(address, []string{"10.0.0.5:8080", "hooks.internal"}); got != want {
			t.Errorf("%s leads inside: %t", address, got)
		}
	}
}

func TestAWebhookOfASharedServerIsNotFollowedInside(t *testing.T) {
	asked := 0
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer hook.Close()
	u, _ := url.Parse(hook.URL)
	byName := "http://localhost:" + u.Port() + "/" // a name, which is looked up where it is dialled

	tell, waits := patient(t)
	tell.client.Transport = outward(nil)
	for _, target := range []string{hook.URL + "/" + token, byName} {
		err := tell.tells(t.Context(), target)
		if !errors.Is(err, ErrRefused) || !errors.Is(err, ErrInside) || !strings.Contains(err.Error(), "--hook-hosts") ||
			strings.Contains(err.Error(), token) {
			t.Errorf("%s is told: %v", target, err)
		}
	}
	if asked > 0 || len(*waits) > 0 {
		t.Errorf("asked %d times, waited %v", asked, *waits)
	}
	for _, hosts := range [][]string{{"127.0.0.1"}, {u.Host}} {
		tell.client.Transport = outward(hosts)
		if err := tell.tells(t.Context(), hook.URL); err != nil {
			t.Errorf("with %v allowed: %v", hosts, err)
		}
	}
	tell.client.Transport = outward([]string{"localhost"})
	if err := tell.tells(t.Context(), byName); err != nil || asked != 3 {
		t.Errorf("a name that is allowed: %v, asked %d times", err, asked)
	}
}
