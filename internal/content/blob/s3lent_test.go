//go:build !local

package blob

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"

	"scrimp/internal/content/blob/scopedcreds"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// With a request every second for three hours, each is signed with valid credentials, new ones are requested before
// the old ones expire and no more often, and while nobody lends any, the old ones are used until they expire.
func TestLender_RenewsBeforeExpiry(t *testing.T) {
	lane.Component(t, "whole")
	synctest.Test(t, func(t *testing.T) {
		asked, lends, errAway := 0, true, errors.New("away")
		const good = 15 * time.Minute
		_, cache := lentBy(func(context.Context) (scopedcreds.Credentials, error) {
			asked++
			if !lends {
				return scopedcreds.Credentials{}, errAway
			}
			return scopedcreds.Credentials{Key: fmt.Sprint("K", asked), Secret: "s", Token: "t", Expires: time.Now().Add(good)}, nil
		})
		begin := time.Now()
		for time.Since(begin) < 3*time.Hour {
			c, err := cache.Retrieve(t.Context())
			if err != nil || !time.Now().Before(c.Expires.Add(renewBefore)) {
				t.Fatalf("after %v: %v, %v", time.Since(begin), c.Expires, err)
			}
			time.Sleep(time.Second)
		}
		if want := int(3 * time.Hour / (good - renewBefore)); asked != want {
			t.Errorf("asked %d times, want %d", asked, want)
		}
		c, err := cache.Retrieve(t.Context())
		must.Do(t, err)
		lends, begin = false, time.Now()
		last, before, served := c.AccessKeyID, asked, time.Duration(0)
		for ; time.Since(begin) < good; time.Sleep(time.Second) {
			c, err := cache.Retrieve(t.Context())
			if err != nil {
				if !errors.Is(err, errAway) {
					t.Fatal(err)
				}
				break
			}
			if served = time.Since(begin); c.AccessKeyID != last {
				t.Fatalf("%s, want %s", c.AccessKeyID, last)
			}
		}
		if served < good-renewBefore || served > good {
			t.Errorf("the old ones served %v", served)
		}
		if n := asked - before; n < 2 || n > int(renewBefore/askAgain)+2 {
			t.Errorf("asked %d times while nobody lends", n)
		}
		lends = true
		if c, err = cache.Retrieve(t.Context()); err != nil || c.AccessKeyID == last {
			t.Errorf("%v, %v", c.AccessKeyID, err)
		}
	})
}

// An error with 301 in its text, as in a request id, says nothing about a blob.
func TestMissing_IgnoresOtherS3Errors(t *testing.T) {
	lane.Component(t, "whole")
	for code, missing := range map[string]bool{"SlowDown": false, "AccessDenied": false, "NoSuchBucket": false,
		"NoSuchKey": true, "NotFound": true} {
		err := &smithy.OperationError{ServiceID: "S3", OperationName: "GetObject",
			Err: &smithy.GenericAPIError{Code: code, Message: "RequestID: 0301"}}
		if elsewhere(err) == missing {
			t.Errorf("%s: a word about a blob is %v", code, missing)
		}
	}
	if err := (&smithy.OperationError{Err: &smithy.GenericAPIError{Code: "PreconditionFailed",
		Message: "RequestID: 0301"}}); !Taken(err) || Missing(err) {
		t.Errorf("%v: taken %v, missing %v", err, Taken(err), Missing(err))
	}
	if !elsewhere(&smithy.OperationError{Err: errors.New("status 503: job-301")}) {
		t.Error("no answer is taken for an answer")
	}
	if _, err := OpenLent(t.Context(), "file:///tmp", Loan{}); err == nil || !strings.Contains(err.Error(), "s3://") {
		t.Error(err)
	}
}
