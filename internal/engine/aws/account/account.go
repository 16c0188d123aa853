//go:build !local

// Package account represents one account and region of AWS: the clients of its services, the meaning of their errors,
// and the catalogue's facts about its machines.
package account

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/savingsplans"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"

	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/lib/awshttp"
)

// Client gives access to AWS for one account and region.
type Client struct {
	EC2     *ec2.Client
	Prices  *pricing.Client
	Quotas  *servicequotas.Client
	STS     *sts.Client
	Plans   *savingsplans.Client
	Account string
	User    string // ARN of the caller
}

// tries is the number of attempts of the SDK, with growing waits: enough for one throttled page of many.
const tries = 3

// priceRegion serves the price list of all regions.
const priceRegion = "us-east-1"

// clockCodes are EC2's answers to requests signed by a wrong clock. The SDK reads AWS's clock from an answer and
// signs by it from then on, but does not know that these codes are worth a retry.
var clockCodes = map[string]struct{}{"RequestExpired": {}}

// Connect asks AWS for the caller's identity.
func Connect(ctx context.Context, w *setting.With) (*Client, error) {
	cfg, err := config.LoadDefaultConfig(ctx, func(o *config.LoadOptions) error {
		o.Region, o.SharedConfigProfile = w.Region, w.Profile
		o.Logger = logging.Nop{} // it would write to standard error; its messages also come as errors
		o.Retryer = func() sdk.Retryer {
			return retry.NewStandard(
				func(o *retry.StandardOptions) {
					o.MaxAttempts, o.MaxBackoff = tries, w.Backoff
					o.Retryables = append(o.Retryables, retry.RetryableErrorCode{Codes: clockCodes})
				},
			)
		}
		return nil
	})
	if err != nil {
		if _, no := errors.AsType[config.SharedConfigProfileNotExistError](err); no {
			return nil, fmt.Errorf("with: profile is %q, and neither ~/.aws/config nor ~/.aws/credentials of the server's "+
				"user has one of that name: aws configure list-profiles lists them", w.Profile)
		}
		return nil, fmt.Errorf("read AWS' configuration: %w", err)
	}
	cfg.HTTPClient = awshttp.Over(cfg.HTTPClient)
	if w.Endpoint != "" {
		cfg.BaseEndpoint = &w.Endpoint
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return nil, &credentialsError{err}
	}
	a := &Client{
		EC2:    ec2.NewFromConfig(cfg),
		Quotas: servicequotas.NewFromConfig(cfg),
		STS:    sts.NewFromConfig(cfg),
		Plans:  savingsplans.NewFromConfig(cfg),
		Prices: pricing.NewFromConfig(cfg, func(o *pricing.Options) {
			o.Region = priceRegion
		}),
	}
	who, err := a.STS.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		if wire, ok := errors.AsType[*net.OpError](err); ok && wire.Op == "dial" && w.Endpoint != "" {
			return nil, fmt.Errorf("with: endpoint is %q, where nobody answers (%w): write where AWS answers, or leave "+
				"endpoint out for AWS' own", w.Endpoint, wire)
		}
		return nil, regional(ctx, w, &cfg, err)
	}
	a.Account, a.User = sdk.ToString(who.Account), sdk.ToString(who.Arn)
	return a, nil
}

// credentialsError says that there are no credentials to sign requests with.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string {
	const key, secret = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"
	for set, missing := range map[string]string{key: secret, secret: key} {
		if os.Getenv(set) != "" && os.Getenv(missing) == "" {
			return fmt.Sprintf("found no AWS credentials: %s is set and %s is not: set both for the server", set, missing)
		}
	}
	return fmt.Sprintf(
		"found no AWS credentials (%v): set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for the server, "+
			"write profile under with, or run the server with a role",
		e.err,
	)
}

func (e *credentialsError) Unwrap() error { return e.err }
