//go:build !local

package aws

import (
	"context"
	"errors"
	"net"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/market"
	"scrimp/internal/test/awstest"
	"scrimp/internal/test/must"
)

// A region that is not enabled or does not exist is named with the fix, and is not confused with wrong credentials.
func TestRegion_IsNamedWhenNotEnabledOrUnknown(t *testing.T) {
	for _, tt := range []struct {
		name, region, secret string
		fault                awstest.Fault
		want, not            []string
	}{
		{"not enabled", "me-south-1", "", awstest.Fault{}, []string{`region is "me-south-1"`, "InvalidClientTokenId",
			"aws account enable-region --region-name me-south-1"}, []string{"renew", "did you mean"}},
		{"a typing error", "us-eats-1", "", awstest.Fault{}, []string{`region is "us-eats-1"`, "did you mean us-east-1?"}, nil},
		{"not subscribed", "us-west-2", "", awstest.Fault{Kind: "error", Code: "OptInRequired", Status: 401,
			Action: "DescribeInstanceTypes"}, []string{`region is "us-west-2"`, "OptInRequired", "enable-region"},
			[]string{"policy"}},
		{"other credentials", "us-west-2", "wrong", awstest.Fault{}, []string{"rejects the credentials", "renew"},
			[]string{"region"}},
		{"other credentials at home", "us-east-1", "wrong", awstest.Fault{}, []string{"rejects the credentials"},
			[]string{"region is"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, awstest.Options{})
			s.with.Region = tt.region
			if tt.secret != "" {
				t.Setenv("AWS_SECRET_ACCESS_KEY", tt.secret)
			}
			if tt.fault.Kind != "" {
				must.Do(t, s.Inject(tt.fault))
			}
			_, _, err := s.driver().Offers(t.Context())
			says(t, err, tt.want, tt.not)
		})
	}
}

// A service that does not support patterns for type names has the same offers: scrimp then selects the types itself.
func TestTypes_AreSelectedLocallyWithoutPatterns(t *testing.T) {
	for _, kinds := range [][]string{{"c7i.*", "m7i.large", "g5.xlarge"}, {"c7i.*"}, {"m7i.large"}} {
		var all [][]market.Offer
		for _, literal := range []bool{false, true} {
			s := newSite(t, awstest.Options{Literal: literal})
			s.with.Types = kinds
			offers, _, err := s.driver().Offers(t.Context())
			must.Do(t, err)
			all = append(all, offers)
		}
		if len(all[0]) == 0 || !reflect.DeepEqual(all[0], all[1]) {
			t.Errorf("%v: %d offers, and %d where patterns are names", kinds, len(all[0]), len(all[1]))
		}
	}
}

func says(t *testing.T, err error, want, not []string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%v: it does not say %q", err, text)
		}
	}
	for _, text := range not {
		if strings.Contains(err.Error(), text) {
			t.Errorf("%v: it says %q", err, text)
		}
	}
}

// names runs a name server that knows the names of one region, or none.
func names(t *testing.T, known string) {
	t.Helper()
	c, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	must.Do(t, err)
	done := make(chan struct{})
	t.Cleanup(func() { _ = c.Close(); <-done })
	go func() {
		defer close(done)
		for b := make([]byte, 512); ; {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = c.WriteTo(named(b[:n], known), from)
		}
	}()
	before := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = before })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", c.LocalAddr().String())
	}}
}

// named answers one question of RFC 1035: 127.0.0.1 for an A record of the known region, and NXDOMAIN for others.
func named(ask []byte, known string) []byte {
	end, name := 12, []string{}
	for ask[end] != 0 {
		name = append(name, string(ask[end+1:end+1+int(ask[end])]))
		end += 1 + int(ask[end])
	}
	kind := ask[end+2]
	out := append([]byte{ask[0], ask[1], 0x81, 0x83, 0, 1, 0, 0, 0, 0, 0, 0}, ask[12:end+5]...)
	if known != "" && strings.HasPrefix(strings.Join(name, "."), "sts."+known+".amazonaws.com") {
		out[3] = 0x80
		if kind == 1 {
			out[7] = 1
			out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 127, 0, 0, 1)
		}
	}
	return out
}

// A name that does not exist is the region's fault only if AWS's other names resolve.
func TestRegion_IsNamedWhenItsNameDoesNotResolve(t *testing.T) {
	for known, want := range map[string]string{"us-east-1": `region is "us-esat-1", which AWS does not have`,
		"": "no such host"} {
		s := newSite(t, awstest.Options{})
		s.with.Endpoint, s.with.Region = "", "us-esat-1"
		setenv(t, map[string]string{"HTTPS_PROXY": "", "https_proxy": ""})
		names(t, known)
		_, err := s.driver().List(t.Context())
		not := []string{"renew"}
		if known == "" {
			not = append(not, "region is")
		}
		says(t, err, []string{want}, not)
	}
}

// A wrong setting that prevents any request to AWS is named by its field, not in the SDK's words.
func TestConnect_NamesTheWrongField(t *testing.T) {
	for name, c := range map[string]struct {
		with func(*setting.With)
		env  map[string]string
		want []string
	}{
		"no such profile": {func(w *setting.With) { w.Profile = "nope" }, nil, []string{`with: profile is "nope"`, "list-profiles"}},
		"nobody answers": {func(w *setting.With) { w.Endpoint = "http://127.0.0.1:1" }, nil,
			[]string{`with: endpoint is "http://127.0.0.1:1"`, "connection refused", "leave endpoint out"}},
		"half a key": {func(*setting.With) {}, map[string]string{"AWS_SECRET_ACCESS_KEY": ""},
			[]string{"AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, awstest.Options{})
			c.with(&s.with)
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			_, _, err := s.driver().Offers(t.Context())
			says(t, err, c.want, []string{"failed to", "exceeded maximum"})
		})
	}
}

// An image of another architecture than the agent's is named as such, and no machine is sold with it.
func TestImage_OfAnotherArchitectureIsNamed(t *testing.T) {
	s := newSite(t, awstest.Options{}) // it has an image of each architecture
	s.with.Types, s.with.Image = []string{"c7i.xlarge", "c7g.xlarge"}, "ami-0000000000000a64b"
	if runtime.GOARCH == "arm64" {
		s.with.Image = "ami-0000000000000a64a"
	}
	for _, f := range s.driver().Examine(t.Context()) {
		if f.Name == "types" && !f.OK {
			says(t, errors.New(f.Text), []string{"with: image is", s.with.Image, runtime.GOARCH, "write one of that architecture"}, nil)
			return
		}
	}
	t.Error("nothing is wrong with it")
}
