//go:build !local

package blob

import (
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
		return nil, fmt.Errorf("%w: write the bucket's name, s3://NAME", ErrURL)
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
	client := s3.NewFromConfig(config, func(o *s3.Options) { o.UsePathStyle = own })
	b, err := s3blob.OpenBucket(ctx, client, bucket,
		&s3blob.Options{RequestChecksumCalculation: config.RequestChecksumCalculation})
	if err != nil {
		return nil, err
	}
	found, err := b.IsAccessible(ctx)
	if err == nil && !found {
		err = fmt.Errorf("there is no bucket %s: make it, or correct the name", bucket)
	}
	if err != nil {
		_ = b.Close() // nothing was written
		return nil, err
	}
	return b, nil
}
