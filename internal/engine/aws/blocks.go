//go:build !local

package aws

import (
	"context"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
	"scrimp/internal/engine/aws/prepare"
	"scrimp/internal/engine/aws/sale"
)

// rentInBlock rents machines in a Capacity Block, all or none; a fleet would start as many as fit. A refused request
// does not use up the token. Sources: docs.aws.amazon.com, Amazon EC2 user guide, "Tutorial: Configure your EC2 Fleet
// to launch instances into Capacity Blocks", and API reference, RunInstances, MinCount.
func (d *Driver) rentInBlock(ctx context.Context, a *account.Client, q *engine.Request, r *request, s *sale.Sale,
	t prepare.Template, group string) ([]string, error) {
	out, err := a.EC2.RunInstances(ctx, d.prepare.InBlock(q, r.asked, s, t, group), func(o *ec2.Options) {
		o.RetryMaxAttempts = 1 // each answer counts
	})
	switch code := account.CodeOf(err); {
	case err == nil:
	case code == "IdempotentParameterMismatch":
		return nil, d.mismatched(r, err)
	default:
		if d.unanswered(err) {
			r.unsure = d.now()
		}
		return nil, d.seller.NoRoom(q.Offer, account.OrRefused(d.name, &d.with, err))
	}
	r.asked++
	r.mismatch, r.unsure = time.Time{}, time.Time{}
	var ids []string
	for n := range out.Instances {
		ids = append(ids, sdk.ToString(out.Instances[n].InstanceId))
	}
	return d.grants(ids), nil
}
