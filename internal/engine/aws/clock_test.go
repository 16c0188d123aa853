//go:build !local

package aws

import (
	"strings"
	"testing"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/test/awstest"
	"scrimp/internal/test/must"
)

// A server whose clock is wrong, from its start or later, still works: it signs by AWS's clock, which it reads from
// an answer. A launch refused for its time has rented nothing, and is repeated.
func TestClock_MayBeWrong(t *testing.T) {
	s := newSite(t, awstest.Options{})
	s.Skew(20 * time.Minute)
	d := s.driver()
	offers, _, err := d.Offers(t.Context())
	if err != nil || len(offers) == 0 {
		t.Fatalf("%d offers: %v", len(offers), err)
	}
	q := engine.Request{Key: "one", Offer: "aws/us-east-1a/c7i.xlarge/spot"}
	for _, by := range []time.Duration{20 * time.Minute, -20 * time.Minute, 0} { // of these machines' clocks, too
		s.Skew(by)
		if _, err := d.List(t.Context()); err != nil {
			t.Errorf("off by %v: %v", by, err)
		}
	}
	s.Skew(time.Hour)
	list, err := d.Launch(t.Context(), q)
	if err != nil || len(list) != 1 {
		t.Errorf("%v: %v", list, err)
	}
	if n := len(s.Bill()); n != 2 { // the machine and its disk
		t.Errorf("%d lines of a bill: %v", n, s.Bill())
	}
}

// If AWS reports no usable time, the error says what to do.
func TestClock_IsNamedWhenItStaysWrong(t *testing.T) {
	s := newSite(t, awstest.Options{})
	d := s.driver()
	for _, f := range []awstest.Fault{{Kind: "error", Code: "RequestExpired", Status: 400, Message: "Request has expired."},
		{Kind: "error", Code: "SignatureDoesNotMatch", Status: 403, Message: "Signature expired: 20261101T000000Z is now earlier"}} {
		s.Clear()
		must.Do(t, s.Inject(f))
		if _, err := d.List(t.Context()); err == nil || !strings.Contains(err.Error(), "set this machine's clock") {
			t.Errorf("%s: %v", f.Code, err)
		}
	}
}
