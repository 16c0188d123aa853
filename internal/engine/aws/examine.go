//go:build !local

package aws

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
	"scrimp/internal/engine/aws/examine"
	"scrimp/internal/engine/aws/lend"
	"scrimp/internal/engine/aws/made"
	"scrimp/internal/engine/aws/sale"
	"scrimp/internal/engine/aws/tag"
	"scrimp/internal/market"
)

// Examine implements engine.Examiner. It uses dry runs: it creates and rents nothing.
func (d *Driver) Examine(ctx context.Context) []engine.Finding {
	a, err := d.connected(ctx)
	if err != nil {
		return []engine.Finding{{Name: "credentials", Text: err.Error()}}
	}
	found := []engine.Finding{{Name: "credentials", OK: true,
		Text: fmt.Sprintf("%s, account %s, region %s", a.User, a.Account, d.with.Region)}}
	e := &examine.Examiner{Engine: d.name, Server: d.prepare.Server, With: &d.with, Now: d.now, Seller: d.seller,
		Client: a}
	x, err := d.indexed(ctx)
	if err != nil {
		return append(found, engine.Finding{Name: "types", Text: d.explain(err).Error()}, e.Way())
	}
	e.Index = x
	sales := d.seller.Pools(x)
	if len(d.with.Capacity) > 0 {
		found = append(found, e.Offered(sales))
	}
	found = append(found, e.Signs())
	if d.with.SecurityGroup != "" {
		found = append(found, e.GroupThere(ctx))
	}
	for _, c := range d.with.Capacity {
		n := slices.IndexFunc(sales, func(s sale.Sale) bool { return s.Offer.Capacity == c })
		if n >= 0 {
			found = append(found, e.Tries(ctx, &sales[n]))
		}
	}
	found = append(found, e.Rights(ctx), e.Quotas(ctx, sales))
	found = slices.Concat(found, e.Reservations(), e.Commitments(ctx), d.asOrdered(ctx, a))
	if slices.Contains(d.with.Capacity, market.Spot) {
		found = append(found, e.Scores(ctx, sales))
	}
	if d.with.Bucket != nil {
		found = append(found, lend.Try(ctx, a, d.name, &d.with))
	}
	if d.with.Export != nil {
		found = append(found, e.Exported(ctx))
	}
	return append(found, e.Way())
}

// Compare implements engine.Comparer.
func (d *Driver) Compare(ctx context.Context, text []byte) ([]engine.Finding, error) {
	m, err := made.Read(text)
	if err != nil {
		return nil, err
	}
	a, err := d.connected(ctx)
	if err != nil {
		return nil, err
	}
	return made.Compare(ctx, m, d.name, &d.with, a), nil
}

// asOrdered reports machines that differ from their order; nothing if there are none.
func (d *Driver) asOrdered(ctx context.Context, a *account.Client) []engine.Finding {
	f := engine.Finding{Name: "machines"}
	if _, err := d.describe(ctx, a, &ec2.DescribeInstancesInput{Filters: tag.Filter(d.name, types.Filter{
		Name: sdk.String("instance-state-name"), Values: []string{"pending", "running"}})}); err != nil {
		f.Text = d.explain(err).Error()
		return []engine.Finding{f}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(d.odd)) {
		if s := d.seen[id]; s != nil && s.i.State == engine.Running {
			lines = append(lines, id+": "+d.odd[id])
		}
	}
	if len(lines) == 0 {
		return nil
	}
	f.Text = strings.Join(lines, "; ") + ": scrimp books what they are"
	return []engine.Finding{f}
}
