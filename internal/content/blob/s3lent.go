//go:build !local

package blob

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	"gocloud.dev/blob"

	"scrimp/internal/content/blob/scopedcreds"
	"scrimp/internal/lib/awshttp"
)

// The client renews lent credentials renewBefore they expire: longer than the upload of a part takes and a server
// restart lasts. If the renewal fails, the old ones are used while they are valid, and the lender is asked again
// every askAgain.
const (
	renewBefore = 5 * time.Minute
	askAgain    = 5 * time.Second
)

// openLentS3 opens a bucket with credentials for a prefix of it.
func openLentS3(ctx context.Context, bucket string, query url.Values, loan Loan) (*blob.Bucket, error) {
	lender, credentials := lentBy(loan.Fetch)
	if _, err := credentials.Retrieve(ctx); err != nil {
		return nil, fmt.Errorf("S3 bucket %s: the server lends no credentials: %w", bucket, err)
	}
	config, r, err := s3Config(ctx, bucket, query, lender.region())
	if err != nil {
		return nil, err
	}
	r.keys = "let the role of job_role, which the server has assumed for this, use the bucket"
	config.Credentials, config.HTTPClient = credentials, awshttp.Over(config.HTTPClient)
	b, err := s3Bucket(ctx, config, bucket, query, func(o *s3.Options) {
		o.DisableLogOutputChecksumValidationSkipped = true // of multipart blobs, whose readers check their hash
		o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
			return s.Initialize.Add(missingResolver{s3.NewFromConfig(config, pathStyle(query))}, middleware.Before)
		})
	})
	if err != nil {
		return nil, err
	}
	return r.reach(ctx, b, loan.Prefix+"/")
}

// lentBy caches lent credentials until their renewal.
func lentBy(fetch func(context.Context) (scopedcreds.Credentials, error)) (*lender, *aws.CredentialsCache) {
	l := &lender{fetch: fetch}
	return l, aws.NewCredentialsCache(l, func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = renewBefore })
}

// lender provides lent credentials to the SDK.
type lender struct {
	fetch func(context.Context) (scopedcreds.Credentials, error)

	mu   sync.Mutex
	last scopedcreds.Credentials
	next time.Time // when to ask again after a failure
}

func (l *lender) region() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last.Region
}

// Retrieve implements aws.CredentialsProvider.
func (l *lender) Retrieve(ctx context.Context) (aws.Credentials, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	good := time.Until(l.last.Expires) > askAgain
	if !good || !time.Now().Before(l.next) {
		c, err := l.fetch(ctx)
		switch {
		case err == nil:
			l.last, l.next = c, time.Time{}
		case !good:
			return aws.Credentials{}, err
		default:
			l.next = time.Now().Add(askAgain)
		}
	}
	c := l.last
	return aws.Credentials{AccessKeyID: c.Key, SecretAccessKey: c.Secret, SessionToken: c.Token, CanExpire: true,
		Expires: c.Expires, Source: "scrimp server"}, nil
}

// missingResolver tells a missing blob from a denied one. S3 answers 403 for both if the caller may not list the bucket
// without a prefix, as in the job's policy. A list of the key's prefix is allowed and decides. Source:
// docs.aws.amazon.com, Amazon S3 API reference, GetObject and HeadObject, "Permissions", 2026-11.
type missingResolver struct{ client *s3.Client }

// ID implements middleware.InitializeMiddleware.
func (missingResolver) ID() string { return "ToldMissing" }

// HandleInitialize implements middleware.InitializeMiddleware.
func (t missingResolver) HandleInitialize(ctx context.Context, in middleware.InitializeInput,
	next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	out, meta, err := next.HandleInitialize(ctx, in)
	var status interface{ HTTPStatusCode() int }
	if err == nil || !errors.As(err, &status) || status.HTTPStatusCode() != http.StatusForbidden {
		return out, meta, err
	}
	var bucket, key *string
	switch of := in.Parameters.(type) {
	case *s3.GetObjectInput:
		bucket, key = of.Bucket, of.Key
	case *s3.HeadObjectInput:
		bucket, key = of.Bucket, of.Key
	default:
		return out, meta, err
	}
	page, lerr := t.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: bucket, Prefix: key, MaxKeys: aws.Int32(1)})
	if lerr == nil && (len(page.Contents) == 0 || aws.ToString(page.Contents[0].Key) != aws.ToString(key)) {
		err = &types.NoSuchKey{Message: aws.String("the list of its prefix has no such key")}
	}
	return out, meta, err
}
