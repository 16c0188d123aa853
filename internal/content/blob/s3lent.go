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

	"scrimp/internal/content/blob/lent"
	"scrimp/internal/lib/awshttp"
)

// Lent credentials are asked for again renewBefore they expire: longer than an upload of a part takes and a server is
// away for its restart. Where they cannot be had the old ones serve as long as they are good, and the lender is asked
// every askAgain.
const (
	renewBefore = 5 * time.Minute
	askAgain    = 5 * time.Second
)

// openLentS3 opens a bucket with credentials that are good for a prefix of it only.
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
		o.DisableLogOutputChecksumValidationSkipped = true // of blobs in parts, which whoever reads them holds to their hash
		o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
			return s.Initialize.Add(toldMissing{s3.NewFromConfig(config, pathStyle(query))}, middleware.Before)
		})
	})
	if err != nil {
		return nil, err
	}
	return r.reach(ctx, b, loan.Prefix+"/")
}

// lentBy keeps what is lent until it is to be renewed.
func lentBy(fetch func(context.Context) (lent.Credentials, error)) (*lender, *aws.CredentialsCache) {
	l := &lender{fetch: fetch}
	return l, aws.NewCredentialsCache(l, func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = renewBefore })
}

// lender is the provider of lent credentials.
type lender struct {
	fetch func(context.Context) (lent.Credentials, error)

	mu   sync.Mutex
	last lent.Credentials
	next time.Time // when it is asked again, after it had none
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

// toldMissing tells a blob that is not there from one that is denied. S3 says 403 of both to whoever may not list the
// bucket without a prefix, as the job's own policy has it; a list of the key's prefix is allowed, and tells.
// Source: docs.aws.amazon.com, Amazon S3 API reference, GetObject and HeadObject, "Permissions", 2026-11.
type toldMissing struct{ client *s3.Client }

// ID implements middleware.InitializeMiddleware.
func (toldMissing) ID() string { return "ToldMissing" }

// HandleInitialize implements middleware.InitializeMiddleware.
func (t toldMissing) HandleInitialize(ctx context.Context, in middleware.InitializeInput,
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
