//go:build !local

package aws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"scrimp/internal/lib/nearest"
)

// homeRegion is one that every account of AWS has enabled.
const homeRegion = priceRegion

// regionError says that a region is not there, or not for this account. It hides the code that AWS answered with, which
// says that the credentials are wrong.
type regionError struct{ text string }

func (e *regionError) Error() string { return e.text }

// regional is err, which AWS has answered with when it was asked who we are, or what is wrong with the region: one that
// an account has not enabled refuses credentials that are good, and one that does not exist has no address. Source:
// docs.aws.amazon.com, AWS Account Management reference guide, "Enable or disable AWS Regions in your account".
func (w *With) regional(ctx context.Context, cfg *sdk.Config, err error) error {
	if w.Region == homeRegion {
		return err
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound && w.Endpoint == "" {
		// Where other names of AWS are not found either, the region is not to blame.
		if _, other := net.DefaultResolver.LookupHost(ctx, "sts."+homeRegion+".amazonaws.com"); other != nil {
			return err
		}
		return &regionError{fmt.Sprintf("with: region is %q, and AWS has none of that name (%s: no such host)%s: write "+
			"one of its regions, such as us-east-1 (aws account list-regions lists them)", w.Region, dns.Name, w.meant())}
	}
	if code := codeOf(err); code == "OptInRequired" || slices.Contains(credentialCodes, code) {
		home := sts.NewFromConfig(*cfg, func(o *sts.Options) { o.Region = homeRegion })
		if _, other := home.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}); other == nil {
			return w.notEnabled(err)
		}
	}
	return err
}

// notEnabled is the error of a region that the account may not use yet.
func (w *With) notEnabled(err error) error {
	return &regionError{fmt.Sprintf("with: region is %q, which does not know this account (%s)%s: enable "+
		"the region (aws account enable-region --region-name %s, which takes some minutes), or write another one",
		w.Region, saidBy(err), w.meant(), w.Region)}
}

// meant names a region that the catalogue knows, where it does not know the one that is written.
func (w *With) meant() string {
	regions := slices.Collect(maps.Keys(known().onDemand))
	if near := nearest.Of(w.Region, regions); near != "" && near != w.Region {
		return " (did you mean " + near + "?)"
	}
	return ""
}
