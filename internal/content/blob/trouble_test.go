//go:build !local

package blob_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"scrimp/internal/content/blob"
	"scrimp/internal/test/lane"
)

// kinds are the object stores: their addresses with an endpoint, an empty listing, and their answers for denied
// access and for a deleted bucket.
var kinds = []struct{ name, address, empty, denied, gone string }{
	{"S3", "s3://b?region=r&endpoint=%s", `<ListBucketResult/>`, `<Error><Code>AccessDenied</Code></Error>`,
		`<Error><Code>NoSuchBucket</Code></Error>`},
	{"GCS", "gs://b?endpoint=%s", `{"kind":"storage#objects"}`, `{"error":{"code":403,"message":"denied"}}`, ""},
	{"Azure", "azblob://b?account=a&endpoint=%s/a", `<?xml version="1.0"?><EnumerationResults><Blobs/></EnumerationResults>`,
		`<Error><Code>AuthorizationFailure</Code></Error>`, `<Error><Code>ContainerNotFound</Code></Error>`},
}

// withKeys sets credentials for signing, for servers that check none.
func withKeys(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
	t.Setenv("AZURE_STORAGE_ACCOUNT", "a")
	t.Setenv("AZURE_STORAGE_KEY", "aHVudGVyMg==")
}

// answering serves a status and a body for everything but listings, which it answers with empty unless that is "".
func answering(t *testing.T, status int, body, empty string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		list := q.Get("list-type") != "" || q.Get("comp") == "list" || strings.HasSuffix(r.URL.Path, "/b/b/o")
		if list && empty != "" {
			_, _ = fmt.Fprint(w, empty)
			return
		}
		if i := strings.Index(body, "<Code>"); i >= 0 {
			w.Header().Set("X-Ms-Error-Code", body[i+6:strings.Index(body, "</Code>")])
		}
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// An error about a bucket contains its name, the cause and the fix, and no secret.
func TestOpen_NamesTheBucketTheCauseAndTheFix(t *testing.T) {
	lane.Component(t, "whole")
	withKeys(t)
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, k := range kinds {
		closed := httptest.NewServer(nil)
		closed.Close()
		for _, c := range []struct {
			endpoint string
			says     []string
		}{
			{answering(t, http.StatusForbidden, k.denied, ""), []string{"access denied", "list, read, write and delete", " b"}},
			{closed.URL, []string{"does not answer", "correct the address", " b"}},
		} {
			wg.Go(func() {
				b, err := blob.Open(t.Context(), fmt.Sprintf(k.address, c.endpoint))
				if b != nil || err == nil {
					t.Errorf("%s: opened %v", k.name, b)
					return
				}
				for _, says := range c.says {
					if !strings.Contains(err.Error(), says) {
						t.Errorf("%s: %v\nwant it to say %q", k.name, err, says)
					}
				}
				if strings.Contains(err.Error(), "hunter2") {
					t.Errorf("%s tells the secret: %v", k.name, err)
				}
			})
		}
	}
}

// Without credentials the error says how to give them, and no request is sent.
func TestOpen_SaysHowToGiveCredentials(t *testing.T) {
	lane.Component(t, "whole")
	t.Setenv("HOME", t.TempDir())
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AZURE_STORAGE_KEY",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", t.TempDir()+"/none.json")
	t.Setenv("AZURE_STORAGE_SAS_TOKEN", "sig=hunter2")
	for address, says := range map[string]string{
		"s3://b?region=r": "set AWS_ACCESS_KEY_ID",
		"gs://b":          "set GOOGLE_APPLICATION_CREDENTIALS",
		"azblob://b?account=a&endpoint=http://[::1]":                          "AZURE_STORAGE_KEY",
		"azblob://b?account=a&endpoint=https://core.windows.net.evil.example": "is not Microsoft's",
	} {
		_, err := blob.Open(t.Context(), address)
		if err == nil || !strings.Contains(err.Error(), "no credentials") || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v; want it to say %q", address, err, says)
		}
	}
}

// A Google token works for anybody who has it, so another provider's endpoint does not get it.
func TestToken_GoesToItsProviderOnly(t *testing.T) {
	lane.Component(t, "whole")
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		_, _ = fmt.Fprint(w, kinds[1].empty)
	}))
	defer server.Close()
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/none")
	b, err := blob.Open(t.Context(), "gs://b?endpoint="+server.URL)
	if err != nil || len(got) == 0 || strings.Join(got, "") != "" {
		t.Fatalf("it was sent %q, %v", got, err)
	}
	_ = b.Close()
}

// A blob is missing only if the store says so, not if access is denied or the bucket or its host has gone: that must
// never make a checkpoint count as damaged.
func TestMissing_IgnoresDeniedAccessAndDeletedBuckets(t *testing.T) {
	lane.Component(t, "whole")
	withKeys(t)
	for _, k := range kinds {
		for _, c := range []struct {
			status  int
			body    string
			missing bool
		}{
			{http.StatusForbidden, k.denied, false},
			{http.StatusNotFound, k.gone, k.gone == ""},
			{http.StatusNotFound, map[string]string{"S3": `<Error><Code>NoSuchKey</Code></Error>`,
				"Azure": `<Error><Code>BlobNotFound</Code></Error>`}[k.name], true},
		} {
			b, err := blob.Open(t.Context(), fmt.Sprintf(k.address, answering(t, c.status, c.body, k.empty)))
			if err != nil {
				t.Errorf("%s: %v", k.name, err)
				continue
			}
			if _, err = b.ReadAll(t.Context(), "k"); err == nil || blob.Missing(err) != c.missing {
				t.Errorf("%s, %d %s: it is missing: %v; %v", k.name, c.status, c.body, blob.Missing(err), err)
			}
			_ = b.Close()
		}
	}
}
