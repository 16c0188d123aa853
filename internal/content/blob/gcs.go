//go:build !local

package blob

import (
	"context"
	"net/url"
	"time"

	"cloud.google.com/go/storage"
	"github.com/googleapis/gax-go/v2"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/option"
)

// gcsTries bounds the attempts of a call to Google, within 6 s; the SDK alone would retry for ever. The caller
// retries, too.
const gcsTries = 6

// gcsPauses are the pauses between attempts.
var gcsPauses = gax.Backoff{Initial: 200 * time.Millisecond, Max: 5 * time.Second, Multiplier: 2}

// openGCS opens a Google Cloud Storage bucket. Its credential is a token that works for anybody who has it, so an
// endpoint outside Google gets none.
func openGCS(ctx context.Context, bucket string, query url.Values) (*blob.Bucket, error) {
	if bucket == "" {
		return nil, noName("the bucket's name, gs://NAME")
	}
	if err := only(query, "gs://", "endpoint"); err != nil {
		return nil, err
	}
	r := remote{name: "bucket " + bucket + " of Google Cloud Storage", at: "storage.googleapis.com",
		keys: "run gcloud auth application-default login, set GOOGLE_APPLICATION_CREDENTIALS, or give the machine a " +
			"service account"}
	var options []option.ClientOption
	signed := true
	if e := query.Get("endpoint"); e != "" {
		u, err := endpointOf(e)
		if err != nil {
			return nil, err
		}
		r.at, signed = u.Host, within(u, "googleapis.com")
		options = append(options, option.WithEndpoint(u.JoinPath("storage/v1/").String()))
	}
	if signed {
		found, err := google.FindDefaultCredentials(ctx, storage.ScopeReadWrite)
		if err == nil {
			_, err = found.TokenSource.Token()
		}
		if err != nil {
			return nil, r.unsigned(err)
		}
		options = append(options, option.WithTokenSource(found.TokenSource))
	} else {
		options = append(options, option.WithoutAuthentication())
	}
	client, err := storage.NewClient(ctx, options...)
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	// All calls here may be repeated: parts are named by their content, and whoever creates a name reads it back.
	client.SetRetry(storage.WithMaxAttempts(gcsTries), storage.WithPolicy(storage.RetryAlways),
		storage.WithBackoff(gcsPauses))
	b, err := gcsblob.OpenBucket(ctx, nil, bucket, &gcsblob.Options{Client: client})
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	return r.reach(ctx, b, "")
}
