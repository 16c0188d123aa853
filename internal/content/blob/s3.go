//go:build !local

package blob

import (
	"cmp"
	"context"
	"fmt"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
	gcaws "gocloud.dev/aws"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"

	"scrimp/internal/lib/awshttp"
)

// openS3 opens an existing bucket. A user's own endpoint is addressed by path, because a bucket's name before an
// address such as 127.0.0.1 is not a host name.
func openS3(ctx context.Context, bucket string, query url.Values) (*blob.Bucket, error) {
	config, r, err := s3Config(ctx, bucket, query, "")
	if err != nil {
		return nil, err
	}
	if _, err := config.Credentials.Retrieve(ctx); err != nil {
		return nil, r.unsigned(err)
	}
	b, err := s3Bucket(ctx, config, bucket, query)
	if err != nil {
		return nil, err
	}
	return r.reach(ctx, b, "")
}

// openReadS3 opens an existing bucket to list and read a prefix of it.
func openReadS3(ctx context.Context, bucket string, query url.Values, prefix string) (*blob.Bucket, error) {
	config, r, err := s3Config(ctx, bucket, query, "")
	if err != nil {
		return nil, err
	}
	r.needs = "list and read"
	r.keys = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for the process that reads it (for an input of a job the " +
		"agent of the machine, for bills the server), name a profile, or give the machine a role"
	config.HTTPClient, config.Logger = awshttp.Over(config.HTTPClient), logging.Nop{}
	if _, err := config.Credentials.Retrieve(ctx); err != nil {
		return nil, r.unsigned(err)
	}
	b, err := s3Bucket(ctx, config, bucket, query, func(o *s3.Options) {
		o.DisableLogOutputChecksumValidationSkipped = true // the readers of exports check sizes and formats
	})
	if err != nil {
		return nil, err
	}
	return r.reach(ctx, b, prefix)
}

// s3Config returns how to reach a bucket; region is the default if neither the address nor the machine sets one.
func s3Config(ctx context.Context, bucket string, query url.Values, region string) (aws.Config, remote, error) {
	if bucket == "" {
		return aws.Config{}, remote{}, noName("the bucket's name, s3://NAME")
	}
	own := query.Get("endpoint") != ""
	if own {
		query.Set("hostname_immutable", "true")
	}
	config, err := gcaws.V2ConfigFromURLParams(ctx, query)
	if err != nil {
		return config, remote{}, err
	}
	if config.Region == "" {
		config.Region = region
	}
	if config.Region == "" {
		if !own {
			return config, remote{}, fmt.Errorf("%w: no region: add ?region=NAME or set AWS_REGION", ErrURL)
		}
		config.Region = "us-east-1" // servers other than Amazon's accept any
	}
	return config, remote{name: "S3 bucket " + bucket,
		at: cmp.Or(query.Get("endpoint"), "Amazon S3 in "+config.Region),
		keys: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, run aws configure, give the machine a role, or let an " +
			"administrator declare the bucket at an AWS engine"}, nil
}

// pathStyle addresses a user's own service by path.
func pathStyle(query url.Values) func(*s3.Options) {
	own := query.Get("endpoint") != ""
	return func(o *s3.Options) { o.UsePathStyle = own }
}

// s3Bucket returns a bucket without contacting it.
func s3Bucket(ctx context.Context, config aws.Config, bucket string, query url.Values,
	with ...func(*s3.Options)) (*blob.Bucket, error) {
	client := s3.NewFromConfig(config, append(with, pathStyle(query))...)
	return s3blob.OpenBucket(ctx, client, bucket,
		&s3blob.Options{RequestChecksumCalculation: config.RequestChecksumCalculation})
}
