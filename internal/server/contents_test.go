package server

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/server/auth"
)

// Equal files of two jobs have equal digests, and a file that a job stores once is listed once.
func TestContents_ListsDigestsOfKeptFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.left(t, "one")
	w.left(t, "two")
	var one, two client.Contents
	w.must("GET", "/v1/jobs/one/contents", nil, &one)
	w.must("GET", "/v1/jobs/two/contents?least=1048576", nil, &two)
	if fmt.Sprint(one) != fmt.Sprint(two) || len(one.Files) != 3 || one.Left != 0 {
		t.Fatalf("%+v\n%+v", one, two)
	}
	for i, want := range []string{"output 2", "checkpoint 2", "checkpoint 1"} {
		kind, digit, _ := strings.Cut(want, " ")
		f := one.Files[i]
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Repeat(digit, 1<<20))))
		if f.Kind != kind || f.Path != "state" || f.Bytes != 1<<20 || f.Digest != sum || f.Store != "" {
			t.Errorf("file %d is %+v, want a %s with the digest %s", i, f, kind, sum)
		}
	}
	var none client.Contents
	w.must("GET", "/v1/jobs/one/contents?least=1048577", nil, &none)
	if none.Files == nil || len(none.Files) != 0 {
		t.Errorf("%+v is listed below the least size", none)
	}
	for _, bad := range []string{"0", "-1", "x", "1e3"} {
		if rec, _ := w.ask("GET", "/v1/jobs/one/contents?least="+bad, auth.OwnerName, nil); rec.Code != http.StatusBadRequest {
			t.Errorf("least=%s is answered with %d", bad, rec.Code)
		}
	}
	if rec, _ := w.ask("GET", "/v1/jobs/none/contents", auth.OwnerName, nil); rec.Code != http.StatusNotFound {
		t.Errorf("an unknown job is answered with %d", rec.Code)
	}
}
