// Package scopedcreds determines the prefix of a bucket that belongs to a job, and holds the credentials for it that a
// server lends to the job's agents.
package scopedcreds

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Credentials work for one prefix of a bucket until they expire. They are secret: printed or logged, they show only
// their expiry.
type Credentials struct {
	Key, Secret, Token string
	Region             string // of the bucket; empty: given by its address or the machine
	Expires            time.Time
}

// ErrDenied says that the role with the rights may not be assumed: an administrator has to change it.
var ErrDenied = errors.New("the role for the store may not be assumed")

// Format implements fmt.Formatter for every verb, so that no secret is printed by accident.
func (c Credentials) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.said()) }

// LogValue implements slog.LogValuer.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.said()) }

// MarshalJSON fails: the wire format is api.StoreCredentials, and nothing else may write credentials.
func (c Credentials) MarshalJSON() ([]byte, error) {
	return nil, errors.New("credentials cannot be marshalled")
}

func (c Credentials) said() string {
	return "credentials until " + c.Expires.UTC().Format(time.RFC3339)
}

// Store is a bucket, or a prefix of it, for which a server lends credentials.
type Store struct {
	Bucket   string
	Prefix   string // without slashes at its ends; empty: the whole bucket
	Region   string
	Endpoint string // of a service other than Amazon's; empty: Amazon's
}

// jobsSegment is the folder with every job's keys, jobs/JOB/. No prefix of a store contains it, so that no job's keys
// are within another's.
const jobsSegment = "jobs"

var (
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	// segment excludes characters that an IAM policy interprets, such as * and ?.
	segment = regexp.MustCompile(`^[A-Za-z0-9._=+@,:-]+$`)
)

// maxPrefix is the longest prefix in bytes. STS accepts session policies of 2,048 characters, which contain the
// prefix twice.
const maxPrefix = 512

// Declared parses the address of a store that an administrator declares. region is its region if the address names
// none.
func Declared(address, region string) (Store, error) {
	s, err := read(address)
	if err != nil {
		return Store{}, err
	}
	if s.Region == "" {
		s.Region = region
	}
	return s, nil
}

func read(address string) (Store, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "s3" || u.User != nil || u.Opaque != "" || u.Fragment != "" ||
		!bucketName.MatchString(u.Host) {
		return Store{}, errors.New("it is not the address of a bucket: write s3://BUCKET?region=NAME&prefix=PREFIX")
	}
	if path := strings.Trim(u.Path, "/"); path != "" {
		return Store{}, fmt.Errorf("a bucket has no path: write s3://%s?prefix=%s", u.Host, path)
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Store{}, errors.New("the part after its ? is not NAME=VALUE&NAME=VALUE")
	}
	for name, values := range q {
		if !slices.Contains([]string{"region", "endpoint", "prefix"}, name) || len(values) != 1 {
			return Store{}, fmt.Errorf("it has %s: use only region, endpoint and prefix, once each", name)
		}
	}
	s := Store{Bucket: u.Host, Prefix: strings.Trim(q.Get("prefix"), "/"), Region: q.Get("region"),
		Endpoint: q.Get("endpoint")}
	return s, s.check()
}

// check validates the prefix.
func (s Store) check() error {
	if s.Prefix == "" {
		return nil
	}
	if len(s.Prefix) > maxPrefix {
		return fmt.Errorf("its prefix has more than %d bytes: shorten it", maxPrefix)
	}
	for part := range strings.SplitSeq(s.Prefix, "/") {
		switch {
		case part == jobsSegment:
			return fmt.Errorf("its prefix has the folder %s, in which scrimp keeps each job's own: write one above it",
				jobsSegment)
		case part == "." || part == ".." || !segment.MatchString(part):
			return fmt.Errorf("its prefix has %q: write letters, digits, and . _ = + @ , : - between single slashes", part)
		}
	}
	return nil
}

// Addresses returns the addresses by which a job file may name the store, with its region and without.
func (s Store) Addresses() []string {
	list := make([]string, 0, 2)
	for _, region := range slices.Compact([]string{s.Region, ""}) {
		q := url.Values{}
		for name, v := range map[string]string{"region": region, "endpoint": s.Endpoint, "prefix": s.Prefix} {
			if v != "" {
				q.Set(name, v)
			}
		}
		list = append(list, (&url.URL{Scheme: "s3", Host: s.Bucket, RawQuery: q.Encode()}).String())
	}
	return list
}

// Of returns the prefix of a job's own keys if the job's store is this one or below it. Whatever the addresses, the
// prefixes of two jobs are never one within the other, and contain nothing that a policy would read as a pattern.
func (s Store) Of(address, job string) (prefix string, ok bool) {
	named, err := read(address)
	if err != nil || !segment.MatchString(job) || job == "." || job == ".." {
		return "", false
	}
	switch {
	case named.Bucket != s.Bucket, named.Endpoint != s.Endpoint, named.Region != "" && named.Region != s.Region:
		return "", false
	case s.Prefix != "" && named.Prefix != s.Prefix && !strings.HasPrefix(named.Prefix, s.Prefix+"/"):
		return "", false
	}
	return strings.TrimPrefix(named.Prefix+"/"+jobsSegment+"/"+job, "/"), true
}
