//go:build !local

package datacache

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/test/blobtest"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/lane"
)

// put writes an object of the test's bucket.
func put(t *testing.T, address, key, text string) {
	t.Helper()
	b, err := OpenSource(t.Context(), address, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	if err := b.(*bucket).WriteAll(t.Context(), key, []byte(text), nil); err != nil {
		t.Fatal(err)
	}
}

// A prefix of a bucket is brought by content: the second time nothing is read but the list, and a changed object is
// read again.
func TestBring_PrefixOfBucket(t *testing.T) {
	lane.Component(t, "objects")
	address, _ := blobtest.S3(t)
	host, query, _ := strings.Cut(address, "?")
	at := host + "/corpus?" + query
	want := map[string]string{"a": "alpha", "sub/b": strings.Repeat("b", 100_000)}
	for name, text := range want {
		put(t, address, "corpus/"+name, text)
	}
	put(t, address, "corpus2", "another")
	dir := fast.Dir(t)
	c := opened(t, dir+"/cache", "boot", ample)
	bring := func(address, to string) (Read, error) {
		src, err := OpenSource(t.Context(), address, "")
		if err != nil {
			return Read{}, err
		}
		defer func() { _ = src.Close() }()
		r, _, err := c.Bring(t.Context(), src, nil, filepath.Join(dir, to))
		return r, err
	}
	if r, err := bring(at, "1"); err != nil || r.Fetched != 100_005 || r.Requests != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	holds(t, dir+"/1", want)
	if r, err := bring(at, "2"); err != nil || r.Fetched != 0 || r.HitBytes != 100_005 || r.Requests != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	want["a"] = "omega"
	put(t, address, "corpus/a", want["a"])
	if r, err := bring(at, "3"); err != nil || r.Fetched != 5 {
		t.Errorf("%+v, %v", r, err)
	}
	holds(t, dir+"/3", want)
	if _, err := bring(host+"/corpus2?"+query, "4"); err != nil {
		t.Error(err)
	}
	holds(t, dir+"/4", map[string]string{"corpus2": "another"})
	if r, err := bring(host+"/nothing?"+query, "5"); !errors.Is(err, ErrInput) {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := os.Stat(dir + "/5"); err == nil {
		t.Error("a folder for an input that is not there")
	}
}

// A bucket that does not exist is missing on every machine; one that denies access, or does not answer, may be open to
// another machine.
func TestOpenSource_MissingBucketIsNoInput(t *testing.T) {
	lane.Component(t, "whole")
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	for status, missing := range map[int]bool{http.StatusNotFound: true, http.StatusForbidden: false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		_, err := OpenSource(t.Context(), "s3://b/c?region=r&endpoint="+server.URL, "")
		server.Close()
		if err == nil || errors.Is(err, ErrInput) != missing {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// An object that another one replaces after the list was made is not taken for the listed one.
func TestOpen_ObjectIsTheListedOne(t *testing.T) {
	lane.Component(t, "objects")
	address, _ := blobtest.S3(t)
	put(t, address, "x", "first")
	src, err := OpenSource(t.Context(), address, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = src.Close() }()
	list, err := src.List(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	put(t, address, "x", "other")
	if r, err := src.Open(t.Context(), list[0], 0); !errors.Is(err, ErrChanged) {
		t.Errorf("%v, %v", r, err)
	}
}
