//go:build !local

package account

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/lib/nearest"
)

// homeRegion is a region that every AWS account has enabled.
const homeRegion = priceRegion

// regionError says that a region does not exist or is not enabled for this account. It hides AWS's error code, which
// blames the credentials.
type regionError struct{ text string }

func (e *regionError) Error() string { return e.text }

// regional returns the problem with the region if that explains err, AWS's answer to the request for the caller's
// identity; otherwise err. A region that an account has not enabled refuses valid credentials, and a region that does
// not exist has no address. Source: docs.aws.amazon.com, AWS Account Management reference guide, "Enable or disable
// AWS Regions in your account".
func regional(ctx context.Context, w *setting.With, cfg *sdk.Config, err error) error {
	if w.Region == homeRegion {
		return err
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound && w.Endpoint == "" {
		// If other AWS names do not resolve either, the region is not to blame.
		if _, other := net.DefaultResolver.LookupHost(ctx, "sts."+homeRegion+".amazonaws.com"); other != nil {
			return err
		}
		return &regionError{fmt.Sprintf("with: region is %q, which AWS does not have (%s: no such host)%s: write "+
			"one of its regions, such as us-east-1 (aws account list-regions lists them)", w.Region, dns.Name, meant(w))}
	}
	if code := CodeOf(err); code == "OptInRequired" || slices.Contains(credentialCodes, code) {
		home := sts.NewFromConfig(*cfg, func(o *sts.Options) { o.Region = homeRegion })
		if _, other := home.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}); other == nil {
			return notEnabled(w, err)
		}
	}
	return err
}

// notEnabled returns the error for a region that the account may not use yet.
func notEnabled(w *setting.With, err error) error {
	return &regionError{fmt.Sprintf("with: region is %q, which is not enabled for this account (%s)%s: enable "+
		"the region (aws account enable-region --region-name %s, which takes some minutes), or write another one",
		w.Region, SaidBy(err), meant(w), w.Region)}
}

// meant suggests a region of the catalogue if the configured one is unknown.
func meant(w *setting.With) string {
	regions := slices.Collect(maps.Keys(Known().OnDemand))
	if near := nearest.Of(w.Region, regions); near != "" && near != w.Region {
		return " (did you mean " + near + "?)"
	}
	return ""
}
