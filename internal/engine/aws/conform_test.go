//go:build !local

package aws

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
	"scrimp/internal/lib/wait"
	"scrimp/internal/test/awstest"
	"scrimp/internal/test/awstest/catalog"
	"scrimp/internal/test/enginetest"
)

// rig is a cloud that interrupts spot machines of one type soon after their start, and has no machines of another
// type.
func (s *site) rig() enginetest.Rig {
	d := &again{Driver: s.driver()}
	ctx := s.Context()
	done := make(chan struct{})
	go func() { // ends with the test
		defer close(done)
		for wait.For(ctx, 200*time.Millisecond) == nil {
			for _, i := range s.Bill() {
				if i.Kind == "instance" && i.Type == "m7i.large" && i.Spot && i.Open {
					_ = s.Interrupt(i.ID, "") // repeated while it waits for its end
				}
			}
		}
	}()
	s.Cleanup(func() { <-done })
	const empty = "aws/us-east-1a/g5.xlarge/on-demand"
	if _, err := d.Launch(ctx, engine.Request{Key: "tries", Offer: empty}); !errors.Is(err, engine.ErrNoCapacity) {
		s.Fatalf("where there is none: %v", err) // EC2 reports this only on request
	}
	return enginetest.Rig{
		Driver: d, Granted: "aws/us-east-1a/c7i.xlarge/on-demand", Empty: empty,
		Fails: "aws/us-east-1b/m7i.large/spot", Consistency: usual.Consistency,
		Beside: []string{"disk", "address"}, Tells: 1100 * time.Millisecond, // EC2 reports whole seconds
		Parts: "", Refusals: []enginetest.Refusal{
			{Offer: "aws/us-east-1a/g5.xlarge/spot", Err: engine.ErrQuota, Scope: "pool", Wait: account.QuotaWait},
		},
		Restart: func(testing.TB) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.Driver = s.driver()
		},
		Foreign: func(t testing.TB) string { return s.foreign(t) },
	}
}

// The driver passes the contract's tests on a cloud that answers as EC2 does, and its documentation page lists the
// cases.
func TestDriver_Conforms(t *testing.T) {
	results := enginetest.Run(t, func(t testing.TB) enginetest.Rig {
		s := newSite(
			t,
			awstest.Options{Spans: awstest.Spans{Notice: time.Second}, Capacity: map[catalog.Pool]int{{Type: "g5.xlarge", Zone: "us-east-1a"}: 0},
				Quotas: map[string]int{"L-3819A6DF": 0}},
		)
		return s.rig()
	})
	enginetest.Page(t, filepath.Join("..", "..", "..", "docs", "engines", "aws.md"), results)
}
