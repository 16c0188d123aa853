//go:build !local

package setting

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"scrimp/internal/content/blob/scopedcreds"
	"scrimp/internal/engine"
	"scrimp/internal/lib/weburl"
)

// Bills is the setting of the bucket to which AWS exports the account's bill.
type Bills struct {
	Bucket   string       `yaml:"bucket"`
	Prefix   string       `yaml:"prefix,omitempty"`   // of the export's keys; empty: the whole bucket
	Region   string       `yaml:"region,omitempty"`   // of the bucket; empty: the engine's
	Endpoint string       `yaml:"endpoint,omitempty"` // of a service other than Amazon's S3; empty: Amazon's
	Every    *engine.Span `yaml:"every,omitempty"`    // nil: 24h
}

// Bounds and default of the time between two looks at the bucket. AWS refreshes an export about three times a day.
const (
	usualEvery = 24 * time.Hour
	leastEvery = time.Hour
	mostEvery  = 30 * 24 * time.Hour
)

// exports parses the setting bills.
func (w *With) exports() error {
	b := w.Bills
	if b == nil {
		return nil
	}
	every := usualEvery
	if b.Every != nil {
		every = time.Duration(*b.Every)
	}
	region := b.Region
	if region == "" {
		region = w.Region
	}
	q := url.Values{}
	for name, v := range map[string]string{"region": region, "endpoint": b.Endpoint, "prefix": b.Prefix} {
		if v != "" {
			q.Set(name, v)
		}
	}
	switch {
	case b.Bucket == "":
		return errors.New("with: bills has no bucket: write the one to which AWS exports the bill, such as " +
			"bills: {bucket: my-exports, prefix: cur/daily}")
	case every < leastEvery || every > mostEvery:
		return fmt.Errorf("with: bills: every is %v: write 1h to 720h", every)
	case !regionName.MatchString(region):
		return fmt.Errorf("with: bills: region is %q: write the bucket's, such as us-east-1", b.Region)
	case b.Endpoint != "" && !isURL(b.Endpoint):
		return errors.New("with: bills: endpoint is not a URL of a service without a user: write a URL such as " +
			"http://127.0.0.1:9000, or leave it out for Amazon's S3")
	}
	s, err := scopedcreds.Declared((&url.URL{Scheme: "s3", Host: b.Bucket, RawQuery: q.Encode()}).String(), region)
	if err != nil {
		return fmt.Errorf("with: bills: bucket is %q with the prefix %q: %w", b.Bucket, b.Prefix, err)
	}
	q.Del("prefix")
	if w.Profile != "" {
		q.Set("profile", w.Profile)
	}
	w.Export = &engine.Export{Address: (&url.URL{Scheme: "s3", Host: s.Bucket, RawQuery: q.Encode()}).String(),
		Bucket: s.Bucket, Prefix: s.Prefix, Every: every}
	return nil
}

// isURL reports whether a text is the URL of a service, without a user.
func isURL(text string) bool {
	u, ok := weburl.Parse(text)
	return ok && u.User == nil
}
