//go:build !local

package blob

import (
	"cmp"
	"context"
	"fmt"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	gcaws "gocloud.dev/aws"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
)

// openS3 opens a bucket that exists. An endpoint of the user's own is addressed
// by path, because a bucket's name before an address such as 127.0.0.1 is no host.
func openS3(ctx context.Context, bucket string, query url.Values) (*blob.Bucket, error) {
	if bucket == "" {
		return nil, noName("the bucket's name, s3://NAME")
	}
	own := query.Get("endpoint") != ""
	if own {
		query.Set("hostname_immutable", "true")
	}
	config, err := gcaws.V2ConfigFromURLParams(ctx, query)
	if err != nil {
		return nil, err
	}
	if config.Region == "" {
		if !own {
			return nil, fmt.Errorf("%w: no region: add ?region=NAME or set AWS_REGION", ErrURL)
		}
		config.Region = "us-east-1" // servers other than Amazon's take any
	}
	r := remote{name: "S3 bucket " + bucket, at: cmp.Or(query.Get("endpoint"), "Amazon S3 in "+config.Region),
		keys: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, run aws configure, or give the machine a role"}
	if _, err := config.Credentials.Retrieve(ctx); err != nil {
		return nil, r.unsigned(err)
	}
	client := s3.NewFromConfig(config, func(o *s3.Options) { o.UsePathStyle = own })
	b, err := s3blob.OpenBucket(ctx, client, bucket,
		&s3blob.Options{RequestChecksumCalculation: config.RequestChecksumCalculation})
	if err != nil {
		return nil, err
	}
	return r.reach(ctx, b)
}
